"""When a leader may decide by the database's clock, after that clock has jumped."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

ACCEPT_ALONE_AFTER = 60.0
"""Seconds after which a lone node takes a clock that jumped for the truth."""

AGREE_WITHIN = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class Reading:
    """The database's clock as a node saw it last: minus its host's, and by how much it saw it ``jump`` lately."""

    offset: timedelta
    jump: timedelta | None = None

    def agrees(self, other: Reading) -> bool:
        """A host whose own clock is wrong reads another difference, but sees the same jump."""
        if abs(self.offset - other.offset) <= AGREE_WITHIN:
            return True
        return self.jump is not None and other.jump is not None and abs(self.jump - other.jump) <= AGREE_WITHIN


class ClockTrust:
    """Since when the database's clock has been in doubt, by this node's elapsed clock."""

    def __init__(self) -> None:
        self._doubted_from: float | None = None
        self._accepts = 0  # how often operators had accepted the clock when it was last trusted

    @property
    def is_in_doubt(self) -> bool:
        return self._doubted_from is not None

    def saw(self, is_trusted: bool, elapsed: float, accepts: int) -> bool:
        """Note a reading, and the number of ``clock accept`` that came with it; whether a doubt begins with it."""
        begins = not is_trusted and self._doubted_from is None
        if is_trusted:
            self._doubted_from = None
            self._accepts = accepts
        elif begins:
            self._doubted_from = elapsed
        return begins

    def reason_to_accept(self, elapsed: float, accepts: int, own: Reading, others: Collection[Reading]) -> str | None:
        """Why the clock may be taken for the truth now, or None.

        ``others``: of the other living nodes. A second one may agree; with nobody to ask, time must pass.
        ``clock accept`` ends every doubt.
        """
        if self._doubted_from is None:
            return None
        if accepts > self._accepts:
            return "an operator accepted it"
        if any(own.agrees(other) for other in others):
            return "a second node agrees"
        if not others and elapsed - self._doubted_from >= ACCEPT_ALONE_AFTER:
            return f"a lone node for {ACCEPT_ALONE_AFTER:.0f} s"
        return None
