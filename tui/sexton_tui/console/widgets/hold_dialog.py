"""The question before held ticks run: which part, and why; with what would run and when, as it is typed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from textual.app import ComposeResult
from textual.widgets import Input, Static

from sexton.errors import SextonError
from sexton.hold_views import HoldDetail
from sexton.holds import HeldTick
from sexton_tui.console.core.hold_parts import PARTS_HINT, parse_part, typed_tick, would_run_words
from sexton_tui.console.core.lines import DIM, STRONG, WARN, Part, line
from sexton_tui.console.widgets.dialogs import Dialog, hint
from sexton_tui.console.widgets.drawing import content_of

Answer = tuple[str, tuple[HeldTick, ...], str]


class ApproveDialog(Dialog[Answer]):
    """What was typed, the ticks that it chose, and the note; where they are a part, another question follows.

    ``part`` and ``note``: what was typed before. ``tick``: that under the cursor, which is offered.
    """

    takes_text = True

    def __init__(
        self,
        found: HoldDetail,
        now: Callable[[], datetime],
        *,
        part: str = "all",
        note: str = "",
        tick: datetime | None = None,
    ) -> None:
        hold = found.hold
        title = line((f"Approve held ticks of {hold.job}", STRONG))
        lines = [title, line((hold.reason, DIM)), line(f"Which: {PARTS_HINT}")]
        if tick is not None and hold.count > 1:
            lines.append(line(f"Under the cursor: {typed_tick(tick, hold.last, now())}"))
        super().__init__(lines)
        self._found = found
        self._now = now
        self._part, self._note = part, note
        self._chosen: tuple[HeldTick, ...] = ()

    def answers(self) -> ComposeResult:
        yield Input(value=self._part, id="part", max_length=100, select_on_focus=True)
        yield Static(id="would-run", classes="said")
        yield Input(value=self._note, id="note", max_length=500, placeholder="note, kept with the answer")
        yield hint("enter: approve   tab: next   escape: leave it")

    def on_mount(self) -> None:
        self._choose(self._part)
        self.set_interval(1, self._choose_anew)

    def _choose_anew(self) -> None:
        """What is chosen starts later by now."""
        for part in self.query("#part").results(Input):  # none, where the dialog was left meanwhile
            self._choose(part.value)

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "part":
            self._choose(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._chosen:
            self.is_followed = len(self._chosen) < self._found.hold.count
            part = self.query_one("#part", Input).value
            self.dismiss((part, self._chosen, self.query_one("#note", Input).value.strip()))

    def _choose(self, text: str) -> None:
        found, now, told = self._found, self._now(), ""
        self._chosen = ()
        try:
            if found.ticks is not None:
                self._chosen = found.ticks.chosen(parse_part(text, found.hold.last, now))
            told = would_run_words(found, self._chosen, now)
        except SextonError as error:
            told = str(error)
        said: Part = told if self._chosen else (told, WARN)
        self.query_one("#would-run", Static).update(content_of([line(said)]))
