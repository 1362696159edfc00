"""When caught-up ticks may start: the cluster's budget, as one leader draws on it under its term."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sexton.store.protocol import Store
from sexton_scheduler.core.pacing import start_instants


class CatchUpBudget:
    """Starts drawn from the budget. Those that a refused commit did not use serve the next one, so that a commit that
    is tried again, however often, moves the budget no further than time itself does."""

    def __init__(self, store: Store, term: int) -> None:
        self.term = term
        self._store = store
        self._unused: list[datetime] = []

    def take(self, count: int, rate: float, now: datetime) -> list[datetime] | None:
        """``count`` starts in order, none before ``now`` (UTC); None where the term is over or the cluster is halted.

        Starts that have passed unused are drawn anew: used late, they would come all at once.
        """
        kept = [start for start in self._unused if start >= now]
        starts, self._unused = kept[:count], kept[count:]
        if (missing := count - len(starts)) > 0:
            first = self._store.ticks.reserve_budget(self.term, missing, rate)
            if first is None:
                self._unused = starts
                return None
            starts += start_instants(first, missing, rate)
        return starts

    def give_back(self, starts: Iterable[datetime]) -> None:
        """These were certainly not used."""
        self._unused = sorted([*self._unused, *starts])
