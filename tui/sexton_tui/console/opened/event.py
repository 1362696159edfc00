"""A line of the audit log, opened: its whole detail."""

from __future__ import annotations

from sexton.errors import NotFound
from sexton.store.protocol import Store
from sexton.views import EventView
from sexton_tui.console.core.lines import Line
from sexton_tui.console.core.records import event_lines
from sexton_tui.console.core.subjects import OfEvent
from sexton_tui.console.opened.screen import LinesScreen
from sexton_tui.console.view import Request, Shown


class EventScreen(LinesScreen):
    """It never changes."""

    def __init__(self, event: OfEvent, *, ascii_only: bool = False) -> None:
        super().__init__(event, ascii_only=ascii_only)
        self.add_class("wrapped")
        self._event_id = event.event_id

    def request(self) -> Request:
        event_id = self._event_id

        def read(store: Store) -> EventView:
            found = store.reads.events_page(event_id + 1, 1)
            if not found or found[0].event_id != event_id:
                raise NotFound(f"event {event_id} is not in the audit log any more")
            return found[0]

        return read

    def lines_of(self, shown: Shown, data: EventView) -> list[Line]:
        return event_lines(data, shown.now)
