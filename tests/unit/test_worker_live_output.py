"""What a worker does for those who follow its runs, and that it does nothing for nobody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from sexton.errors import DatabaseUnreachable
from sexton.output_views import LiveOutput
from sexton.store.protocol import Store
from sexton_worker.lease_book import LeaseBook
from sexton_worker.live_output import LOOK_SECONDS, NET_SECONDS, LiveOutputLoop, WatchBell
from sexton_worker.zygote.frames import Seen
from tests.support.worker_fakes import WORKER, FakeClock, FakeWakeup


class Outputs:
    """The store, and the execution."""

    def __init__(self) -> None:
        self.watches: set[int] = set()
        self.asked = 0
        self.rows: list[LiveOutput] = []
        self.closed = 0
        self.written: dict[int, bytes] = {}  # by runs that have begun here
        self.looks: list[int] = []
        self.is_away = False
        self._seen: dict[int, Seen] = {}
        self.wakeup = FakeWakeup()

    @property
    def outputs(self) -> Outputs:
        return self

    def close(self) -> None:
        self.closed += 1

    def watched(self) -> frozenset[int]:
        if self.is_away:
            raise DatabaseUnreachable("away")
        self.asked += 1
        return frozenset(self.watches)

    def write_live(self, worker_id: int, outputs: Sequence[LiveOutput]) -> frozenset[int]:
        assert worker_id == WORKER
        taken = [one for one in outputs if one.token in self.watches]
        self.rows += taken
        return frozenset(one.token for one in taken)

    def look(self, token: int) -> None:
        self.looks.append(token)
        if token in self.written:
            data = self.written[token]
            self._seen[token] = Seen(token, data, b"", len(data), 0)
            self.wakeup.set()

    def seen(self) -> dict[int, Seen]:
        seen, self._seen = self._seen, {}
        return seen


class Bench:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.outputs = Outputs()
        self.book = LeaseBook()
        self.book.worker_id = WORKER
        self.seen = self.outputs.wakeup = FakeWakeup()
        self.bell = WatchBell(self.seen)
        self.loop = LiveOutputLoop(cast(Store, self.outputs), self.clock, self.outputs, self.book, self.bell, self.seen)

    def hold(self, *tokens: int) -> None:
        self.book.hold(dict.fromkeys(tokens, False), sent=self.clock.seconds, lease=30.0)

    def steps(self, seconds: float) -> None:
        until = self.clock.seconds + seconds
        while self.clock.seconds < until:
            pause = self.loop.step()
            self.clock.seconds += 0.01 if self.seen.is_set() else min(pause, until - self.clock.seconds)
            self.seen.clear()

    def shown(self) -> list[bytes]:
        return [row.stdout for row in self.outputs.rows]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_an_idle_worker_asks_nothing_and_one_with_long_runs_hardly_ever(bench: Bench) -> None:
    bench.steps(3600)
    assert bench.outputs.asked == 0
    bench.hold(1)
    bench.steps(10 * NET_SECONDS)
    assert 9 <= bench.outputs.asked <= 11
    assert bench.outputs.closed == bench.outputs.asked  # its connection, each time
    assert bench.outputs.looks == []


def test_a_followed_run_is_written_down_when_it_grew_and_at_most_twice_a_second(bench: Bench) -> None:
    bench.hold(1, 2)
    bench.outputs.written = {1: b"a", 2: b"x"}
    bench.outputs.watches.add(1)
    bench.bell.set()
    bench.steps(0.2)
    assert bench.shown() == [b"a"]
    bench.steps(10)
    assert bench.shown() == [b"a"]
    looks = len(bench.outputs.looks)
    for count in range(20):
        bench.outputs.written[1] = b"a" * (count + 2)
        bench.steps(LOOK_SECONDS / 5)
    assert len(bench.outputs.looks) - looks <= 5
    bench.steps(1)
    assert bench.shown()[-1] == b"a" * 21
    assert 2 not in bench.outputs.looks


def test_a_run_that_has_not_begun_is_shown_as_silent(bench: Bench) -> None:
    bench.hold(1)
    bench.outputs.watches.add(1)
    bench.bell.set()
    bench.steps(2)
    assert bench.shown() == [b""]
    bench.outputs.written[1] = b"a"
    bench.steps(1)
    assert bench.shown() == [b"", b"a"]


def test_nothing_is_looked_at_once_nobody_follows_or_the_run_is_over(bench: Bench) -> None:
    bench.hold(1)
    bench.outputs.written[1] = b"a"
    bench.outputs.watches.add(1)
    bench.bell.set()
    bench.steps(1)
    bench.outputs.watches.clear()
    bench.steps(5)
    looks = len(bench.outputs.looks)
    bench.steps(60)
    assert len(bench.outputs.looks) == looks
    bench.outputs.watches.add(1)
    bench.bell.set()
    bench.steps(1)
    assert bench.shown() == [b"a", b"a"]  # anew, for the row of the first time may be gone
    bench.book.release(1)
    looks = len(bench.outputs.looks)
    bench.steps(5)
    assert len(bench.outputs.looks) == looks


def test_a_watch_that_came_while_the_database_was_away_is_found_later(bench: Bench) -> None:
    bench.hold(1)
    bench.outputs.written[1] = b"a"
    bench.outputs.watches.add(1)
    bench.outputs.is_away = True
    bench.bell.set()
    with pytest.raises(DatabaseUnreachable):
        bench.loop.step()
    bench.outputs.is_away = False
    bench.steps(1)
    assert bench.shown() == [b"a"]
