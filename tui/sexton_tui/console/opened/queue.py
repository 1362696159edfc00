"""A queue, opened: its limits, its depth by priority, its workers, and what waits longest."""

from __future__ import annotations

from sexton.member_views import OpenedQueue
from sexton_tui.console.core import members
from sexton_tui.console.core.subjects import OfQueue
from sexton_tui.console.opened.listing import ListingScreen
from sexton_tui.console.view import Request, Shown


class QueueScreen(ListingScreen):
    """Enter on a claim opens its tick."""

    COLUMNS = members.WAITING_COLUMNS

    def __init__(self, queue: OfQueue, *, ascii_only: bool = False) -> None:
        super().__init__(queue, ascii_only=ascii_only)
        self._queue = queue.queue

    def request(self) -> Request:
        name = self._queue
        return lambda store: store.reads.opened_queue(name)

    def show(self, shown: Shown, data: OpenedQueue) -> None:
        self.show_head(members.queue_lines(data, shown.now))
        self.show_rows([members.waiting_row(claim, shown.now) for claim in data.waiting])
