"""Screens on top of the panes: a job, a run, help. Each is lines to scroll through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

from sexton_tui.console.core.lines import Line
from sexton_tui.console.widgets.drawing import content_of


class LinesScreen(Screen[None]):
    """A page of lines; escape goes back. ``job``: whose actions are offered here."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back"),
        Binding("q", "leave", "back", show=False),
    ]

    def __init__(self, lines: Sequence[Line], *, job: str | None = None, ascii_only: bool = False) -> None:
        super().__init__()
        self.job = job
        self._lines = lines
        self._ascii_only = ascii_only

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="page"):
            yield Static(content_of(self._lines, ascii_only=self._ascii_only), id="lines")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.query_one("#page").focus()

    def action_leave(self) -> None:
        self.dismiss()
