"""Reads of what was decided: the catch-up, proposals, takeovers, the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sexton.catch_up import CatchUp
from sexton.errors import NotFound
from sexton.hold_views import HoldDetail, HoldView
from sexton.holds import Pace
from sexton.store import read_catch_up, read_holds, read_takeovers
from sexton.store.reading.transaction import ReadTransactions
from sexton.views import EventView, GapView, TakeoverDetail, TakeoverView


class DecisionReads(ReadTransactions):
    """What was decided, by whom, and what waits for an answer."""

    def catch_up(self) -> CatchUp:
        """What waits under the catch-up budget, and when it will be done; counts up to 100,000 claims."""
        with self._connect() as connection:
            return read_catch_up.read_catch_up(connection, self._now(connection))

    def holds(self, job_id: int | None = None, limit: int = 100, *, answered: bool = False) -> tuple[HoldView, ...]:
        """Open proposals, oldest first; with `answered` all of them, the newest first."""
        with self._connect() as connection:
            return read_holds.read_holds(connection, self._now(connection), job_id, limit, answered=answered)

    def pace(self) -> Pace:
        """The catch-up budget as it stands: when what is decided to run now could start."""
        with self._connect() as connection:
            return read_holds.read_pace(connection, self._now(connection))

    def hold(self, proposal_id: int) -> HoldDetail:
        """One proposal with the ticks it holds. Raises ``NotFound``."""
        with self._connect() as connection:
            return read_holds.read_hold(connection, self._now(connection), proposal_id)

    def takeovers(self, limit: int = 20, known: Sequence[TakeoverView] = ()) -> tuple[TakeoverView, ...]:
        """The newest takeovers with the sums of their decisions, newest first.

        `known`: as they were read before. A term that was over then decides no more: it is not summed again.
        """
        with self._connect() as connection:
            return read_takeovers.read_takeovers(connection, limit, known=known)

    def takeover(self, term: int, limit: int = 500, gap_until: datetime | None = None) -> TakeoverDetail:
        """One takeover with its decisions by job; with `gap_until` those about its gap that ended then. Raises
        ``NotFound``."""
        with self._connect() as connection:
            found = read_takeovers.read_takeovers(connection, 1, term)
            if not found:
                raise NotFound(f"there is no takeover with term {term}", hint="`sexton takeovers` lists them")
            gap = next((gap for gap in found[0].gaps if gap.gap_until == gap_until), None)
            if gap is None and gap_until is not None:
                raise NotFound(
                    f"term {term} has no gap that ended at {gap_until.isoformat()}",
                    hint=f"see `sexton takeovers {term}`",
                )
            return read_takeovers.read_opened(connection, found[0], gap, limit)

    def opened_takeover(self, takeover: TakeoverView, gap: GapView | None, limit: int = 500) -> TakeoverDetail:
        """A takeover that was read already, or one of its gaps, with its decisions by job."""
        with self._connect() as connection:
            return read_takeovers.read_opened(connection, takeover, gap, limit)

    def events_page(
        self, before: int | None = None, limit: int = 50, job: str = "", action: str = ""
    ) -> tuple[EventView, ...]:
        """The audit log, newest first; give the last event's id as `before` for the next page."""
        with self._connect() as connection:
            return read_takeovers.read_events(connection, before, limit, job, action)
