"""What needs a human, as a list: arrows move, enter or a click opens what a need is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual._widget_navigation import Direction
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from sexton_tui.console.core.lines import GOOD, line
from sexton_tui.console.core.reading import reading_line
from sexton_tui.console.core.subjects import Subject
from sexton_tui.console.view import Awaiting, CursorMoved, OpenAsked
from sexton_tui.console.widgets.drawing import content_of

if TYPE_CHECKING:
    from sexton_tui.console.core.needs import Need


class NeedsList(OptionList, Awaiting):
    """The cursor stays on its need while others come and go, and is on the first where it was there."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "open", show=False)]

    def __init__(self, *, id: str, ascii_only: bool = False) -> None:  # noqa: A002 - Textual's name
        super().__init__(_waiting("", ascii_only), id=id, classes="block")
        self.border_title = "Needs a human: enter opens"
        self._ascii_only = ascii_only
        self._needs: tuple[Need, ...] | None = None

    @property
    def about(self) -> Subject | None:
        """What the need under the cursor is about."""
        place = self.highlighted
        return self._needs[place].about if self._needs and place is not None and place < len(self._needs) else None

    def tell_wait(self, trouble: str) -> None:
        if self._needs is None:
            self.replace_option_prompt_at_index(0, _waiting(trouble, self._ascii_only))

    def show(self, needs: Sequence[Need], *, with_keys: bool = True) -> None:
        """Show these; ``with_keys``: and the keys that act on them."""
        from sexton_tui.console.core.overview import need_line  # the first screen waits for none of it

        if tuple(needs) == self._needs:
            return
        before, place = self._needs or (), self.highlighted or 0
        self._needs = tuple(needs)
        told = needs if with_keys else [replace(need, keys="", todo="") for need in needs]
        lines = [need_line(need, under_banner=True, with_keys=True) for need in told]
        shown = lines or [line(("● ", GOOD), "nothing")]
        self.set_options([Option(content_of([one], ascii_only=self._ascii_only)) for one in shown])
        was = before[place].about if place and place < len(before) else None
        self.highlighted = next((at for at, need in enumerate(needs) if was is not None and need.about == was), 0)

    def _move_page(self, direction: Direction) -> None:
        if self.scrollable_content_region:  # without a line to show, Textual knows of no pages
            super()._move_page(direction)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if (about := self.about) is not None:
            self.post_message(OpenAsked(about))

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self.post_message(CursorMoved())


def _waiting(trouble: str, ascii_only: bool) -> Content:
    return content_of([reading_line(trouble, ascii_only=ascii_only)])
