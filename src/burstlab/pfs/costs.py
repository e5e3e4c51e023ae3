"""What an operation on the emulated parallel file system costs: arithmetic, no waiting.

Latencies are each operation's own and overlap between clients; bandwidth and metadata rate are
one queue each, served in order of arrival, shared by everybody. Times are seconds of any one
clock, which the caller reads.
"""

import threading

from burstlab.pfs.emulation import Emulation

# A client holds this much of what was written before write(2) waits for the servers: Lustre's
# osc.*.max_dirty_mb, 32 MB as first shipped (Lustre manual, "Monitoring client activity").
DIRTY_BYTES = 32e6


class SharedRate:
    """A server that serves ``per_s`` units a second, first come, first served, without bursts."""

    def __init__(self, per_s: float) -> None:
        """``per_s`` 0: no limit."""
        self._unit_s = 1 / per_s if per_s else 0.0
        self._free_at = float("-inf")
        self._lock = threading.Lock()

    def reserve(self, units: float, now: float) -> float:
        """Queue ``units`` that arrive ``now``; returns when the last of them is served."""
        if not self._unit_s:
            return now
        with self._lock:
            self._free_at = max(self._free_at, now) + units * self._unit_s
            return self._free_at


class Costs:
    """When an operation that began ``now`` is over; one instance for all clients."""

    def __init__(self, emulation: Emulation) -> None:
        self._metadata_s = emulation.metadata_latency_ms / 1e3
        self._io_s = emulation.io_latency_ms / 1e3
        self._metadata = SharedRate(emulation.metadata_rate)
        self._bytes = SharedRate(emulation.bandwidth_mb_s * 1e6)
        self._dirty_s = DIRTY_BYTES / (emulation.bandwidth_mb_s * 1e6 or float("inf"))

    def metadata(self, now: float, operations: int = 1) -> float:
        """``operations`` of one client at the metadata server, one after the other."""
        return self._metadata.reserve(operations, now) + operations * self._metadata_s

    def transfer(self, now: float, size_bytes: int) -> float:
        """A read, or a write that waits for the servers."""
        return self._bytes.reserve(size_bytes, now) + self._io_s

    def write_behind(self, now: float, size_bytes: int) -> tuple[float, float]:
        """A write that the client holds: (its end, when its bytes are on the servers)."""
        stored = self._bytes.reserve(size_bytes, now)
        return stored - self._dirty_s, stored

    def commit(self, now: float, stored: float) -> float:
        """A close or fsync of a file whose last byte is on the servers at ``stored``."""
        return max(now, stored) + self._io_s
