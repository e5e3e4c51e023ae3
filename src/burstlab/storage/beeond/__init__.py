"""`beeond`: BeeGFS over the node-local disks of the cell's hosts, by the site's `beeond` command.

The command is the one of BeeGFS 7.4 or 8; it needs root, ssh between the nodes and, in 7.4, a
directory of configuration files. Its facts are in tests/storage/beeond/FACTS.md.
"""

from burstlab.storage.beeond.provider import BeeondStorage

__all__ = ["BeeondStorage"]
