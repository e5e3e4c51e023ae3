"""The settings of an emulated parallel file system, as told, started and recorded."""

from typing import NamedTuple

SOURCE = "burstlab-pfs"  # device name and sub-type of its mounts: what proves it is emulated


class Emulation(NamedTuple):
    """Costs, shared by all clients of one mount. 0 means none, and no limit."""

    metadata_latency_ms: float = 1.0
    io_latency_ms: float = 0.5
    bandwidth_mb_s: float = 200.0
    metadata_rate: float = 0.0  # operations per second

    def arguments(self) -> list[str]:
        """As flags of ``python -m burstlab.pfs``."""
        pairs = self._asdict().items()
        return [
            part for key, value in pairs for part in (f"--{key.replace('_', '-')}", f"{value:g}")
        ]
