"""The question before held ticks run: which part, and why; with what would run and when, as it is typed."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from sexton.errors import SextonError
from sexton.hold_views import HoldDetail
from sexton.holds import HeldTick
from sexton_tui.console.core.hold_parts import PARTS_HINT, parse_part, would_run_words
from sexton_tui.console.core.lines import DIM, STRONG, WARN, Part, line
from sexton_tui.console.widgets.drawing import content_of

Answer = tuple[tuple[HeldTick, ...], str]


class ApproveDialog(ModalScreen[Answer | None]):
    """The ticks that were chosen, and the note; None where it was left."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave")]

    def __init__(self, found: HoldDetail, now: datetime) -> None:
        super().__init__()
        self._found = found
        self._now = now
        self._chosen: tuple[HeldTick, ...] = ()

    def compose(self) -> ComposeResult:
        hold = self._found.hold
        with Vertical(classes="dialog"):
            yield Static(content_of([line((f"Approve held ticks of {hold.job}", STRONG)), line((hold.reason, DIM))]))
            yield Static(content_of([line(f"which: {PARTS_HINT}")]))
            yield Input(value="all", id="part", max_length=100, select_on_focus=True)
            yield Static(id="would-run")
            yield Static(content_of([line("note, kept with the answer")]))
            yield Input(id="note", max_length=500)
            yield Static(content_of([line(("enter: approve   tab: next   escape: leave it", DIM))]))

    def on_mount(self) -> None:
        self.query_one("#part", Input).focus()
        self._choose("all")

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "part":
            self._choose(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._chosen:
            self.dismiss((self._chosen, self.query_one("#note", Input).value.strip()))

    def _choose(self, text: str) -> None:
        found, told = self._found, ""
        self._chosen = ()
        try:
            if found.ticks is not None:
                self._chosen = found.ticks.chosen(parse_part(text, found.hold.last, self._now))
            told = would_run_words(found, self._chosen, self._now)
        except SextonError as error:
            told = str(error)
        said: Part = told if self._chosen else (told, WARN)
        self.query_one("#would-run", Static).update(content_of([line(said)]))

    def action_leave(self) -> None:
        self.dismiss(None)
