from __future__ import annotations

import asyncio
import threading
import time

import pytest

from sexton_tui.console.calls import STUCK_LIMIT, Calls
from tests.support.waiting import eventually


class Opened:
    def __init__(self) -> None:
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()


def test_a_call_has_the_resource_opened_once_and_its_errors_are_the_callers() -> None:
    opened: list[Opened] = []

    def opening() -> Opened:
        opened.append(Opened())
        return opened[-1]

    async def scenario() -> None:
        calls = Calls(opening, "test")
        assert await calls(lambda one: one is opened[0], 10)
        assert await calls(lambda one: one is opened[0], 10)
        with pytest.raises(ZeroDivisionError):
            await calls(lambda _: 1 / 0, 10)
        calls.close()

    asyncio.run(scenario())
    assert len(opened) == 1
    assert opened[0].closed.wait(60)


def test_a_hanging_call_is_left_behind_and_holds_nobody() -> None:
    go_on = threading.Event()

    async def scenario() -> None:
        calls = Calls(Opened, "test")
        with pytest.raises(TimeoutError):
            await calls(lambda _: go_on.wait(60), 0.01)
        assert calls.stuck == 1
        assert await calls(lambda _: "answered", 10) == "answered"  # a new thread
        calls.close()

    before = time.monotonic()
    asyncio.run(scenario())
    assert time.monotonic() - before < 30  # leaving the loop did not wait for the call
    go_on.set()


def test_stuck_threads_are_capped() -> None:
    go_on = threading.Event()

    async def scenario() -> None:
        calls = Calls(Opened, "test")
        for _ in range(STUCK_LIMIT):
            with pytest.raises(TimeoutError):
                await calls(lambda _: go_on.wait(60), 0.01)
        threads = threading.active_count()
        with pytest.raises(TimeoutError, match="have not come back"):
            await calls(lambda _: None, 10)
        assert threading.active_count() == threads
        go_on.set()
        eventually(lambda: not calls.stuck, within=60, what="the stuck calls come back")
        assert await calls(lambda _: "back", 10) == "back"  # they came back: the cap is lifted
        calls.close()

    asyncio.run(scenario())


def test_threads_are_daemons() -> None:
    async def scenario() -> bool:
        calls = Calls(Opened, "test")
        is_daemon = await calls(lambda _: threading.current_thread().daemon, 10)
        calls.close()
        return is_daemon

    assert asyncio.run(scenario())
