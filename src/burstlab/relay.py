"""`burstlab run` off its hosts: the whole command goes to the first of them.

The workload starts on the first host, where the storage is mounted, so that is where a cell is
run from. A login node, or the shell that salloc gives, only starts it there and passes on what
it says and the signals that are meant for it. When this process dies, the far end of its stdin
tells the cell to stop.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from burstlab.errors import AllocationError, NodeError
from burstlab.launch import launcher
from burstlab.stopping import STOP_SIGNALS

_BEGUN = "burstlab.relay/1 begun"  # the first line of the far end
_STATUS = "burstlab.relay/1 status "  # and its last
# What belongs to the host that a command was typed on.
_OF_A_HOST = ("SLURMD_NODENAME", "SLURM_NODEID", "HOSTNAME", "SSH_CONNECTION", "SSH_CLIENT")


def is_here(host: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a name of an allocation means the machine that this process runs on."""
    own = (os.uname().nodename, environment.get("SLURMD_NODENAME", ""))
    if host.split(".")[0] in {name.split(".")[0] for name in own} or host == "localhost":
        return True
    import socket  # not at the top: most cells are on the host they are for

    with socket.socket() as visitor:
        try:
            visitor.bind((host, 0))  # only an address of this machine can be bound
        except OSError:
            return False
    return True


def run_there(host: str, hosts: Sequence[str], launch: str, options: Sequence[str]) -> int:
    """Run this process's own command on ``host``; its exit status.

    ``hosts`` are the cell's, told to the far end, which may not see the scheduler's list. Raises
    AllocationError when ``host`` can't be reached, NodeError when it is lost.
    """
    argv = launcher(launch)([host], [sys.executable, "-m", "burstlab.relay"], options)
    # In a session of its own, or the terminal's Ctrl-C would end it before the cell.
    child = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        start_new_session=True,
    )
    assert child.stdin is not None and child.stdout is not None
    before = {number: signal.signal(number, _forward(child)) for number in STOP_SIGNALS}
    said, begun, status = "it said nothing", False, None
    try:
        child.stdin.write(json.dumps(_message(hosts)) + "\n")
        for line in child.stdout:
            if line.rstrip() == _BEGUN:
                begun = True
            elif line.startswith(_STATUS):
                status = int(line.removeprefix(_STATUS))
            elif status is None:  # afterwards, the launcher tells that status in its own words
                said = line.strip() or said
                sys.stderr.write(line)
    except BrokenPipeError:
        pass  # its end is told below
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    ended = child.wait()
    if not begun:
        raise AllocationError(f"{host} can't be reached by {launch}: {_in_words(said)}")
    if status is None:
        raise NodeError(host, f"{launch} ended with status {ended} and no word of the cell: {said}")
    return status


def _in_words(said: str) -> str:
    """What a launcher says of a host in an agent's stead is JSON."""
    try:
        return str(json.loads(said)["gone"])
    except (ValueError, TypeError, KeyError):
        return said


def _message(hosts: Sequence[str]) -> dict[str, object]:
    environment = {name: value for name, value in os.environ.items() if name not in _OF_A_HOST}
    words = ["run", "--hosts", ",".join(hosts), *sys.argv[2:]]
    return {"directory": str(Path.cwd()), "environment": environment, "words": words}


def _forward(child: "subprocess.Popen[str]") -> "signal._HANDLER":
    def forward(number: int, frame: FrameType | None) -> None:
        try:
            assert child.stdin is not None
            os.write(child.stdin.fileno(), b"%d\n" % number)
        except BrokenPipeError:
            pass  # it has ended

    return forward


def main() -> int:
    """The far end: the command as it was typed, where it was typed, on this host."""
    line, rest = _first_line()
    print(_BEGUN, flush=True)
    message = json.loads(line)
    own = {name: os.environ[name] for name in _OF_A_HOST if name in os.environ}
    os.environ.clear()
    os.environ.update({**message["environment"], **own})
    os.chdir(message["directory"])
    sys.argv = ["burstlab", *message["words"]]
    threading.Thread(target=_obey, args=[rest], daemon=True).start()
    from burstlab import cli

    status = cli.main(message["words"])
    print(f"{_STATUS}{status}", flush=True)
    return status


def _first_line() -> tuple[bytes, bytes]:
    """Read without a buffer, whose lock a thread would still hold at the end."""
    text = b""
    while b"\n" not in text:
        chunk = os.read(0, 1 << 16)
        if not chunk:
            sys.exit("burstlab relay: nothing to run: the near end is gone")
        text += chunk
    line, _, rest = text.partition(b"\n")
    return line, rest


def _obey(text: bytes) -> None:
    """Signals as they come; the end of stdin is the loss of whoever wanted the cell."""
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    while True:
        for number in text.split():
            signal.pthread_kill(main_thread, int(number))
        text = os.read(0, 1 << 10)
        if not text:
            signal.pthread_kill(main_thread, signal.SIGHUP)
            return


if __name__ == "__main__":
    sys.exit(main())
