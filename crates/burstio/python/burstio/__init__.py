"""burstlab's data path, in Rust: staging of data sets."""

from burstio._burstio import __version__

__all__ = ["__version__"]
