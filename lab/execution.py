"""Runs a command on a machine so that whoever ends it ends it in order.

this process      forwards signals and waits
└ keeper          outlives it by the time it takes to end the command
  └ nsenter       must not die before its child: nobody inside could collect that then, and a
    │             PID name space ends only when all its processes are collected
    └ COMMAND     on the machine, in the foreground of the caller's terminal
"""

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from types import FrameType

from lab import namespaces

PR_SET_PDEATHSIG = 1  # prctl(2)
_FORWARDED = (signal.SIGTERM, signal.SIGHUP)
_OF_TERMINAL = (signal.SIGINT, signal.SIGQUIT)  # the terminal sends them to the command itself
_PARENT_DIED = signal.SIGUSR1

# The command has these signals as usual; nsenter, which it inherits from, ignores them.
DEFAULT_SIGNALS = ["env", "--default-signal=INT,QUIT,TERM,HUP"]


def execute(argv: list[str], environment: Mapping[str, str]) -> int:
    """Run an nsenter command line to its end; its exit status, or 128 + signal.

    SIGTERM and SIGHUP reach the command; when this process is killed, the command is.
    """
    parent = os.getpid()
    keeper = os.fork()
    if keeper == 0:
        os._exit(_keep(argv, environment, parent))
    for number in _OF_TERMINAL:
        signal.signal(number, signal.SIG_IGN)
    for number in _FORWARDED:
        signal.signal(number, lambda number, _: os.kill(keeper, number))
    status = os.waitstatus_to_exitcode(os.waitpid(keeper, 0)[1])
    return 128 - status if status < 0 else status


def _keep(argv: list[str], environment: Mapping[str, str], parent: int) -> int:
    for number in (*_OF_TERMINAL, *_FORWARDED):
        signal.signal(number, signal.SIG_IGN)  # nsenter inherits this
    child = subprocess.Popen(argv, env=environment)
    for number in _FORWARDED:
        signal.signal(number, _to_command(child.pid, number))
    signal.signal(_PARENT_DIED, _to_command(child.pid, signal.SIGKILL))
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, _PARENT_DIED)
    if os.getppid() != parent:
        os.kill(os.getpid(), _PARENT_DIED)
    status = child.wait()
    return 128 - status if status < 0 else status


def _to_command(nsenter: int, number: int) -> Callable[[int, FrameType | None], None]:
    def send(_: int, frame: FrameType | None) -> None:
        for pid in namespaces.children(nsenter):
            os.kill(pid, number)

    return send
