"""What `ssh` (the double's) speaks to: runs a command in the name spaces of a host."""

import json
import os
import socket
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

ENVIRONMENT = {"HOME": "/root", "SHELL": "/bin/bash"}  # of a login, with what ssh sends along
LARGEST = 1 << 16


class Switch:
    """Listens below ``root`` until it is closed; a host is the process that is its init."""

    def __init__(self, root: Path) -> None:
        self.hosts: dict[str, int] = {}
        self._root = root
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(root / "switch"))
        self._socket.listen(64)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client:
            message, streams, _, _ = socket.recv_fds(client, LARGEST, 3)
            if not message:
                return
            request = json.loads(message)
            host, command = request.pop("host"), request.pop("command")
            try:
                status = self._run(host, command, request, streams)
            finally:
                for stream in streams:
                    os.close(stream)
            with suppress(BrokenPipeError):  # that ssh was killed; what it began has gone on
                client.send(str(status).encode())

    def _run(self, host: str, command: str, sent: dict[str, str], streams: list[int]) -> int:
        with (self._root / "calls").open("a") as calls:
            calls.write(f"{host}: {command}\n")
        faults = self._root / "faults"
        cut = faults.exists() and f"unreachable {host}" in faults.read_text().splitlines()
        if host not in self.hosts or (cut and command.startswith("test")):
            text = f"ssh: connect to host {host} port 22: No route to host\n"
            os.write(streams[2], text.encode())
            return 255
        enter = ["nsenter", "-t", str(self.hosts[host]), "-m", "-u", "-i", "-n", "-p", "--wd=/"]
        child = subprocess.Popen(
            [*enter, "bash", "-c", command],
            stdin=streams[0], stdout=streams[1], stderr=streams[2],
            env={**ENVIRONMENT, **sent}, start_new_session=True,
        )  # fmt: skip
        status = child.wait()
        return status if status >= 0 else 255  # its host was lost
