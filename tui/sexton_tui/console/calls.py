"""Calls into the database that can never hold the screen: daemon threads, each with a store of its own.

A thread cannot be stopped. So a call that does not answer in time is left behind: whoever waited gets ``TimeoutError``,
its thread is replaced (up to a cap), and leaving the console waits for none of them. What a call that timed out did is
unknown.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:  # the first screen waits for none of it
    from sexton.store.protocol import Store


class Closing(Protocol):
    """What a thread may hold between its calls."""

    def close(self) -> None: ...


Resource = TypeVar("Resource", bound="Closing | None")
Result = TypeVar("Result")
_Work = tuple[Callable[[Any], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]

Calling = Callable[[Callable[["Store"], Any], float], Awaitable[Any]]
"""A ``Calls`` whose threads hold a store."""
STUCK_LIMIT = 8


class Calls(Generic[Resource]):
    """Runs functions of what ``opening`` gives (a store) on one daemon thread; use one ``Calls`` per kind of call."""

    def __init__(self, opening: Callable[[], Resource], name: str) -> None:
        self._opening = opening
        self._name = name
        self._worker: _Worker | None = None
        self._stuck: list[_Worker] = []

    async def __call__(self, work: Callable[[Resource], Result], within: float) -> Result:
        """The result of ``work``. Raises what it raised, or ``TimeoutError`` after ``within`` seconds."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        worker = self._free_worker()
        worker.queue.put((work, loop, future))
        try:
            return await asyncio.wait_for(future, within)
        except TimeoutError:
            if worker.is_busy:
                self._leave_behind(worker)
            raise

    def close(self) -> None:
        """End the thread as soon as it is free; waits for nothing."""
        for worker in (self._worker, *self._stuck):
            if worker is not None:
                worker.queue.put(None)

    @property
    def stuck(self) -> int:
        """Threads whose call has not come back."""
        self._stuck = [worker for worker in self._stuck if worker.thread.is_alive() and worker.is_busy]
        return len(self._stuck)

    def _free_worker(self) -> _Worker:
        if self._worker is None or not self._worker.thread.is_alive():
            if self.stuck >= STUCK_LIMIT:
                raise TimeoutError(f"{STUCK_LIMIT} calls to the database have not come back")
            self._worker = _Worker(self._opening, self._name)
        return self._worker

    def _leave_behind(self, worker: _Worker) -> None:
        worker.queue.put(None)  # should its call ever come back
        self._stuck.append(worker)
        if self._worker is worker:
            self._worker = None


class _Worker:
    """A daemon thread with its queue and what it opened."""

    def __init__(self, opening: Callable[[], Closing | None], name: str) -> None:
        self.queue: SimpleQueue[_Work | None] = SimpleQueue()
        self.is_busy = False
        self._opening = opening
        self._opened: Closing | None = None
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while (item := self.queue.get()) is not None:
            work, loop, future = item
            if future.cancelled():
                continue
            self.is_busy = True
            result: object = None
            error: BaseException | None = None
            try:
                if self._opened is None:
                    self._opened = self._opening()
                result = work(self._opened)
            except BaseException as raised:  # it belongs to whoever waits
                error = raised
            self.is_busy = False
            with contextlib.suppress(RuntimeError):  # the loop has gone: nobody waits
                loop.call_soon_threadsafe(_finish, future, result, error)
        if self._opened is not None:
            with contextlib.suppress(Exception):
                self._opened.close()


def _finish(future: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if future.done():
        return  # timed out meanwhile
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
