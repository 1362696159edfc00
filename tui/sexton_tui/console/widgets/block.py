"""A framed block of lines, drawn anew for the room it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.content import Content
from textual.widget import Widget

from sexton_tui.console.core.lines import Line, fit
from sexton_tui.console.core.reading import reading_line
from sexton_tui.console.view import Awaiting
from sexton_tui.console.widgets.drawing import content_of

Draw = Callable[[int, int], Sequence[Line]]


class Block(Widget, Awaiting):
    """Shows what its drawing function gives for its width and height; until there is data, that it is being read.

    Lines are cut at the edge, or wrapped where ``wraps``.
    """

    def __init__(self, title: str, *, id: str, ascii_only: bool = False, wraps: bool = False) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes="block")
        self.border_title = title  # a constant of the program: Textual reads markup in it
        self._ascii_only = ascii_only
        self._wraps = wraps
        self._draw: Draw | None = None
        self._trouble = ""

    def show(self, draw: Draw) -> None:
        """Draw by ``draw(width, height)`` from now on."""
        self._draw = draw
        self.refresh()

    def tell_wait(self, trouble: str) -> None:
        if self._draw is None and trouble != self._trouble:
            self._trouble = trouble
            self.refresh()

    def render(self) -> Content:
        width, height = self.content_size
        if self._draw is None:
            told = reading_line(self._trouble, ascii_only=self._ascii_only)
            return content_of([fit(told, width)], ascii_only=self._ascii_only)
        lines = list(self._draw(width, height))[: max(height, 0)]
        if not self._wraps:
            lines = [fit(one, width) for one in lines]
        return content_of(lines, ascii_only=self._ascii_only)
