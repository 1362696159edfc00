"""Time as an argument: the one place that reads clocks, and database time from a local clock.

Two clocks exist. *Elapsed* seconds (CLOCK_BOOTTIME: never steps, counts while
the machine sleeps) measure waits. *Database time* is what ticks are compared
with: the elapsed clock plus an offset measured against the database.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
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
_SLEW = 0.5  # how fast database time runs, by the elapsed clock, while it was ahead of the database
_REMEMBERED = 256  # corrections
_ROUNDING = 0.001  # seconds; far more than instants and readings are rounded by


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Database time since the elapsed clock read ``since``; it stood at ``peak`` then, which it does not go below."""

    since: float
    offset: timedelta  # database time since the epoch, minus the elapsed clock
    peak: datetime | None = None  # None: the first stretch, which also stands for all before it
    _origin: datetime = field(init=False)  # database time when the elapsed clock read 0
    _slow_until: float = field(init=False)  # the elapsed clock's reading from which the peak no longer counts

    def __post_init__(self) -> None:  # once for each stretch, while ``at`` is asked twice for each run
        origin = _EPOCH + self.offset
        object.__setattr__(self, "_origin", origin)
        slow_until = float("-inf")
        if self.peak is not None:
            slow_until = ((self.peak - origin).total_seconds() - _SLEW * self.since) / (1 - _SLEW) + _ROUNDING
        object.__setattr__(self, "_slow_until", slow_until)

    def at(self, elapsed: float) -> datetime:
        line = self._origin + timedelta(0, elapsed)
        if elapsed >= self._slow_until or self.peak is None:
            return line
        return max(line, self.peak + timedelta(seconds=(elapsed - self.since) * _SLEW))


class DatabaseTime:
    """Database time between two measurements, as the elapsed clock plus an offset.

    ``observe`` takes a reading of the database's clock; ``now`` extrapolates it. A reading is uncertain by half its
    round trip: the offset is corrected only as far as the reading contradicts it, so a slow one changes nothing. If a
    reading differs from the extrapolation by more than ``JUMP_LIMIT`` and what both are uncertain by, the jump is kept
    in ``jump`` and ``is_trusted`` is false until ``accept``.

    Between two calls of ``accept`` time never steps back: after a correction backwards it runs slower until the
    database has caught up. ``at`` gives each reading of the elapsed clock the time that held then.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stretches: list[_Stretch] = []
        self._uncertain = timedelta(0)  # by how much the offset may be wrong, as of its reading
        self.jump: timedelta | None = None

    def observe(self, database_now: datetime, asked_at: float, answered_at: float) -> None:
        """Take a reading; ``asked_at`` and ``answered_at`` are elapsed seconds around it."""
        uncertain = timedelta(seconds=(answered_at - asked_at) / 2)
        offset = (database_now - _EPOCH) - timedelta(seconds=(asked_at + answered_at) / 2)
        if not self._stretches:
            self._stretches.append(_Stretch(answered_at, offset))
            self._uncertain = uncertain
            return
        last = self._stretches[-1]
        drift = offset - last.offset
        if abs(drift) > JUMP_LIMIT + uncertain + self._uncertain:
            self.jump = drift
            return
        self.jump = None
        corrected = min(max(last.offset, offset - uncertain), offset + uncertain)
        if corrected != last.offset:
            self._stretches.append(_Stretch(answered_at, corrected, last.at(answered_at)))
            del self._stretches[:-_REMEMBERED]
        self._uncertain = min(self._uncertain, abs(offset - corrected) + uncertain)

    def accept(self, database_now: datetime, asked_at: float, answered_at: float) -> None:
        """Take the reading as the truth, however far it is from the last."""
        self._stretches.clear()
        self.jump = None
        self.observe(database_now, asked_at, answered_at)

    @property
    def is_trusted(self) -> bool:
        return bool(self._stretches) and self.jump is None

    def now(self) -> datetime:
        """Database time now (UTC). Call only after the first ``observe``."""
        return self.at(self._clock.elapsed())

    def at(self, elapsed: float) -> datetime:
        """Database time (UTC) at that reading of the elapsed clock. Call only after the first ``observe``."""
        if not self._stretches:
            raise RuntimeError("database time was never observed")
        if elapsed >= (last := self._stretches[-1]).since:
            return last.at(elapsed)  # as nearly always, and asked twice for each run
        for stretch in reversed(self._stretches):
            if elapsed >= stretch.since:
                return stretch.at(elapsed)
        # Before all that is remembered: along the oldest stretch's own line.
        oldest = self._stretches[0]
        return _Stretch(oldest.since, oldest.offset).at(elapsed)

    def host_offset(self) -> timedelta:
        """Database clock minus this host's wall clock."""
        return self.now() - self._clock.wall()


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
