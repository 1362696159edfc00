"""The first pane: what needs a human, who leads, are we late, what waits and what runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Grid
from textual.widget import Widget

from sexton_tui.console.core.subjects import Subject
from sexton_tui.console.loading import later
from sexton_tui.console.panes.pane import Pane
from sexton_tui.console.view import Request, Shown
from sexton_tui.console.widgets.block import Block
from sexton_tui.console.widgets.needs_list import NeedsList

if TYPE_CHECKING:
    from sexton.alerts import AlertView
    from sexton.catch_up import CatchUp
    from sexton.cluster_views import FailingJob
    from sexton.store.protocol import Store
    from sexton.views import ClaimView, RunView, TakeoverView
    from sexton_tui.console.core import leadership, needs
    from sexton_tui.console.core import overview as blocks
else:  # the first screen waits for none of it
    blocks = later("sexton_tui.console.core.overview")
    leadership = later("sexton_tui.console.core.leadership")
    needs = later("sexton_tui.console.core.needs")

_FEED_RUNS = 60
_PARTS = 4  # read one after the other, so that no refresh asks much


@dataclass(frozen=True, slots=True)
class _OverviewData:
    """What was read so far; ``reads``: how often. The feed is of every read, the rest of every fourth."""

    reads: int = 0
    running: tuple[ClaimView, ...] = ()
    runs: tuple[RunView, ...] = ()
    failing: tuple[FailingJob, ...] = ()
    takeovers: tuple[TakeoverView, ...] = ()
    alerts: tuple[AlertView, ...] = ()
    catch_up: CatchUp | None = None


def _read(store: Store, known: _OverviewData) -> _OverviewData:
    """``known`` with its next part read anew; all of it the first time."""
    reads, part, is_first = store.reads, known.reads % _PARTS, not known.reads
    found = replace(
        known,
        reads=known.reads + 1,
        running=reads.running(_FEED_RUNS),
        runs=reads.runs_page(limit=_FEED_RUNS).runs,
    )
    if part == 0:
        found = replace(found, failing=reads.failing())
    if part == 1 or is_first:
        alerts = store.alerts.listed(needs.ALERTS_COUNTED, only_open=True)
        found = replace(found, alerts=alerts)
    if part == 2 or is_first:
        found = replace(found, takeovers=reads.takeovers(6, known.takeovers))
    if part == 3 or is_first:
        found = replace(found, catch_up=reads.catch_up())
    return found


class OverviewPane(Pane):
    """What needs a human, who leads, are we late, what waits and what runs."""

    def __init__(self, *, id: str, ascii_only: bool) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, ascii_only=ascii_only)
        self._known = _OverviewData()

    def compose(self) -> ComposeResult:
        self._needs = NeedsList(id="needs", ascii_only=self.ascii_only)
        with Grid(id="blocks"):
            yield self._needs
            for name, title in (
                ("leadership", "Leadership"),
                ("lateness", "Lateness: 5 min, peaks of 30"),
                ("work", "Work"),
                ("newest-takeovers", "Takeovers"),
                ("feed", "Runs"),
            ):
                yield Block(title, id=name, ascii_only=self.ascii_only)

    @property
    def subject(self) -> Subject | None:
        return self._needs.about

    @property
    def focus_target(self) -> Widget | None:
        return self._needs

    def request(self) -> Request:
        known = self._known
        return lambda store: _read(store, known)

    def show(self, shown: Shown, data: _OverviewData) -> None:
        self._known = data
        overview = shown.overview
        self._needs.show(
            needs.needs(overview, data.failing) + needs.standing_needs(data.alerts), with_keys=not shown.read_only
        )
        self._block("leadership").show(lambda _w, height: leadership.leadership_lines(overview, height))
        self._block("lateness").show(
            lambda width, height: blocks.lateness_lines(
                overview, shown.history, width=width, height=height, ascii_only=shown.ascii_only
            )
        )
        self._block("work").show(
            lambda width, height: blocks.work_lines(overview, data.catch_up, width=width, height=height)
        )
        self._block("newest-takeovers").show(lambda width, _h: blocks.takeover_lines(data.takeovers, overview, width))
        self._block("feed").show(
            lambda width, height: blocks.feed_lines(data.running, data.runs, overview, height, width)
        )

    def _block(self, name: str) -> Block:
        return self.query_one(f"#{name}", Block)
