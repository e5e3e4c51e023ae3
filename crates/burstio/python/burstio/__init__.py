"""burstlab's data path, in Rust: staging, lazy prefetching, and the emulated file system."""

from burstio._burstio import (
    Agent,
    Client,
    Copy,
    EmulatedPfs,
    Engine,
    Listening,
    PeerLost,
    Progress,
    Sample,
    StagingFault,
    Stream,
    __version__,
)
from burstio.order import Shard, given, in_order, shuffled
from burstio.peers import Peers
from burstio.reader import Reader

connect = Client

__all__ = [
    "Agent",
    "Client",
    "Copy",
    "EmulatedPfs",
    "Engine",
    "Listening",
    "PeerLost",
    "Peers",
    "Progress",
    "Reader",
    "Sample",
    "Shard",
    "StagingFault",
    "Stream",
    "__version__",
    "connect",
    "given",
    "in_order",
    "shuffled",
]
