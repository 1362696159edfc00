"""A race: no leader; every node decides ticks, and the cursors' compare-and-set says whose decision counts.

What racers share lies in the database alone: the pass over missed ticks, with its count, and who won what.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

THE_RACE = "the race"
"""Who led, where a leader follows a race, and who leads a race's term, as takeovers name it."""


@dataclass(frozen=True, slots=True)
class RacePass:
    """The race's newest pass over missed ticks. ``fired``: by all racers so far; ``holds``: it must fire no more.

    ``is_awaited``: the race's term has just begun, and a pass is to tell what was missed before it.
    """

    number: int
    is_open: bool
    fired: int
    holds: bool
    is_awaited: bool = False


@dataclass(frozen=True, slots=True)
class PassShare:
    """What makes a commit part of a pass: written only while that is open, and its count stays within bounds.

    ``fires``: what the commit would add to the count. ``paced``: ``(job_id, scheduled_at)`` of the claims that start
    when the catch-up budget lets them; their ``available_at`` stands as if the budget were free at ``planned_at``,
    and the commit itself draws ``rate`` a second from it.
    """

    number: int
    fires: int
    hold_above: int
    rate: float = 1.0
    paced: frozenset[tuple[int, datetime]] = frozenset()


@dataclass(frozen=True, slots=True)
class RaceCounts:
    """What racing cost. ``attempts``: cursors that were to be moved; ``conflicts``: those of them that others had moved
    or locked; ``ticks``: decided by those that moved."""

    attempts: int = 0
    conflicts: int = 0
    ticks: int = 0

    def plus(self, other: RaceCounts) -> RaceCounts:
        """Both together."""
        return RaceCounts(self.attempts + other.attempts, self.conflicts + other.conflicts, self.ticks + other.ticks)

    @property
    def attempts_a_tick(self) -> float | None:
        """None before the first tick."""
        return None if not self.ticks else self.attempts / self.ticks
