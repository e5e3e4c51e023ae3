"""The agent: what burstlab runs on each host of a cell that is not this machine's own.

Reads JSON lines from stdin, the same for all hosts: first {"hello": ...}, then calls
{"call": action, "arguments": {...}, "number": n}, last {"close": true}. Answers on stdout, one
line each, naming its host. The end of stdin is an order: whoever held the other end is gone, so
everything is cleaned up. SIGTERM means the same.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from burstlab import lease
from burstlab.allocation import own_name
from burstlab.errors import BurstlabError
from burstlab.lease import Lease
from burstlab.nodes import Host, Node, resolve
from burstlab.process import machine, this_boot
from burstlab.scheduler.ending import ending
from burstlab.supervision import ended_how

_PROTOCOL = threading.Lock()
LONGEST_LINE = 1000  # bytes; json.dumps makes ASCII
PART = 400  # which quotes and backslashes at most double
# A cell asks every 2 s. When it is silent for so long, the scheduler is asked whether there still
# is a job: slurmstepd outlives its slurmd and its srun, and keeps the stdin of its tasks open.
SILENCE_S = 30.0
GRACE_S = 1.0
HELLO_S = 30.0  # the other end says it at once; over ssh nobody tells that it is gone


class Agent:
    """Serves one cell on this host."""

    def __init__(self, host: str, hello: dict[str, Any]) -> None:
        self._host = host
        self._reaped = lease.reap()
        directory = Path(hello["directory"])
        about = {"cell_dir": hello["cell_dir"], "scratch": str(directory)}
        if hello["boot"] != this_boot():  # on its own host the cell ends what bears its mark
            about["cell"] = hello["id"]
        self._lease = Lease.create(f"{hello['id']}.{host}", **about)
        self._lease.mark()
        try:
            self._lease.directory(directory)
        except OSError as error:
            self._lease.release()  # it holds nothing
            if isinstance(error, FileExistsError):
                raise BurstlabError(
                    f"{directory} is there already: do two hosts of the cell share it?"
                ) from error
            raise
        self._node = Node(Host(host, directory), self._lease)
        self._calls: list[threading.Thread] = []
        self._job: dict[str, str] = hello["job"]
        self._heard = time.monotonic()
        threading.Thread(target=self._watch, daemon=True).start()

    def serve(self) -> None:
        """Until stdin ends or says close; every call runs in a thread of its own.

        A cell calls while another call runs only when it has given that one up, to stop what the
        call may hang in. This thread never touches a mount, so no call can keep it from cleaning.
        """
        _answer(self._host, ready=True, problems=self._reaped, machine=machine())
        for line in sys.stdin:
            self._heard = time.monotonic()
            message = json.loads(line)
            if message.get("close"):
                break
            if message.get("health"):
                _answer(self._host, number=message["number"], result=self._deaths())
            else:
                self._calls = [call for call in self._calls if call.is_alive()]
                self._calls.append(threading.Thread(target=self._act, args=(message,), daemon=True))
                self._calls[-1].start()
        problems = self.clean()
        _answer(self._host, closed=True, problems=problems)

    def clean(self, grace_s: float = GRACE_S) -> list[str]:
        """End and remove everything of the cell on this host; nobody wants its files any more.

        Who is told to end meanwhile does so already: to begin anew would cost the time there is.
        A call that was given up because another host's failed is about to end: one that still
        makes a directory would do so in one that is being removed.
        """
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        patience = time.monotonic() + grace_s
        for call in self._calls:
            call.join(max(0.0, patience - time.monotonic()))
        self._lease.end_workload(grace_s)
        problems = self._lease.clean(grace_s)
        if not problems:
            self._lease.release()
        return problems

    def _deaths(self) -> list[str]:
        ended = [(n, c.poll()) for n, c in self._lease.children.items()]
        return [
            f"{name} died ({ended_how(status, of_shell=True)})"
            for name, status in ended
            if status is not None
        ]

    def _watch(self) -> None:
        while True:
            time.sleep(max(1.0, self._heard + SILENCE_S - time.monotonic()))
            if time.monotonic() < self._heard + SILENCE_S:
                continue
            self._heard = time.monotonic()
            if ending(self._job):
                os.kill(os.getpid(), signal.SIGTERM)

    def _act(self, message: dict[str, Any]) -> None:
        try:
            result = resolve(message["call"])(self._node, **message["arguments"])
            _answer(self._host, number=message["number"], result=result)
        except (BurstlabError, OSError) as error:
            _answer(self._host, number=message["number"], error=str(error))
        except Exception as error:
            sys.excepthook(type(error), error, error.__traceback__)
            _answer(self._host, number=message["number"], error=repr(error))


def main(arguments: list[str]) -> int:
    """``arguments``: the host's name as the allocation spells it, where the launcher knows it."""
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGHUP, _end)
    signal.signal(signal.SIGALRM, _nobody)
    signal.setitimer(signal.ITIMER_REAL, HELLO_S)
    line = sys.stdin.readline()
    signal.setitimer(signal.ITIMER_REAL, 0)
    if not line:
        return 0
    hello = json.loads(line)["hello"]
    host = arguments[0] if arguments else own_name(hello["hosts"])
    try:
        agent = Agent(host, hello)
    except (BurstlabError, OSError) as error:
        _answer(host, ready=False, error=str(error))
        return 1
    try:
        agent.serve()
    except SystemExit:
        _answer(host, ending=True)
        agent.clean(grace_s=0.0)  # who ends a job waits some seconds (KillWait), then kills
        raise
    return 0


def _end(number: int, frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def _nobody(number: int, frame: object) -> None:
    sys.exit(f"burstlab.agent: nobody said hello within {HELLO_S:g} s")


def _answer(host: str, **fields: Any) -> None:
    with _PROTOCOL:
        try:
            for line in _lines(host, json.dumps({"host": host, **fields})):
                print(line)
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _lines(host: str, text: str) -> Iterator[str]:
    """A long answer in parts: srun tears lines of more than 1024 bytes, and mixes the pieces."""
    if len(text) < LONGEST_LINE:
        yield text
        return
    for at in range(0, len(text), PART):
        more = at + PART < len(text)
        yield json.dumps({"host": host, "part": text[at : at + PART], "more": more})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
