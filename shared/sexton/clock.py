"""Time as an argument: the one place that reads clocks, and database time from a local clock.

Two clocks exist. *Elapsed* seconds (CLOCK_BOOTTIME: never steps, counts while
the machine sleeps) measure waits. *Database time* is what ticks are compared
with: the elapsed clock plus an offset measured against the database.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Wakeup(Protocol):
    """Something a loop can be woken by, from any thread."""

    def set(self) -> None: ...

    def clear(self) -> None: ...

    def is_set(self) -> bool: ...


class Clock(Protocol):
    """What loops know of time. The simulator gives them a virtual one."""

    def elapsed(self) -> float:
        """Seconds that never step back, sleep of the machine included."""
        ...

    def wall(self) -> datetime:
        """The host's UTC time; for logs and clock offsets only, never for ticks."""
        ...

    def wakeup(self) -> Wakeup:
        """A new wake-up for this clock's ``wait``."""
        ...

    def wait(self, wakeup: Wakeup, seconds: float) -> bool:
        """Wait until ``wakeup`` is set or ``seconds`` have passed; whether it was set. Does not clear it."""
        ...


class SystemClock:
    """The real clocks of this host."""

    def elapsed(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def wall(self) -> datetime:
        return datetime.now(UTC)

    def wakeup(self) -> Wakeup:
        return threading.Event()

    def wait(self, wakeup: Wakeup, seconds: float) -> bool:
        assert isinstance(wakeup, threading.Event)  # noqa: S101 - made by wakeup() above
        return wakeup.wait(max(0.0, seconds))


JUMP_LIMIT = timedelta(seconds=2)
_PRECISE = timedelta(milliseconds=50)


class DatabaseTime:
    """Database time between two measurements, as the elapsed clock plus an offset.

    ``observe`` takes a reading of the database's clock; ``now`` extrapolates it. A reading that was slow to come is
    uncertain by half its round trip: within that it changes nothing. If a reading differs from the extrapolation by
    more than ``JUMP_LIMIT`` and what both are uncertain by, the jump is kept in ``jump`` and ``is_trusted`` is false
    until ``accept``.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset: timedelta | None = None
        self._uncertain = timedelta(0)  # by how much the offset may be wrong, as of its reading
        self.jump: timedelta | None = None

    def observe(self, database_now: datetime, asked_at: float, answered_at: float) -> None:
        """Take a reading; ``asked_at`` and ``answered_at`` are elapsed seconds around it."""
        uncertain = timedelta(seconds=(answered_at - asked_at) / 2)
        offset = (database_now - _EPOCH) - timedelta(seconds=(asked_at + answered_at) / 2)
        if self._offset is not None:
            drift = offset - self._offset
            if abs(drift) > JUMP_LIMIT + uncertain + self._uncertain:
                self.jump = drift
                return
            self.jump = None
            if uncertain > _PRECISE and abs(drift) <= uncertain:
                return  # the reading says nothing that the better one before it did not say
        self._offset = offset
        self._uncertain = uncertain

    def accept(self, database_now: datetime, asked_at: float, answered_at: float) -> None:
        """Take the reading as the truth, however far it is from the last."""
        self._offset = None
        self.jump = None
        self.observe(database_now, asked_at, answered_at)

    @property
    def is_trusted(self) -> bool:
        return self._offset is not None and self.jump is None

    def now(self) -> datetime:
        """Database time now (UTC). Call only after the first ``observe``."""
        if self._offset is None:
            raise RuntimeError("database time was never observed")
        return _EPOCH + self._offset + timedelta(seconds=self._clock.elapsed())

    def host_offset(self) -> timedelta:
        """Database clock minus this host's wall clock."""
        return self.now() - self._clock.wall()


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
