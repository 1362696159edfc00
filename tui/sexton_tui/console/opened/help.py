"""The keys and what they do."""

from __future__ import annotations

from collections.abc import Sequence

from sexton_tui.console.core.keys import hanging
from sexton_tui.console.core.lines import Line
from sexton_tui.console.opened.screen import LinesScreen
from sexton_tui.console.view import Shown

_BESIDE = 4  # cells: the page's edges and its scrollbar


class HelpScreen(LinesScreen):
    """Every key that is offered, in words."""

    def __init__(self, lines: Sequence[Line], *, ascii_only: bool = False) -> None:
        super().__init__(None, ascii_only=ascii_only)
        self.add_class("wrapped")
        self._lines = lines

    @property
    def crumb(self) -> str:
        return "Help"

    def on_mount(self) -> None:
        super().on_mount()
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        width = self.app.size.width - _BESIDE
        self.show_lines([part for one in self._lines for part in hanging(one, width)])

    def lines_of(self, shown: Shown, data: None) -> list[Line]:
        return list(self._lines)
