"""The inputs of the ticks: zone data and tick engine. Same inputs, same ticks, on every node (invariant 8)."""

from __future__ import annotations

from dataclasses import dataclass

from sexton.schedules import TICK_ENGINE_VERSION
from sexton.zones import zone_data_version


@dataclass(frozen=True, slots=True)
class Inputs:
    """What ticks depend on beside the revision. Stored with the cluster and with every revision."""

    zone_data: str  # the IANA version of the tzdata package, e.g. "2026b"
    engine: int  # raised only when the tick engine's arithmetic changes

    @property
    def inputs_id(self) -> str:
        return f"{self.zone_data}/{self.engine}"


def own_inputs() -> Inputs:
    """The inputs of this process."""
    return Inputs(zone_data_version(), TICK_ENGINE_VERSION)
