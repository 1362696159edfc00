"""How many Python runs a warm process gets at a time.

A run alone costs a round trip between worker and process; many in one message
share it. Those behind a run that turns out long are taken back after
``STALL_SECONDS``, so that being wrong costs that much and no more. Therefore
only runs of a function that was quick lately go together, and no more than
``TOGETHER_SECONDS`` of work.
"""

from __future__ import annotations

LARGEST_HAND = 128  # runs in one process's hands
FEWEST_TOGETHER = 16
ALONE_SECONDS = 0.002  # of work: waking a second process for less would only be in the way of the first
TOGETHER_SECONDS = 0.02
STALL_SECONDS = 0.05
_FORGET = 0.1  # by how much of the difference a quick run makes up for a slow one
_REMEMBERED = 4096  # functions


class Durations:
    """How long the runs of each function took lately, in seconds: slow ones count at once, quick ones by and by."""

    def __init__(self) -> None:
        self._known: dict[str, float] = {}
        self._most: dict[str, int] = {}

    def note(self, function: str, seconds: float) -> None:
        """One more of its runs has ended, or has already taken so long."""
        known = self._known.get(function)
        if known is None and len(self._known) >= _REMEMBERED:
            self._known.clear()
            self._most.clear()
        if known is not None and seconds < known:
            seconds = known + (seconds - known) * _FORGET
        self._known[function] = seconds
        self._most[function] = most_together(seconds)

    def of(self, function: str) -> float | None:
        """None: never seen."""
        return self._known.get(function)

    def most_together(self, function: str) -> int:
        """``most_together`` of its runs; 1 if it was never seen."""
        return self._most.get(function, 1)


def most_together(seconds: float) -> int:
    """How many runs that take so long may lie in one process's hands; 1 for slow ones."""
    return max(1, min(LARGEST_HAND, int(TOGETHER_SECONDS / max(seconds, 1e-9))))


def share(waiting: int, processes: int, most: int, seconds: float = TOGETHER_SECONDS) -> int:
    """How many of the waiting runs, which take so long, one of these free processes gets; ``most``: see
    ``most_together``."""
    evenly = -(-waiting // max(1, processes))
    alone = int(min(LARGEST_HAND, ALONE_SECONDS / max(seconds, 1e-9)))
    return min(most, max(evenly, FEWEST_TOGETHER, alone))
