"""The decode stage, equal in all modes: so many workers, one sample each at a time."""

import os
import queue
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pickle import PickleBuffer
from typing import Any

from burstlab.pipelines.channel import Channel, pair
from burstlab.pipelines.children import PATIENCE_S, end, portable, settle
from burstlab.pipelines.interface import PipelineError, Transport

Operation = Callable[[int, Any], Any]  # index, content (None: read it yourself) -> example


class Workers:
    """Threads that decode, or that each have a process decode for them.

    Processes are started as ``multiprocessing`` is told to (fork, if nobody said otherwise), all of
    them before the first thread.
    """

    def __init__(self, operation: Operation, count: int, transport: Transport) -> None:
        self._processes: list[_Process] = []
        self._idle: queue.SimpleQueue[_Process] = queue.SimpleQueue()
        self._operation: Operation = operation
        if transport == "processes":
            self._processes = [_Process(operation) for _ in range(count)]
            self._operation = self._by_process
            for process in self._processes:
                self._idle.put(process)
        self._threads = ThreadPoolExecutor(count, "decode")

    def submit(self, index: int, content: Any = None) -> "Future[Any]":
        """Begin with a sample as soon as a worker is free."""
        return self._threads.submit(self._operation, index, content)

    def close(self) -> None:
        """End them, whatever they are doing."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._processes:
            process.hang_up()
        end([process.process for process in self._processes])
        self._threads.shutdown(wait=True)
        while self._processes:
            self._processes.pop().forget()

    def _by_process(self, index: int, content: Any) -> Any:
        process = self._idle.get()
        try:
            return process.call(index, None if content is None else PickleBuffer(content))
        finally:
            self._idle.put(process)


class _Process:
    def __init__(self, operation: Operation) -> None:
        self._channel, theirs = pair()
        context = get_context()
        self.process: BaseProcess = context.Process(
            target=_serve, args=(theirs, operation), name="decode", daemon=True
        )
        self.process.start()
        theirs.close()

    def call(self, index: int, content: Any) -> Any:
        try:
            self._channel.send((index, content))
            done, result = self._channel.receive()
        except (EOFError, OSError) as error:
            self.process.join(PATIENCE_S)
            raise PipelineError(
                f"decode worker {self.process.pid} ended with status {self.process.exitcode} "
                f"at sample {index}: look for what killed it (memory?)"
            ) from error
        if done:
            return result
        raise result

    def hang_up(self) -> None:
        """Wake the thread that waits for it, though it may never answer."""
        self._channel.hang_up()

    def forget(self) -> None:
        self._channel.close()
        if self.process.exitcode is not None:
            self.process.close()


def _serve(channel: Channel, operation: Operation) -> None:
    """What a worker process does, until its parent ends."""
    settle()
    try:
        while True:
            index, content = channel.receive()
            channel.send(_attempt(operation, index, content))
    except (EOFError, OSError):
        os._exit(0)


def _attempt(operation: Operation, index: int, content: Any) -> tuple[bool, Any]:
    try:
        return True, operation(index, content)
    except Exception as error:
        return False, portable(error)
