"""Sizes and counts of the reads and writes of an unmodified program (docs/how-to/trace-io.md).

``python -m burstlab.tracing DIRECTORY PLACE=PATH ... -- COMMAND ...`` runs a command under strace,
counts as the lines come and leaves one file in DIRECTORY; ``cell`` makes the tables of a cell of
such files. The command sees no difference, but takes longer.
"""
