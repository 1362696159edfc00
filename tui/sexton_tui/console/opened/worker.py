"""A worker, opened: who it is, and what it runs."""

from __future__ import annotations

from sexton.member_views import OpenedWorker
from sexton_tui.console.core import members
from sexton_tui.console.core.subjects import OfWorker, Subject
from sexton_tui.console.opened.listing import ListingScreen
from sexton_tui.console.view import Request, Shown


class WorkerScreen(ListingScreen):
    """Enter on a claim opens its run. Keys act on the worker."""

    COLUMNS = members.HELD_COLUMNS

    def __init__(self, worker: OfWorker, *, ascii_only: bool = False) -> None:
        super().__init__(worker, ascii_only=ascii_only)
        self._worker = worker

    @property
    def subject(self) -> Subject | None:
        # The drain of the worker is what most come for; a run's own keys are on its screen.
        return self._worker

    def request(self) -> Request:
        name = self._worker.worker
        return lambda store: store.reads.opened_worker(name)

    def show(self, shown: Shown, data: OpenedWorker) -> None:
        self.show_head(members.worker_lines(data, shown.now, with_keys=not shown.read_only))
        self.show_rows([members.held_row(claim, shown.now) for claim in data.claims])
