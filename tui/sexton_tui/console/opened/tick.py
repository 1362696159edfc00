"""A tick, explained: was it due and why, what was decided and by whom, every attempt, and what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widget import Widget

from sexton.claims import State
from sexton.store.protocol import Store
from sexton.tick_explanation import Answer, TickExplanation, explain
from sexton_tui.console.core.decided import explanation_lines
from sexton_tui.console.core.job_rows import JOB_RUN_COLUMNS, job_run_row, job_running_row
from sexton_tui.console.core.lines import Line, Row
from sexton_tui.console.core.subjects import OfTick, Subject
from sexton_tui.console.opened.screen import LinesScreen
from sexton_tui.console.view import Request, Shown
from sexton_tui.console.widgets.table import RowTable


class TickScreen(LinesScreen):
    """What ``sexton explain`` prints; below it the tick's runs, the newest first, of which enter opens one.

    The cursor is in the table; the explanation is scrolled by page.
    """

    DEFAULT_CSS = "#tick-runs { height: auto; max-height: 8; display: none; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "scroll(-1)", "scroll up", show=False, priority=True),
        Binding("pagedown", "scroll(1)", "scroll down", show=False, priority=True),
    ]

    def __init__(self, tick: OfTick, *, ascii_only: bool = False) -> None:
        super().__init__(tick, ascii_only=ascii_only)
        self._tick = tick
        self._runs = RowTable(JOB_RUN_COLUMNS, id="tick-runs", ascii_only=ascii_only)

    def compose_body(self) -> ComposeResult:
        yield from super().compose_body()
        yield self._runs

    @property
    def focus_target(self) -> Widget | None:
        return self._runs if self._runs.display else super().focus_target

    @property
    def subject(self) -> Subject | None:
        return self._tick

    def request(self) -> Request:
        tick = self._tick

        def read(store: Store) -> TickExplanation:
            return explain(store.reads.tick_facts(tick.job, tick.scheduled_at))

        return read

    def show(self, shown: Shown, data: TickExplanation) -> None:
        self._tick = replace(self._tick, is_held=data.answer is Answer.HELD)
        super().show(shown, data)
        rows = [job_run_row(run, shown.now) for run in reversed(data.runs)]
        if data.claim is not None and data.claim.state is State.RUNNING:
            rows.insert(0, job_running_row(data.claim, shown.now))
        self._show_runs(rows)

    def _show_runs(self, rows: Sequence[Row]) -> None:
        self._runs.show(rows)
        if bool(rows) != self._runs.display:
            self._runs.display = bool(rows)
            self.set_focus(self.focus_target)

    def lines_of(self, shown: Shown, data: TickExplanation) -> list[Line]:
        return explanation_lines(data, shown.now, self.size.width - 2)

    def action_scroll(self, pages: int) -> None:
        page = self.query_one("#page", VerticalScroll)
        page.scroll_page_up(animate=False) if pages < 0 else page.scroll_page_down(animate=False)
