"""Arithmetic progressions of whole numbers: what they share, and how many numbers several have together.

The meeting of two is one again (Chinese remainder theorem), so that a union is counted by inclusion and exclusion. A
meeting that has no number in the range ends its branch: the cost is the number of meetings that have one, not the
length of the range.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import gcd


@dataclass(frozen=True, slots=True)
class Progression:
    """Every whole number that is `phase` more than a multiple of `interval`; 0 <= phase < interval."""

    interval: int
    phase: int

    def count(self, start: int, stop: int) -> int:
        """How many of its numbers lie in [start, stop)."""
        return max((stop - 1 - self.phase) // self.interval - (start - 1 - self.phase) // self.interval, 0)

    def matches(self, number: int) -> bool:
        return (number - self.phase) % self.interval == 0

    def meeting(self, other: "Progression") -> "Progression | None":
        """The numbers that both have; None when there are none."""
        divisor = gcd(self.interval, other.interval)
        steps, rest = divmod(other.phase - self.phase, divisor)
        if rest:
            return None
        step = other.interval // divisor
        interval = self.interval * step
        taken = steps * pow(self.interval // divisor, -1, step) % step
        return Progression(interval, (self.phase + taken * self.interval) % interval)


def count_union(progressions: Iterable[Progression], start: int, stop: int) -> int:
    """How many whole numbers in [start, stop) are in at least one of them."""
    total = 0
    counted: list[Progression] = []
    for one in _without_subsets(set(progressions)):
        meetings = (one.meeting(other) for other in counted)
        shared = [meeting for meeting in meetings if meeting is not None and meeting.count(start, stop)]
        total += one.count(start, stop) - (count_union(shared, start, stop) if shared else 0)
        counted.append(one)
    return total


def _without_subsets(progressions: Iterable[Progression]) -> Sequence[Progression]:
    """Those that lie in no other, by their interval."""
    kept: list[Progression] = []
    for one in sorted(progressions, key=lambda each: (each.interval, each.phase)):
        if not any(one.interval % other.interval == 0 and other.matches(one.phase) for other in kept):
            kept.append(one)
    return kept
