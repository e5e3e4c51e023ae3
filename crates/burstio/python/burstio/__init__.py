"""burstlab's data path, in Rust: staging of data sets."""

from burstio._burstio import Copy, Progress, StagingFault, __version__

__all__ = ["Copy", "Progress", "StagingFault", "__version__"]
