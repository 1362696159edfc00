"""Questions before an action: yes or no, a reason, or one of a few answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from sexton_tui.console.core.lines import DIM, STRONG, line
from sexton_tui.console.widgets.drawing import content_of


class Confirm(ModalScreen[bool]):
    """Yes or no. Enter is neither: held down, or pressed once too often, it must do nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape", "answer(False)", "no"),
    ]

    def __init__(self, question: str, consequence: str = "") -> None:
        super().__init__()
        self._lines = [line((question, STRONG)), line(consequence), line(), line(("y yes   n no", DIM))]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(content_of(self._lines))

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)


class AskLine(ModalScreen[str | None]):
    """One line of text; None where it was left. ``required``: an empty line is no answer."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave")]

    def __init__(
        self, question: str, *, value: str = "", required: bool = True, empty: str = "", about: str = ""
    ) -> None:
        super().__init__()
        self._question = [line((question, STRONG)), *([line(about)] if about else [])]
        self._value = value
        self._required = required
        self._empty = empty

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(content_of(self._question))
            yield Input(value=self._value, id="answer", max_length=500, select_on_focus=True)
            hint = "enter: done   escape: leave it" + (f"   {self._empty}" if self._empty else "")
            yield Static(content_of([line((hint, DIM))]), id="hint")

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        text = event.value.strip()
        if text or not self._required:
            self.dismiss(text)
        else:
            self.query_one("#hint", Static).update(content_of([line("a reason, please: it is recorded")]))

    def action_leave(self) -> None:
        self.dismiss(None)


class Choose(ModalScreen[str | None]):
    """One of a few answers, each with its key; None where it was left."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave")]

    def __init__(self, question: str, answers: Sequence[tuple[str, str]], about: str = "") -> None:
        super().__init__()
        self._keys = [key for key, _ in answers]
        self._lines = [line((question, STRONG)), *([line(about)] if about else []), line()]
        self._lines += [line((f"  {key}  ", STRONG), words) for key, words in answers]
        self._lines += [line(), line(("escape: leave it", DIM))]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(content_of(self._lines))

    def on_key(self, event: Key) -> None:
        if event.key in self._keys:
            event.stop()
            self.dismiss(event.key)

    def action_leave(self) -> None:
        self.dismiss(None)
