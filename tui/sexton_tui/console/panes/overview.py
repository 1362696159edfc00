"""The first pane: who leads, are we late, what needs a human, what runs."""

from __future__ import annotations

from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Grid

from sexton.cluster_views import FailingJob
from sexton.store.protocol import Store
from sexton.views import ClaimView, RunView, TakeoverView
from sexton_tui.console.core import overview as blocks
from sexton_tui.console.core.leadership import leadership_lines
from sexton_tui.console.panes.pane import Pane
from sexton_tui.console.view import Request, Shown
from sexton_tui.console.widgets.block import Block

_FEED_RUNS = 60


@dataclass(frozen=True, slots=True)
class _OverviewData:
    failing: tuple[FailingJob, ...]
    running: tuple[ClaimView, ...]
    runs: tuple[RunView, ...]
    takeovers: tuple[TakeoverView, ...]


class OverviewPane(Pane):
    """Who leads, are we late, what needs a human, what runs."""

    def compose(self) -> ComposeResult:
        with Grid(id="blocks"):
            for name, title in (
                ("needs", "Needs a human"),
                ("leadership", "Leadership"),
                ("lateness", "Lateness: 5 min, peaks of 30"),
                ("work", "Work"),
                ("newest-takeovers", "Takeovers"),
                ("feed", "Runs"),
            ):
                yield Block(title, id=name, ascii_only=self.ascii_only, wraps=name == "needs")

    def request(self) -> Request:
        def read(store: Store) -> _OverviewData:
            reads = store.reads
            return _OverviewData(
                reads.failing(), reads.running(_FEED_RUNS), reads.runs_page(limit=_FEED_RUNS).runs, reads.takeovers(6)
            )

        return read

    def show(self, shown: Shown, data: _OverviewData) -> None:
        overview = shown.overview
        self._block("needs").show(lambda _w, _h: blocks.need_lines(overview, data.failing))
        self._block("leadership").show(lambda _w, height: leadership_lines(overview, height))
        self._block("lateness").show(
            lambda width, height: blocks.lateness_lines(
                overview, shown.history, width=width, height=height, ascii_only=shown.ascii_only
            )
        )
        self._block("work").show(lambda _w, _h: blocks.work_lines(overview))
        self._block("newest-takeovers").show(lambda _w, _h: blocks.takeover_lines(data.takeovers, overview))
        self._block("feed").show(lambda _w, height: blocks.feed_lines(data.running, data.runs, overview, height))

    def _block(self, name: str) -> Block:
        return self.query_one(f"#{name}", Block)
