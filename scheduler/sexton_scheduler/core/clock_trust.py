"""When a leader may decide by the database's clock, after that clock has jumped."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

ACCEPT_ALONE_AFTER = 60.0
"""Seconds after which a lone node takes a clock that jumped for the truth."""

AGREE_WITHIN = timedelta(seconds=2)


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

    def reason_to_accept(
        self, elapsed: float, accepts: int, own: timedelta, others: Collection[timedelta]
    ) -> str | None:
        """Why the clock may be taken for the truth now, or None.

        ``own`` and ``others``: the database's clock minus the host's, as this and the other living nodes read it
        last. A second host that reads the same difference agrees; with nobody to ask, time must pass. ``clock accept``
        ends every doubt.
        """
        if self._doubted_from is None:
            return None
        if accepts > self._accepts:
            return "an operator accepted it"
        if any(abs(other - own) <= AGREE_WITHIN for other in others):
            return "a second node agrees"
        if not others and elapsed - self._doubted_from >= ACCEPT_ALONE_AFTER:
            return f"a lone node for {ACCEPT_ALONE_AFTER:.0f} s"
        return None
