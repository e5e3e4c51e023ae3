"""Records into tables, statistics and the figures of the papers (docs/figures.md)."""
