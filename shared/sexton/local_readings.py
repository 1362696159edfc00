"""What a reading of the clock on the wall means: no instant, one, or two.

A reading is a naive datetime in a zone. Where the zone's clock jumped over it, no instant shows it, and the first
instant after the jump stands in; where the clock shows it twice, there are two.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sexton.tick_marks import ClockChange, clock_changes
from sexton.zones import load_zone

_AROUND = timedelta(days=3)  # a date line is a day


@dataclass(frozen=True, slots=True)
class LocalReading:
    """``instants`` (UTC, ascending) that show the reading; where there is none, ``jump`` is what jumped over it."""

    reading: datetime
    zone: str
    instants: tuple[datetime, ...]
    jump: ClockChange | None = None


def find_reading(reading: datetime, zone: str) -> LocalReading:
    """The instants at which the clock of ``zone`` shows this naive ``reading``. Raises InvalidSchedule for an unknown
    zone."""
    tz = load_zone(zone)
    shown = set()
    for fold in (0, 1):
        instant = reading.replace(tzinfo=tz, fold=fold).astimezone(UTC)
        if instant.astimezone(tz).replace(tzinfo=None) == reading:
            shown.add(instant)
    if shown:
        return LocalReading(reading, zone, tuple(sorted(shown)))
    around = reading.replace(tzinfo=UTC)
    for change in clock_changes(zone, around - _AROUND, around + _AROUND):
        if change.at + change.before <= around < change.at + change.after:
            return LocalReading(reading, zone, (), change)
    raise AssertionError("a reading that no instant shows was jumped over")
