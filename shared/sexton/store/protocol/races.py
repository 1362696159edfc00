"""What the racers of ``strategy: race`` share: the pass over missed ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from sexton.races import RacePass


class RaceStore(Protocol):
    """The race's pass over missed ticks; whatever is fired in it is counted by the commit that fires it."""

    def newest_pass(self) -> RacePass:
        """The newest pass, open or ended; number 0 before the first."""
        ...

    def open_pass(
        self, term: int, after: int, found: int, hold_above: int, gap_from: datetime | None = None
    ) -> RacePass | None:
        """Open the pass that follows number ``after``, by compare-and-set; None: it is not the newest, is still open,
        the term is over, or the cluster halted.

        ``found``: how many ticks the caller would fire, of jobs read after it saw pass ``after``. With what a leader's
        unfinished pass has fired they say whether the pass holds. ``gap_from``: as in ``note_pass``.
        """
        ...

    def end_pass(self, term: int, number: int) -> bool:
        """Nothing of it is left; whether it was open. Ends unfinished passes of the leader before, too."""
        ...
