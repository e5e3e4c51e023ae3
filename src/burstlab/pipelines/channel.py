"""A pair of sockets between two processes, over which arrays go without being pickled."""

import pickle
import socket
import struct
from contextlib import suppress
from typing import Any

SIZE = struct.Struct("<Q")
BUFFER = 1 << 20  # bytes; what the kernel does not grant is only slower


class Channel:
    """One end. Both ends speak in turn; for one thread at a time."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def send(self, value: object) -> None:
        """Pickled, but for the content of buffers such as numpy's arrays."""
        buffers: list[pickle.PickleBuffer] = []
        header = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        contents = [buffer.raw() for buffer in buffers]
        sizes = [len(contents), len(header), *(content.nbytes for content in contents)]
        self._end.sendall(b"".join(map(SIZE.pack, sizes)) + header)
        for content in contents:
            self._end.sendall(content)

    def receive(self) -> Any:
        """What the other end has sent; arrays can be written to. Raises EOFError at its end."""
        count = SIZE.unpack(self._read(SIZE.size))[0]
        length = SIZE.unpack(self._read(SIZE.size))[0]
        sizes = [size for (size,) in SIZE.iter_unpack(self._read(SIZE.size * count))]
        header = self._read(length)
        return pickle.loads(header, buffers=[self._read(size) for size in sizes])

    def hang_up(self) -> None:
        """Wake who waits at this end, with EOFError or OSError."""
        with suppress(OSError):  # the other end has
            self._end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End it."""
        self._end.close()

    def _read(self, size: int) -> bytearray:
        content = bytearray(size)
        rest = memoryview(content)
        while rest:
            got = self._end.recv_into(rest)
            if not got:
                raise EOFError("the other process has ended")
            rest = rest[got:]
        return content


def pair() -> tuple[Channel, Channel]:
    """Two ends, to be given to two processes."""
    ends = socket.socketpair()
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
    return Channel(ends[0]), Channel(ends[1])
