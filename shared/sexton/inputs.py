"""The inputs of the ticks: zone data, tick engine, public holidays. Same inputs, same ticks everywhere (invariant 8).

Their id is what is stored and compared: `2026b/1/0.109`. Before holidays could be excluded it had two parts; such an id
still names the same inputs, for what was computed under it knew no holidays.
"""

from __future__ import annotations

from dataclasses import dataclass

from sexton.public_holidays import holiday_data_version
from sexton.schedules import TICK_ENGINE_VERSION
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
