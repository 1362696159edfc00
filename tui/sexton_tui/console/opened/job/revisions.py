"""The history of an opened job: its revisions, pauses and what else was done to it."""

from __future__ import annotations

from sexton.history_views import History
from sexton.jobfiles.differences import differences_between
from sexton_tui.console.core.job_rows import REVISION_COLUMNS, revision_row
from sexton_tui.console.core.words import plural
from sexton_tui.console.opened.job.section import TableSection
from sexton_tui.console.view import Request, Shown

_ENTRIES = 100
_READ_EVERY = 10  # polls


class RevisionsSection(TableSection):
    """Enter on a revision opens what it changed."""

    title = "Revisions"
    COLUMNS = REVISION_COLUMNS

    def __init__(self, job: str, *, ascii_only: bool) -> None:
        super().__init__(job, ascii_only=ascii_only)
        self._polls = 0
        self._history: History | None = None

    def request(self) -> Request:
        is_read, self._polls = self._polls % _READ_EVERY == 0 or self._history is None, self._polls + 1
        job = self.job
        return (lambda store: store.reads.history(job, _ENTRIES)) if is_read else (lambda _store: None)

    def show(self, shown: Shown, data: History | None) -> None:
        self._history = data or self._history
        if self._history is None:
            return
        rows = []
        for entry in self._history.entries:
            pair = entry.before, entry.definition
            changed = () if pair[0] is None or pair[1] is None else differences_between(pair[0], pair[1])
            rows.append(revision_row(entry, changed, self.job, shown.now))
        older = "" if self._history.is_whole else f"; `sexton history {self.job}` lists older ones"
        self.show_rows(rows, f"{plural(len(rows), 'change')}, the newest first   enter opens what changed{older}")
