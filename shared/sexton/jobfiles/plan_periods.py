"""How far apart a schedule's ticks are."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice, pairwise

from sexton.schedules import Schedule

_LOOKED_AT = 50


def shortest_period(schedule: Schedule, after: datetime) -> timedelta | None:
    """The shortest time between two of the next ticks; None where there are not two of them."""
    ticks = islice(schedule.between(after, after + timedelta(days=3660)), _LOOKED_AT)
    return min((later - earlier for earlier, later in pairwise(ticks)), default=None)
