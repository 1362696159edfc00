"""A scheduler node, opened: what it says of itself, and the terms it led."""

from __future__ import annotations

from sexton.views import TakeoverView
from sexton_tui.console.core import members
from sexton_tui.console.core.subjects import OfNode, Subject
from sexton_tui.console.opened.listing import ListingScreen
from sexton_tui.console.view import Request, Shown

_TERMS = 100


class NodeScreen(ListingScreen):
    """Enter on a term opens its takeover. Keys act on the node."""

    COLUMNS = members.LED_COLUMNS

    def __init__(self, node: OfNode, *, ascii_only: bool = False) -> None:
        super().__init__(node, ascii_only=ascii_only)
        self._node = node

    @property
    def subject(self) -> Subject | None:
        return self._node

    def request(self) -> Request:
        return lambda store: store.reads.takeovers(_TERMS)

    def show(self, shown: Shown, data: tuple[TakeoverView, ...]) -> None:
        self.show_head(members.node_lines(self._node.node, shown.overview, data, with_keys=not shown.read_only))
        led = [takeover for takeover in data if takeover.node == self._node.node]
        self.show_rows([members.led_row(takeover, shown.now) for takeover in led])
