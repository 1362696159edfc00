"""A revision of a job, opened: who made it, when and why, and what it changed of the one before."""

from __future__ import annotations

from sexton.job_page_views import OpenedRevision
from sexton.jobfiles.differences import differences_between
from sexton_tui.console.core.job_rows import revision_lines
from sexton_tui.console.core.lines import Line
from sexton_tui.console.core.subjects import OfRevision
from sexton_tui.console.opened.screen import LinesScreen
from sexton_tui.console.view import Request, Shown


class RevisionScreen(LinesScreen):
    """Read once: a revision stays what it is."""

    def __init__(self, revision: OfRevision, *, ascii_only: bool = False) -> None:
        super().__init__(revision, ascii_only=ascii_only)
        self._revision = revision
        self._is_read = False

    def request(self) -> Request:
        of = self._revision
        if self._is_read:
            return lambda _store: None
        return lambda store: store.reads.opened_revision(of.job, of.revision)

    def lines_of(self, shown: Shown, data: OpenedRevision) -> list[Line]:
        self._is_read = True
        before, entry = data.entry.before, data.entry.definition
        changed = () if before is None or entry is None else differences_between(before, entry)
        return revision_lines(data, changed, shown.now)
