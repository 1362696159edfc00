"""The line on top of an opened screen: what was opened through what, and the clock; below it the banner."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from sexton_tui.console.core.lines import DIM, Line, Part, line
from sexton_tui.console.widgets.banner import Banner
from sexton_tui.console.widgets.drawing import content_of


class Head(Vertical):
    """Trail and clock, and the banner."""

    def __init__(self, *, ascii_only: bool = False) -> None:
        super().__init__()
        self._ascii_only = ascii_only
        self._clock = Line()

    def compose(self) -> ComposeResult:
        with Horizontal(classes="top"):
            yield Static(classes="trail")
            yield Static(classes="clock")
        yield Banner(ascii_only=self._ascii_only)

    def show_trail(self, crumbs: Sequence[str]) -> None:
        """Say through what this was opened, the last one being this."""
        parts: list[Part] = []
        for crumb in crumbs[:-1]:
            parts += [(crumb, DIM), (" ▸ ", DIM)]
        self.query_one(".trail", Static).update(content_of([line(*parts, *crumbs[-1:])], ascii_only=self._ascii_only))

    def show_clock(self, clock: Line) -> None:
        """Say what time it is in the cluster, and in which zone instants are shown."""
        if clock != self._clock:
            is_as_wide = len(clock.text) == len(self._clock.text)
            self._clock = clock
            shown = content_of([clock], ascii_only=self._ascii_only)
            self.query_one(".clock", Static).update(shown, layout=not is_as_wide)

    def show_banner(self, lines: Sequence[Line]) -> None:
        """Show what must not be overlooked."""
        self.query_one(Banner).show(lines)
