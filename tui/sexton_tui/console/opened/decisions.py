"""What one pass decided about one job: the ticks, each with what became of it."""

from __future__ import annotations

from datetime import timedelta

from sexton.views import TickPage
from sexton_tui.console.core.decided import TICK_COLUMNS, tick_rows
from sexton_tui.console.core.lines import DIM, STRONG, line
from sexton_tui.console.core.subjects import OfDecisions
from sexton_tui.console.core.words import instant
from sexton_tui.console.opened.listing import ListingScreen
from sexton_tui.console.view import Request, Shown

_TICKS = 200
_JUST_AFTER = timedelta(microseconds=1)


class DecisionsScreen(ListingScreen):
    """Enter on a tick explains it."""

    COLUMNS = TICK_COLUMNS

    def __init__(self, decisions: OfDecisions, *, ascii_only: bool = False) -> None:
        super().__init__(decisions, ascii_only=ascii_only)
        self._decisions = decisions

    def request(self) -> Request:
        asked = self._decisions
        return lambda store: store.reads.ticks_page(asked.job, asked.upto + _JUST_AFTER, _TICKS, 0)

    def show(self, shown: Shown, data: TickPage) -> None:
        asked, now = self._decisions, shown.now
        claims = [claim for claim in data.claims if claim.scheduled_at > asked.after]
        skips = [skip for skip in data.skips if skip.upto > asked.after]
        stretch = f"ticks after {instant(asked.after, now)} to {instant(asked.upto, now)}, under term {asked.term}"
        more = [line((f"the newest {_TICKS} are shown", DIM))] if data.older and data.older > asked.after else []
        self.show_head([line((asked.job, STRONG), f"  {stretch}"), *more])
        self.show_rows(tick_rows(claims, skips, now))
