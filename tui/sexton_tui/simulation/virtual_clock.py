"""The clock of one process on virtual time."""

from __future__ import annotations

from datetime import datetime, timedelta

from sexton.clock import Wakeup
from sexton_tui.simulation.world import SECOND, VirtualWakeup, World


class VirtualClock:
    """A `Clock` whose host booted at a time of its own, and whose wall clock is wrong by ``skew``."""

    def __init__(self, world: World, booted: float, skew: timedelta) -> None:
        self._world = world
        self._booted = booted
        self._skew = skew

    def elapsed(self) -> float:
        return self._booted + self._world.micros / SECOND

    def wall(self) -> datetime:
        return self._world.host_now() + self._skew

    def wakeup(self) -> Wakeup:
        return VirtualWakeup(self._world)

    def wait(self, wakeup: Wakeup, seconds: float) -> bool:
        assert isinstance(wakeup, VirtualWakeup)  # noqa: S101 - made by wakeup() above
        return self._world.wait(wakeup, int(seconds * SECOND))
