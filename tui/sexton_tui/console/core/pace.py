"""What the console may ask of the database next: at most ``STATEMENTS_A_SECOND``, whatever is on the screen.

A purse fills by the second. Who leads is read every second, at one statement. The other parts of the overview have
periods, and no two of them fall into one second. A view is read as often as the purse pays what it cost last: one of
more statements, less often. What a key asked for is read at once and paid afterwards, until the debt is too high.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sexton.cluster_views import OverviewPart

STATEMENTS_A_SECOND = 5.0
PERIODS: Mapping[OverviewPart, float] = {OverviewPart.WORK: 2.0, OverviewPart.STANDING: 6.0}
"""Seconds until a part is read again."""
_USUAL_COST = 3.0  # of a view that was never read
_MOST_DEBT = 20.0
_SLACK = 0.05  # seconds by which a poll may come early


@dataclass(frozen=True, slots=True)
class Turn:
    """What is read now, beside who leads."""

    parts: frozenset[OverviewPart]
    view: bool


@dataclass(frozen=True, slots=True)
class Pace:
    """What was read when, and the statements that may still be made. Seconds are those of a monotonic clock."""

    at: float = 0.0
    purse: float = STATEMENTS_A_SECOND
    read_at: Mapping[OverviewPart, float] = field(default_factory=dict)
    costs: Mapping[str, float] = field(default_factory=dict)  # of views, by their name

    def turn(self, now: float, view: str, *, is_asked: bool) -> Turn:
        """What to read now. ``is_asked``: a key waits for it."""
        purse = self._filled(now) - 1
        part = self._most_overdue(now)
        parts = frozenset() if part is None or purse < 1 else frozenset({part})
        purse -= len(parts)
        cost = self.costs.get(view, _USUAL_COST)
        enough = min(cost, STATEMENTS_A_SECOND - 1 - len(parts))
        # Where no key waits, a part has its turn before a view that leaves nothing.
        return Turn(parts, view=purse >= enough - _SLACK * STATEMENTS_A_SECOND or (is_asked and purse > -_MOST_DEBT))

    def wait(self, now: float) -> float:
        """Seconds until what a key asked for may be read, should the debt be too high."""
        return max(0.0, (1 - _MOST_DEBT - self._filled(now)) / STATEMENTS_A_SECOND)

    def spent(self, now: float, turn: Turn, statements: int, view: str, view_statements: int | None) -> Pace:
        """After this many statements; ``view_statements``: those of the view, where it was read."""
        costs = dict(self.costs)
        if view_statements is not None:
            costs[view] = float(view_statements)
        read_at = {**self.read_at, **dict.fromkeys(turn.parts, now)}
        return replace(self, at=now, purse=self._filled(now) - statements, read_at=read_at, costs=costs)

    def began(self, now: float) -> Pace:
        """With everything read for the first time: that is on the house."""
        # The two parts are due in different seconds from the start.
        return Pace(now, STATEMENTS_A_SECOND, {part: now - place for place, part in enumerate(PERIODS)}, self.costs)

    def acted(self) -> Pace:
        """Something was changed: every part is due."""
        return replace(self, read_at={})

    def _filled(self, now: float) -> float:
        return min(STATEMENTS_A_SECOND, self.purse + max(now - self.at, 0.0) * STATEMENTS_A_SECOND)

    def _most_overdue(self, now: float) -> OverviewPart | None:
        overdue = {part: now - self.read_at.get(part, -math.inf) - period for part, period in PERIODS.items()}
        part = max(overdue, key=lambda one: overdue[one])
        return part if overdue[part] >= -_SLACK else None
