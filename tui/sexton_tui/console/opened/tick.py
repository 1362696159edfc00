"""A tick, explained: was it due and why, what was decided and by whom, every attempt, and what comes next."""

from __future__ import annotations

from sexton.store.protocol import Store
from sexton.tick_explanation import TickExplanation, explain
from sexton_tui.console.core.decided import explanation_lines
from sexton_tui.console.core.lines import Line
from sexton_tui.console.core.subjects import OfTick
from sexton_tui.console.opened.screen import LinesScreen
from sexton_tui.console.view import Request, Shown


class TickScreen(LinesScreen):
    """What ``sexton explain`` prints."""

    def __init__(self, tick: OfTick, *, ascii_only: bool = False) -> None:
        super().__init__(tick, ascii_only=ascii_only)
        self._tick = tick

    def request(self) -> Request:
        tick = self._tick

        def read(store: Store) -> TickExplanation:
            return explain(store.reads.tick_facts(tick.job, tick.scheduled_at))

        return read

    def lines_of(self, shown: Shown, data: TickExplanation) -> list[Line]:
        return explanation_lines(data, shown.now, self.size.width - 2)
