"""When a warm process has served long enough: what jobs leave in it (memory, above all) goes with it."""

from __future__ import annotations

from dataclasses import dataclass

LOOK_EVERY = 1.0  # seconds between two looks at a process's memory
TRY_AGAIN = 60.0  # seconds, where none could be started in its place


@dataclass(frozen=True, slots=True)
class WearLimits:
    """``runs`` that a process makes, and bytes of resident ``memory`` with which it may go on; None for no limit."""

    runs: int | None = None
    memory: int | None = None

    def are_reached(self, runs: int, memory: int) -> bool:
        """By a process that made so many runs and holds so much."""
        return (self.runs is not None and runs >= self.runs) or (self.memory is not None and memory >= self.memory)


NO_WEAR = WearLimits()
