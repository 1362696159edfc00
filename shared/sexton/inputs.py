"""The inputs of the ticks: zone data, tick engine, public holidays. Same inputs, same ticks everywhere (invariant 8).

Their id is what is stored and compared: `2026b/1/0.109`. Before holidays could be excluded it had two parts; such an id
still names the same inputs, for what was computed under it knew no holidays.
"""

from __future__ import annotations

from dataclasses import dataclass

from sexton.excluded_days import ExcludedSchedule
from sexton.public_holidays import holiday_data_version
from sexton.schedule_unions import UnionSchedule
from sexton.schedules import TICK_ENGINE_VERSION, BoundedSchedule, EverySchedule, InstantsSchedule, Schedule
from sexton.zones import zone_data_version


@dataclass(frozen=True, slots=True)
class Inputs:
    """What ticks depend on beside the revision. Stored with the cluster and with every revision."""

    zone_data: str  # the IANA version of the tzdata package, e.g. "2026b"
    engine: int  # raised only when the tick engine's arithmetic changes
    holidays: str  # the version of the holidays package, e.g. "0.109"

    @property
    def inputs_id(self) -> str:
        return f"{self.zone_data}/{self.engine}/{self.holidays}"


def own_inputs() -> Inputs:
    """The inputs of this process."""
    return Inputs(zone_data_version(), TICK_ENGINE_VERSION, holiday_data_version())


def id_without_holidays(zone_data: str, engine: int) -> str:
    """What the inputs were called before public holidays were among them."""
    return f"{zone_data}/{engine}"


def are_same(stored: str, here: str) -> bool:
    """Whether ticks that were computed with the inputs of one id are those of the other's."""
    return stored == here or (stored.count("/") == 1 and here.startswith(f"{stored}/"))


def differ_for(schedule: Schedule, stored: str, here: str) -> bool:
    """Whether this schedule's ticks may be others with the inputs of one id than with those of the other: zone data
    says nothing to intervals and to UTC, holidays only to who excludes some."""
    if are_same(stored, here):
        return False
    before, now = (f"{inputs}//".split("/")[:3] for inputs in (stored, here))
    if before[1] != now[1]:
        return True
    depends_on_zone, depends_on_holidays = _dependences(schedule)
    return (depends_on_zone and before[0] != now[0]) or (depends_on_holidays and before[2] != now[2])


def _dependences(schedule: Schedule) -> tuple[bool, bool]:
    match schedule:
        case EverySchedule() | InstantsSchedule():
            return False, False
        case BoundedSchedule():
            return _dependences(schedule.inner)
        case UnionSchedule():
            of_parts = [_dependences(part) for part in schedule.parts]
            return any(zone for zone, _ in of_parts), any(holidays for _, holidays in of_parts)
        case ExcludedSchedule():
            on_zone, _ = _dependences(schedule.inner)
            return on_zone or schedule.zone != "UTC", bool(schedule.days.regions)
    return getattr(schedule, "zone", "") != "UTC", False
