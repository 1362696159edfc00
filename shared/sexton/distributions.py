"""How durations are distributed, counted so cheaply that each run may be."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


class Distribution:
    """How many values fell at or below each bound (seconds), and their sum.

    One thread adds; others read what is there, each number for itself.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)  # the last: above all bounds
        self.total = 0.0

    def add(self, *values: float) -> None:
        """Count these."""
        counts, bounds = self.counts, self.bounds
        for value in values:
            counts[bisect_left(bounds, value)] += 1
        self.total += sum(values)

    def cumulative(self) -> tuple[list[tuple[float, int]], float]:
        """``(bound, values at or below it)`` in rising order, the last bound being infinite; and the sum."""
        counts, total = list(self.counts), self.total
        found, seen = [], 0
        for bound, count in zip((*self.bounds, float("inf")), counts, strict=True):
            seen += count
            found.append((bound, seen))
        return found, total
