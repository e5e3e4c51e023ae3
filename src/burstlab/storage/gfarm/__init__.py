"""`gfarm`: Gfarm without a metadata database, private to one cell, as Gfarm/BB has it.

The first host runs gfmd (all metadata in its memory), every host a gfsd (its part of the data,
in the cell's node-local directory) and a gfarm2fs (the mount). A file lies wholly on the node
that wrote it.
"""

from burstlab.storage.gfarm.provider import GfarmStorage

__all__ = ["GfarmStorage"]
