"""Lines that were read; until then, that they are being read."""

from __future__ import annotations

from textual.visual import VisualType
from textual.widgets import Static

from sexton_tui.console.core.reading import reading_line
from sexton_tui.console.view import Awaiting
from sexton_tui.console.widgets.drawing import content_of


class ReadLines(Static, Awaiting):
    """Says that it is being read until it is first updated."""

    def __init__(self, *, id: str | None = None, classes: str | None = None, ascii_only: bool = False) -> None:  # noqa: A002 - Textual's name
        super().__init__(content_of([reading_line(ascii_only=ascii_only)]), id=id, classes=classes)
        self._ascii_only = ascii_only
        self._is_read = False

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        self._is_read = True
        super().update(content, layout=layout)

    def tell_wait(self, trouble: str) -> None:
        if not self._is_read:
            super().update(content_of([reading_line(trouble, ascii_only=self._ascii_only)]))
