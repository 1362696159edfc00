"""A proposal, opened: why its ticks are held, and what approving them would start, and when."""

from __future__ import annotations

from dataclasses import replace

from sexton.hold_views import HoldDetail
from sexton_tui.console.core.decided import HELD_TICK_COLUMNS, held_tick_rows, proposal_lines
from sexton_tui.console.core.lines import DIM, line
from sexton_tui.console.core.subjects import OfProposal, OfTick, Subject
from sexton_tui.console.core.words import count
from sexton_tui.console.opened.listing import ListingScreen
from sexton_tui.console.view import Request, Shown

_TICKS = 200


class ProposalScreen(ListingScreen):
    """Keys act on the proposal; enter on one of its ticks explains it."""

    COLUMNS = HELD_TICK_COLUMNS

    def __init__(self, proposal: OfProposal, *, ascii_only: bool = False) -> None:
        super().__init__(proposal, ascii_only=ascii_only)
        self._proposal = proposal

    @property
    def subject(self) -> Subject | None:
        about = self.table.about
        return replace(self._proposal, tick=about.scheduled_at) if isinstance(about, OfTick) else self._proposal

    def request(self) -> Request:
        proposal_id = self._proposal.proposal_id
        return lambda store: store.reads.hold(proposal_id)

    def show(self, shown: Shown, data: HoldDetail) -> None:
        self._proposal = replace(self._proposal, is_open=data.ticks is not None)
        lines = proposal_lines(data, shown.now, with_keys=not shown.read_only)
        ticks = data.first_to_start(_TICKS)
        if data.ticks is not None and len(ticks) < data.hold.count:
            lines.append(line((f"the first {len(ticks)} of {count(data.hold.count)} are shown", DIM)))
        self.show_head(lines)
        starts = () if data.ticks is None else data.pace.starts(data.ticks.firing, ticks)
        self.show_rows(held_tick_rows(data.hold.job, starts, shown.now))
