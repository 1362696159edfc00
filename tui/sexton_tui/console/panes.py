"""The panes that the number keys choose. Each says what it must read, and shows what was read.

A request is made on the screen's thread and carried out on another: it captures values, never widgets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from textual.app import ComposeResult
from textual.containers import Container, Grid
from textual.widgets import Static

from sexton.claims import State
from sexton.cluster_views import FailingJob, Overview, QueueView, WorkerView
from sexton.errors import NotFound
from sexton.store.protocol import Store
from sexton.views import (
    ClaimView,
    EventView,
    JobFilter,
    JobPage,
    RunFilter,
    RunKey,
    RunPage,
    RunView,
    TakeoverDetail,
    TakeoverView,
)
from sexton_tui.console.core import details, tables
from sexton_tui.console.core import overview as blocks
from sexton_tui.console.core.history import LatenessHistory
from sexton_tui.console.core.leadership import leadership_lines
from sexton_tui.console.core.lines import DIM, Row, line
from sexton_tui.console.core.words import count, plural
from sexton_tui.console.widgets.block import Block
from sexton_tui.console.widgets.drawing import content_of
from sexton_tui.console.widgets.table import RowTable

Request = Callable[[Store], Any]
JOBS_A_PAGE = 100
RUNS_A_PAGE = 100
_FEED_RUNS = 60
_FAILED = frozenset({State.FAILED, State.TIMED_OUT, State.LOST})


@dataclass(frozen=True, slots=True)
class Shown:
    """What every pane is shown with."""

    overview: Overview
    history: LatenessHistory
    ascii_only: bool


class Pane(Container):
    """One pane. `table` takes the focus when the pane is chosen."""

    table: RowTable | None = None

    def __init__(self, *, id: str, ascii_only: bool) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.ascii_only = ascii_only

    def request(self) -> Request:
        """What to read now; of itself, nothing."""
        return lambda _store: None

    def show(self, shown: Shown, data: Any) -> None:
        """Show what ``request`` read."""

    @property
    def job_under_cursor(self) -> str | None:
        return None


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


class TakeoversPane(Pane):
    """Every term with its gap; the one under the cursor opens into its decisions, below."""

    def compose(self) -> ComposeResult:
        self.table = RowTable(
            tables.TAKEOVER_COLUMNS, id="takeover-table", ascii_only=self.ascii_only, follows_top=True
        )
        self._decisions = RowTable(tables.DECISION_COLUMNS, id="decision-table", ascii_only=self.ascii_only)
        yield self.table
        yield Static(id="takeover-head")
        yield self._decisions

    def request(self) -> Request:
        table = self.table
        selected = None if table is None or table.cursor_row == 0 else table.selected  # the first row: the newest

        def read(store: Store) -> tuple[tuple[TakeoverView, ...], TakeoverDetail | None]:
            takeovers = store.reads.takeovers(100)
            known = [str(takeover.term) for takeover in takeovers]
            term = selected if selected in known else next(iter(known), None)
            return takeovers, None if term is None else store.reads.takeover(int(term), 200)

        return read

    def show(self, shown: Shown, data: tuple[tuple[TakeoverView, ...], TakeoverDetail | None]) -> None:
        takeovers, detail = data
        now = shown.overview.now
        assert self.table is not None  # noqa: S101 - composed before it is shown
        self.table.show([tables.takeover_row(takeover, now) for takeover in takeovers])
        head = self.query_one("#takeover-head", Static)
        if detail is None:
            head.update(content_of([line(("no takeover yet", DIM))]))
            self._decisions.show([])
            return
        head.update(content_of(details.takeover_lines(detail, now), ascii_only=self.ascii_only))
        self._decisions.show([tables.decision_row(decision, now) for decision in detail.decisions])


class JobsPane(Pane):
    """Jobs by name, a page at a time; find by name."""

    def __init__(self, *, id: str, ascii_only: bool) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, ascii_only=ascii_only)
        self.find = ""
        self.offset_rows = 0
        self._total = 0

    def compose(self) -> ComposeResult:
        self.table = RowTable(tables.JOB_COLUMNS, id="job-table", ascii_only=self.ascii_only)
        yield self.table
        yield Static(id="job-info", classes="info")

    def request(self) -> Request:
        which, offset = JobFilter(text=self.find), self.offset_rows
        return lambda store: store.reads.jobs_page(which, offset, JOBS_A_PAGE)

    def show(self, shown: Shown, data: JobPage) -> None:
        assert self.table is not None  # noqa: S101 - composed before it is shown
        self._total = data.total
        now = shown.overview.now
        self.table.show([tables.job_row(job, now, ascii_only=shown.ascii_only) for job in data.jobs])
        found = plural(data.total, "job") + (f" with {self.find!r} in the name" if self.find else "")
        place = f"{self.offset_rows + 1} to {self.offset_rows + len(data.jobs)} of {found}" if data.jobs else found
        self.query_one("#job-info", Static).update(content_of([line((place, DIM))], ascii_only=self.ascii_only))

    @property
    def job_under_cursor(self) -> str | None:
        return None if self.table is None else self.table.selected

    def turn(self, pages: int) -> None:
        """The page before or after, where there is one."""
        offset = self.offset_rows + pages * JOBS_A_PAGE
        if 0 <= offset < max(self._total, 1):
            self.offset_rows = offset

    def find_by(self, text: str) -> None:
        self.find, self.offset_rows = text, 0


class RunsPane(Pane):
    """What runs now and what ran, newest first; older pages by key."""

    def __init__(self, *, id: str, ascii_only: bool) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, ascii_only=ascii_only)
        self.find = ""
        self.only_failed = False
        self._before: list[RunKey] = []
        self._older: RunKey | None = None

    def compose(self) -> ComposeResult:
        self.table = RowTable(tables.RUN_COLUMNS, id="run-table", ascii_only=self.ascii_only, follows_top=True)
        yield self.table
        yield Static(id="run-info", classes="info")

    def request(self) -> Request:
        which = RunFilter(job=self.find, states=_FAILED if self.only_failed else frozenset())
        before = self._before[-1] if self._before else None
        with_running = before is None and not self.only_failed

        def read(store: Store) -> tuple[tuple[ClaimView, ...], RunPage, str]:
            running = store.reads.running(50) if with_running else ()
            if which.job:
                try:
                    store.reads.job(which.job, 0)
                except NotFound as error:
                    return (), RunPage((), None), str(error)
                running = tuple(claim for claim in running if claim.job.lower() == which.job.lower())
            return running, store.reads.runs_page(which, before, RUNS_A_PAGE), ""

        return read

    def show(self, shown: Shown, data: tuple[tuple[ClaimView, ...], RunPage, str]) -> None:
        assert self.table is not None  # noqa: S101 - composed before it is shown
        running, page, trouble = data
        now = shown.overview.now
        self._older = page.older
        rows: list[Row] = [tables.running_row(claim, now) for claim in running]
        rows += [tables.run_row(run, now) for run in page.runs]
        self.table.show(rows)
        parts = ["only failed" if self.only_failed else "", f"of job {self.find}" if self.find else ""]
        told = " ".join(["runs", *(part for part in parts if part)])
        place = f"page {len(self._before) + 1}: {count(len(rows))} {told}" + (", more with ]" if page.older else "")
        place = trouble or place
        self.query_one("#run-info", Static).update(content_of([line((place, DIM))], ascii_only=self.ascii_only))

    def turn(self, pages: int) -> None:
        """The page before or after, where there is one."""
        if pages < 0 and self._before:
            self._before.pop()
        elif pages > 0 and self._older is not None:
            self._before.append(self._older)
            self._older = None  # until the page has come

    def find_by(self, text: str) -> None:
        self.find = text
        self._before.clear()

    def toggle_failed(self) -> None:
        self.only_failed = not self.only_failed
        self._before.clear()


class WorkersPane(Pane):
    """Workers and the queues they serve."""

    def compose(self) -> ComposeResult:
        self.table = RowTable(tables.WORKER_COLUMNS, id="worker-table", ascii_only=self.ascii_only)
        self._queues = RowTable(tables.QUEUE_COLUMNS, id="queue-table", ascii_only=self.ascii_only)
        yield self.table
        yield Static(content_of([line(("Queues", DIM))]), classes="info")
        yield self._queues

    def request(self) -> Request:
        return lambda store: (store.reads.workers(stopped=True), store.reads.queues())

    def show(self, shown: Shown, data: tuple[tuple[WorkerView, ...], tuple[QueueView, ...]]) -> None:
        assert self.table is not None  # noqa: S101 - composed before it is shown
        workers, queues = data
        now = shown.overview.now
        self.table.show([tables.worker_row(worker, now) for worker in workers[:200]])
        self._queues.show([tables.queue_row(queue, now) for queue in queues])


class EventsPane(Pane):
    """The audit log, newest first."""

    def compose(self) -> ComposeResult:
        self.table = RowTable(tables.EVENT_COLUMNS, id="event-table", ascii_only=self.ascii_only, follows_top=True)
        yield self.table

    def request(self) -> Request:
        return lambda store: store.reads.events_page(limit=100)

    def show(self, shown: Shown, data: tuple[EventView, ...]) -> None:
        assert self.table is not None  # noqa: S101 - composed before it is shown
        self.table.show([tables.event_row(event, shown.overview.now) for event in data])
