"""Questions before an action: yes or no, a reason, or one of a few answers.

However small the terminal: the question scrolls, and where to answer stays in sight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from sexton.errors import InvalidInput
from sexton_tui.console.core.lines import DIM, STRONG, WARN, Line, line
from sexton_tui.console.held_keys import HeldKeys
from sexton_tui.console.widgets.drawing import content_of

Answer = TypeVar("Answer")


class Question(VerticalScroll, can_focus=False):
    """What is asked: the part that gives way where there is little room."""


class Dialog(ModalScreen[Answer | None]):
    """A question with where to answer it; None where it was left. ``is_followed``: an answer leads to another dialog,
    so that what is typed behind it waits for that."""

    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (10, "-low"), (24, "-roomy")]  # noqa: RUF012 - as Textual declares it
    HORIZONTAL_BREAKPOINTS = [(0, "-slim"), (60, "-broad")]  # noqa: RUF012 - as Textual declares it
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave"),
        Binding("up", "scroll(-1)", show=False),
        Binding("down", "scroll(1)", show=False),
        Binding("pageup", "scroll(-5)", show=False),
        Binding("pagedown", "scroll(5)", show=False),
    ]
    takes_text = False
    ends_the_hold = True

    def __init__(self, question: Sequence[Line], *, is_followed: bool = False) -> None:
        super().__init__()
        self._question = question
        self.is_followed = is_followed

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            with Question():
                yield Static(content_of(self._question), id="question")
            yield from self.answers()

    def answers(self) -> ComposeResult:
        """Where it is answered, below the question."""
        yield from ()

    def on_mount(self) -> None:
        if self.takes_text:
            self.set_focus(self.query(Input).first())
        if not self.ends_the_hold or not isinstance(self.app, HeldKeys):
            return
        if self.takes_text:
            self.app.give_text(self)
        else:
            self.app.give_answer(self, self.tell_unheard)

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        if not self.is_current:  # answered already, by the key before
            return AwaitComplete()
        if self.is_followed and result is not None and isinstance(self.app, HeldKeys):
            self.app.hold_keys()
        return super().dismiss(result)

    def ask(self, question: Sequence[Line]) -> None:
        """Ask this from now on."""
        self.query_one("#question", Static).update(content_of(question))
        self.query_one(Question).scroll_home(animate=False)

    def tell_unheard(self) -> None:
        """A key came so soon that it was no answer to this: ask for another."""
        told = line("typed before this was asked: once more, please; escape: leave it")
        self.query_one("#hint", Static).update(content_of([told]))

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_scroll(self, lines: int) -> None:
        self.query_one(Question).scroll_relative(y=lines, animate=False)


def hint(text: str) -> Static:
    """The line at the end that says how to answer."""
    return Static(content_of([line((text, DIM))]), id="hint", classes="hint")


class Reading(Dialog[None]):
    """What is asked is being read. Keys are held still, for the dialog that follows; escape leaves it."""

    ends_the_hold = False

    def __init__(self, title: str, leave: Callable[[], None]) -> None:
        super().__init__([line((title, STRONG)), line("reading …")])
        self._leave = leave

    def answers(self) -> ComposeResult:
        yield hint("escape: leave it")

    def action_leave(self) -> None:
        self._leave()


class Confirm(Dialog[bool]):
    """Yes or no. Enter is neither: held down, or pressed once too often, it must do nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n", "answer(False)", "no"),
    ]

    def __init__(self, question: str, consequence: str = "") -> None:
        super().__init__([line((question, STRONG)), line(consequence)])

    def answers(self) -> ComposeResult:
        yield hint("y yes   n no")

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)


class AskLine(Dialog[str]):
    """One line of text. ``required``: an empty line is no answer. ``take``: does with the text what it is for, and
    raises ``InvalidInput`` where it cannot: then it is said, and asked still."""

    takes_text = True

    def __init__(
        self,
        question: str,
        *,
        value: str = "",
        required: bool = True,
        empty: str = "",
        about: str = "",
        take: Callable[[str], object] | None = None,
        is_followed: bool = False,
    ) -> None:
        self._asked = line((question, STRONG))
        super().__init__([self._asked, *([line(about)] if about else [])], is_followed=is_followed)
        self._value = value
        self._required = required
        self._empty = empty
        self._take = take

    def answers(self) -> ComposeResult:
        yield Input(value=self._value, id="answer", max_length=500, select_on_focus=True)
        yield hint("enter: done   escape: leave it" + (f"   {self._empty}" if self._empty else ""))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value.strip()
        if not text and self._required:
            self.query_one("#hint", Static).update(content_of([line("a reason, please: it is recorded")]))
            return
        try:
            if self._take is not None:
                self._take(text)
        except InvalidInput as error:
            self.ask([line((str(error), WARN)), self._asked])
        else:
            self.dismiss(text)


class Choose(Dialog[str]):
    """One of a few answers, each with its key."""

    def __init__(self, question: str, answers: Sequence[tuple[str, str]], about: str = "") -> None:
        super().__init__([line((question, STRONG)), *([line(about)] if about else [])])
        self._answers = answers

    def answers(self) -> ComposeResult:
        lines = [line((f"  {key}  ", STRONG), words) for key, words in self._answers]
        yield Static(content_of(lines), classes="choices")
        yield hint("escape: leave it")

    def on_key(self, event: Key) -> None:
        if event.key in [key for key, _ in self._answers]:
            event.stop()
            self.dismiss(event.key)
