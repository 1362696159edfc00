"""The lines above every pane that must not be overlooked: a band each, red or yellow, that says in words what it is."""

from __future__ import annotations

from collections.abc import Sequence

from textual.containers import Vertical
from textual.widgets import Static

from sexton_tui.console.core.lines import ALARM, Line
from sexton_tui.console.widgets.drawing import content_of


class Banner(Vertical):
    """A band for each line; nothing where there is none."""

    def __init__(self, *, ascii_only: bool = False) -> None:
        super().__init__()
        self._ascii_only = ascii_only
        self._shown: tuple[Line, ...] = ()
        self._bands: list[Static] = []

    def show(self, lines: Sequence[Line]) -> None:
        """Show these lines, and no others, from now on."""
        if tuple(lines) == self._shown:
            return
        self._shown = tuple(lines)
        while len(self._bands) > len(lines):
            self._bands.pop().remove()
        new = [Static(classes="band") for _ in range(len(lines) - len(self._bands))]
        self._bands += new
        for band, one in zip(self._bands, lines, strict=True):  # those that stay change their words and do not blink
            band.set_class(any(span.style == ALARM for span in one.spans), "urgent")
            band.update(content_of([one], ascii_only=self._ascii_only))
        if new:
            self.mount_all(new)
