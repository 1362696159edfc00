"""Whether the leader's heartbeat has stood still, seen by this node's own elapsed clock.

Stillness counts only over an unbroken row of successful reads: while this node
could not read, or was itself frozen, the leader may have been unable to beat, and
the watch begins anew. No two hosts' clocks are compared.
"""

from __future__ import annotations


class HeartbeatWatch:
    """The reads of one heartbeat row, and since when it has not moved."""

    def __init__(self) -> None:
        self._seen: tuple[int, int] | None = None
        self._still_from = 0.0
        self._read_at = 0.0

    def saw(self, term: int, counter: int, elapsed: float, longest_break: float) -> None:
        """A read succeeded. ``longest_break``: seconds between two reads beyond which the watch begins anew."""
        moved = self._seen != (term, counter)
        if moved or elapsed - self._read_at > longest_break:
            self._still_from = elapsed
        self._seen = (term, counter)
        self._read_at = elapsed

    def interrupted(self) -> None:
        """A read failed, or this node led meanwhile."""
        self._seen = None

    @property
    def seen(self) -> tuple[int, int] | None:
        """The last ``(term, counter)`` read."""
        return self._seen

    def still_for(self) -> float:
        """Seconds for which the heartbeat is known not to have moved, up to the last read."""
        return 0.0 if self._seen is None else self._read_at - self._still_from
