"""When caught-up ticks start: one cluster-wide rate, whoever caught them up.

The budget's next instant is a row of the database (``TickStore.reserve_budget``);
this is the arithmetic on it.
"""

from __future__ import annotations

from datetime import datetime, timedelta


def start_instants(first: datetime, count: int, rate: float) -> list[datetime]:
    """``count`` instants from ``first`` on, ``1 / rate`` seconds apart; whole microseconds, none lost to rounding."""
    return [first + timedelta(microseconds=round(number * 1_000_000 / rate)) for number in range(count)]
