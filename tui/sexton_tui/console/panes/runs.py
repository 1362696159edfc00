"""What runs now and what ran, newest first; older pages by key."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Static

from sexton.claims import State
from sexton.errors import NotFound
from sexton.store.protocol import Store
from sexton.views import ClaimView, RunFilter, RunKey, RunPage
from sexton_tui.console.core import tables
from sexton_tui.console.core.lines import Row
from sexton_tui.console.core.words import count
from sexton_tui.console.panes.pane import Pane
from sexton_tui.console.view import Request, Shown
from sexton_tui.console.widgets.table import RowTable

RUNS_A_PAGE = 100
_FAILED = frozenset({State.FAILED, State.TIMED_OUT, State.LOST})


class RunsPane(Pane):
    """What runs now and what ran, newest first; older pages by key."""

    is_findable = True
    is_paged = True

    def __init__(self, *, id: str, ascii_only: bool) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, ascii_only=ascii_only)
        self.only_failed = False
        self._before: list[RunKey] = []
        self._older: RunKey | None = None

    def compose(self) -> ComposeResult:
        self.table = RowTable(tables.RUN_COLUMNS, id="run-table", ascii_only=self.ascii_only, follows_top=True)
        yield self.table
        yield Static(classes="info")

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
        running, page, trouble = data
        now = shown.now
        self._older = page.older
        rows: list[Row] = [tables.running_row(claim, now) for claim in running]
        rows += [tables.run_row(run, now) for run in page.runs]
        self.show_rows(rows)
        parts = ["only failed" if self.only_failed else "", f"of job {self.find}" if self.find else ""]
        told = " ".join(["runs", *(part for part in parts if part)])
        place = f"page {len(self._before) + 1}: {count(len(rows))} {told}" + (", more with ]" if page.older else "")
        self.tell(trouble or place)

    def turn(self, pages: int) -> None:
        if pages < 0 and self._before:
            self._before.pop()
        elif pages > 0 and self._older is not None:
            self._before.append(self._older)
            self._older = None  # until the page has come

    def find_by(self, text: str) -> None:
        super().find_by(text)
        self._before.clear()

    def toggle_failed(self) -> None:
        self.only_failed = not self.only_failed
        self._before.clear()
