"""A framed block of lines, drawn anew for the room it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.content import Content
from textual.widget import Widget

from sexton_tui.console.core.lines import Line, fit, line
from sexton_tui.console.widgets.drawing import content_of

Draw = Callable[[int, int], Sequence[Line]]


class Block(Widget):
    """Shows what its drawing function gives for its width and height; a dash until there is data.

    Lines are cut at the edge, or wrapped where ``wraps``.
    """

    def __init__(self, title: str, *, id: str, ascii_only: bool = False, wraps: bool = False) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes="block")
        self.border_title = title  # a constant of the program: Textual reads markup in it
        self._ascii_only = ascii_only
        self._wraps = wraps
        self._draw: Draw | None = None

    def show(self, draw: Draw) -> None:
        """Draw by ``draw(width, height)`` from now on."""
        self._draw = draw
        self.refresh()

    def render(self) -> Content:
        if self._draw is None:
            return content_of([line(("-", "dim"))], ascii_only=self._ascii_only)
        width, height = self.content_size
        lines = list(self._draw(width, height))[: max(height, 0)]
        if not self._wraps:
            lines = [fit(one, width) for one in lines]
        return content_of(lines, ascii_only=self._ascii_only)
