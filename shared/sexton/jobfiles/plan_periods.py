"""How far apart a schedule's ticks are."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise

from sexton.schedules import Schedule

_LOOKED_AT = 50
_AHEAD = timedelta(days=3660)


def shortest_period(schedule: Schedule, after: datetime) -> timedelta | None:
    """The shortest time between two of the next ticks; None where there are not two of them."""
    return min(_periods(schedule, after), default=None)  # type: ignore[arg-type]  # schedules are frozen values


def longest_period(schedule: Schedule, after: datetime) -> timedelta | None:
    """The longest time between two of the next ticks; None where there are not two of them."""
    return max(_periods(schedule, after), default=None)  # type: ignore[arg-type]  # schedules are frozen values


@lru_cache(maxsize=4096)
def _periods(schedule: Schedule, after: datetime) -> tuple[timedelta, ...]:
    ticks = islice(schedule.between(after, after + _AHEAD), _LOOKED_AT)
    return tuple(later - earlier for earlier, later in pairwise(ticks))
