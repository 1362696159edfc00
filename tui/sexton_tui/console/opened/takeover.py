"""A takeover, opened, or a gap within its term: how long it was, and what its leader decided, job by job."""

from __future__ import annotations

from sexton.views import TakeoverDetail
from sexton_tui.console.core import details, tables
from sexton_tui.console.core.subjects import OfTakeover
from sexton_tui.console.opened.listing import ListingScreen
from sexton_tui.console.view import Request, Shown

_DECISIONS = 200


class TakeoverScreen(ListingScreen):
    """Enter on a decision opens its ticks."""

    COLUMNS = tables.DECISION_COLUMNS

    def __init__(self, takeover: OfTakeover, *, ascii_only: bool = False) -> None:
        super().__init__(takeover, ascii_only=ascii_only)
        self._takeover = takeover

    def request(self) -> Request:
        asked = self._takeover
        return lambda store: store.reads.takeover(asked.term, _DECISIONS, asked.gap_until)

    def show(self, shown: Shown, data: TakeoverDetail) -> None:
        self.show_head(details.takeover_lines(data, shown.now))
        self.show_rows([tables.decision_row(decision, shown.now) for decision in data.decisions])
