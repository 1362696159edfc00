"""Database time and elapsed seconds of one worker, each from the other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from sexton.clock import Clock, DatabaseTime

T = TypeVar("T")


class WorkerTime:
    """Database time as last observed. A worker decides nothing by it but when to look again and what to note down,
    so it follows every jump of the database's clock at once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._database = DatabaseTime(clock)

    def observed(self, ask: Callable[[], T], now_in: Callable[[T], datetime]) -> T:
        """The answer of ``ask``, which carries the database's clock (``now_in``), noted on the way."""
        asked_at = self._clock.elapsed()
        answer = ask()
        database_now, answered_at = now_in(answer), self._clock.elapsed()
        self._database.observe(database_now, asked_at, answered_at)
        if not self._database.is_trusted:
            self._database.accept(database_now, asked_at, answered_at)
        return answer

    def now(self) -> datetime:
        """Database time now (UTC). Call only after the first ``observed``."""
        return self._database.now()

    def instant(self, elapsed: float) -> datetime:
        """Database time (UTC) at that reading of the elapsed clock: a later one is never an earlier instant, unless
        the database's clock jumped between the calls."""
        return self._database.at(elapsed)

    def elapsed(self, instant: datetime) -> float:
        """The reading of the elapsed clock at that database time."""
        return self._clock.elapsed() + (instant - self._database.now()).total_seconds()
