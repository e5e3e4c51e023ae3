"""Waiting for work while watching what the work depends on.

This process never touches a cell's mount itself: an access to a file system whose server died
can block and then ignores every signal but SIGKILL. Such work runs in a forked child, which can
be given up and killed.
"""

import marshal
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from burstlab.errors import BurstlabError, StorageError
from burstlab.lease import WORKLOAD, Lease

INTERVAL_S = 2.0  # between two questions to the storage
_RESULT = b"="  # a reply that begins so is a result, by marshal: no import, plain values


def ended_how(status: int, of_shell: bool = False) -> str:
    """What a subprocess return code says, in words; that ``of_shell`` is 128 + n for signal n."""
    if of_shell and status - 128 in signal.valid_signals():
        status = 128 - status
    return f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def last_words(said: str) -> str:
    """Of what a program said: the last line, where it tells why it failed."""
    lines = said.strip().splitlines()
    return lines[-1] if lines else "it says nothing"


class Supervisor:
    """Watches the daemons of a lease and a storage's own account of its health."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self.problems: Callable[[], list[str]] = list
        self.tick: Callable[[], None] = lambda: None

    def deaths(self) -> list[str]:
        """One line for each daemon that is no longer there."""
        return [
            f"{name} died ({ended_how(child.returncode)})"
            for name, child in self._lease.children.items()
            if name != WORKLOAD and child.poll() is not None
        ]

    def wait(self, child: subprocess.Popen[bytes]) -> int:
        """Return code of ``child``. Raises StorageError as soon as the storage is not healthy."""
        descriptor = os.pidfd_open(child.pid)
        try:
            self._await(descriptor)
            return child.wait()
        finally:
            os.close(descriptor)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """``function(*arguments)`` in a forked child; its result (plain values), or its
        exception, comes back.

        Raises StorageError as soon as the storage is not healthy.
        """
        reader, writer = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        # A signal that comes between the fork and the child's own handlers would be taken by
        # both, and the child would begin the parent's teardown.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        pid = os.fork()
        if pid == 0:
            try:
                os.close(reader)
                self._serve(writer, function, arguments, before)
            finally:
                os._exit(1)  # whatever happens, a child never goes on as its parent
        os.close(writer)
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            reply = self._read(reader)
        except BaseException:
            os.kill(pid, signal.SIGKILL)  # ours and not waited for, so the pid is still its own
            raise
        finally:
            os.close(reader)
        _, status = os.waitpid(pid, 0)
        if not reply:
            how = ended_how(os.waitstatus_to_exitcode(status))
            raise BurstlabError(f"the child that did {function.__qualname__} died ({how})")
        if reply[:1] == _RESULT:
            return marshal.loads(reply[1:])
        import pickle

        raise pickle.loads(reply)

    def _serve(
        self, writer: int, function: Callable[..., Any], arguments: Any, mask: Iterable[int]
    ) -> NoReturn:
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE}:
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        failure: Exception
        try:
            self._lease.adopt()
            reply = _RESULT + marshal.dumps(function(*arguments))
        except (BurstlabError, OSError) as error:
            failure, reply = error, b""
        except BaseException as error:
            sys.excepthook(type(error), error, error.__traceback__)
            failure, reply = BurstlabError(f"{function.__qualname__}: {error!r}"), b""
        if not reply:
            import pickle

            reply = pickle.dumps(failure)
        with open(writer, "wb") as pipe:
            pipe.write(reply)
            pipe.flush()
            os._exit(0)

    def _read(self, reader: int) -> bytes:
        reply = b""
        while True:
            self._await(reader)
            chunk = os.read(reader, 1 << 16)
            if not chunk:
                return reply
            reply += chunk

    def _await(self, descriptor: int) -> None:
        """Return when ``descriptor`` is readable."""
        if dead := self.deaths():
            raise StorageError("; ".join(dead))
        watched = {
            os.pidfd_open(child.pid): name
            for name, child in self._lease.children.items()
            if name != WORKLOAD and child.poll() is None
        }
        try:
            poll = select.poll()
            for one in (descriptor, *watched):
                poll.register(one, select.POLLIN)
            while True:
                ready = [one for one, _ in poll.poll(INTERVAL_S * 1000)]
                if descriptor in ready:
                    return
                self.tick()
                wrong = self.deaths() if ready else self.problems()
                if wrong:
                    raise StorageError("; ".join(wrong))
        finally:
            for one in watched:
                os.close(one)
