"""The audit log: what was done to the cluster, by whom and why, newest first, a page at a time."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Static

from sexton.errors import InvalidInput
from sexton.views import EventView
from sexton_tui.console.core import tables
from sexton_tui.console.panes.pane import Pane
from sexton_tui.console.view import Request, Shown
from sexton_tui.console.widgets.table import RowTable

EVENTS_A_PAGE = 100


class AuditPane(Pane):
    """``/`` narrows it to a job, or to actions of a kind; both by the database, over all of the log."""

    is_paged = True

    def __init__(self, *, id: str, ascii_only: bool) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, ascii_only=ascii_only)
        self._before: list[int] = []
        self._older: int | None = None
        self._job = self._action = ""

    def compose(self) -> ComposeResult:
        self.table = RowTable(tables.EVENT_COLUMNS, id="event-table", ascii_only=self.ascii_only, follows_top=True)
        yield self.table
        yield Static(classes="info")

    @property
    def find_question(self) -> str:
        return "Only of job:NAME, action:TERM (how the action's name begins), or both"

    def find_by(self, text: str) -> None:
        found = {"job": "", "action": ""}
        for word in text.split():
            key, colon, value = word.partition(":")
            if not colon or key not in found or not value:
                raise InvalidInput(f"{word}: the audit log is narrowed otherwise", hint="write job:NAME or action:TERM")
            found[key] = value
        self._job, self._action, self.find = found["job"], found["action"], text
        self._before.clear()

    def turn(self, pages: int) -> None:
        if pages < 0 and self._before:
            self._before.pop()
        elif pages > 0 and self._older is not None:
            self._before.append(self._older)
            self._older = None  # until the page has come

    def request(self) -> Request:
        before, job, action = (self._before[-1] if self._before else None), self._job, self._action
        return lambda store: store.reads.events_page(before, EVENTS_A_PAGE + 1, job, action)

    def show(self, shown: Shown, data: tuple[EventView, ...]) -> None:
        page = data[:EVENTS_A_PAGE]
        self._older = page[-1].event_id if len(data) > EVENTS_A_PAGE else None
        self.show_rows([tables.event_row(event, shown.now) for event in page])
        which = f" with {self.find}" if self.find else ""
        older = ", older with ]" if self._older is not None else ""
        newer = ", newer with [" if self._before else ""
        self.tell(f"page {len(self._before) + 1}: {len(page)} events{which}{older}{newer}")
