"""A job, opened: one of its parts at a time, by key or by a click on its name."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widget import Widget
from textual.widgets import ContentSwitcher, Static

from sexton_tui.console.core.lines import line
from sexton_tui.console.core.subjects import OfJob, Subject
from sexton_tui.console.opened.job.calendar import CalendarSection
from sexton_tui.console.opened.job.feeds import RunsSection, TicksSection
from sexton_tui.console.opened.job.overview import OverviewSection
from sexton_tui.console.opened.job.revisions import RevisionsSection
from sexton_tui.console.opened.job.section import Section
from sexton_tui.console.opened.screen import OpenedScreen
from sexton_tui.console.view import CursorMoved, Request, Shown
from sexton_tui.console.widgets.drawing import content_of

_SECTIONS: tuple[type[Section], ...] = (
    OverviewSection,
    TicksSection,
    RunsSection,
    CalendarSection,
    RevisionsSection,
)


class SectionName(Static):
    """The name of a part; a click shows it."""

    class Clicked(Message):
        """The part in this ``place`` was asked for."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    def __init__(self, title: str, place: int) -> None:
        super().__init__(content_of([line(title)]), classes="tab")
        self._place = place

    def on_click(self) -> None:
        self.post_message(self.Clicked(self._place))


class JobScreen(OpenedScreen):
    """Its parts, of which the one that is shown is read."""

    DEFAULT_CSS = "#sections { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "section(1)", "next part", key_display="tab"),
        Binding("shift+tab", "section(-1)", "part before", show=False),
    ]

    def __init__(self, job: OfJob, *, ascii_only: bool = False) -> None:
        super().__init__(job, ascii_only=ascii_only)
        self._sections = [of_type(job.job, ascii_only=ascii_only) for of_type in _SECTIONS]
        self._place = 0
        self._shown: Shown | None = None

    def compose_body(self) -> ComposeResult:
        with Horizontal(classes="top"):
            for place, section in enumerate(self._sections):
                yield SectionName(section.title, place)
            yield Static(content_of([line("tab: the next part")]), classes="clock")
        with ContentSwitcher(initial=self._sections[0].id, id="sections"):
            yield self._sections[0]

    def on_mount(self) -> None:
        super().on_mount()
        self._mark()

    @property
    def section(self) -> Section:
        """The part that is shown."""
        return self._sections[self._place]

    @property
    def subject(self) -> Subject | None:
        return self.section.subject if self.section.is_mounted else super().subject

    @property
    def focus_target(self) -> Widget | None:
        return self.section.focus_target

    def request(self) -> Request:
        section = self.section
        section.shown = self._shown
        read = section.request()
        return lambda store: (section, read(store))

    def show(self, shown: Shown, data: tuple[Section, object]) -> None:
        self._shown = shown
        section, found = data
        if section is self.section:
            section.show(shown, found)

    def show_missing(self, sentence: str) -> None:
        self.section.show_missing(sentence)

    def turn(self, pages: int) -> None:
        self.section.turn(pages)

    def jump_to(self, text: str, now: datetime) -> None:
        self.section.jump_to(text, now)

    async def on_section_name_clicked(self, event: SectionName.Clicked) -> None:
        await self._choose(event.place)

    async def action_section(self, by: int) -> None:
        await self._choose((self._place + by) % len(self._sections))

    async def _choose(self, place: int) -> None:
        """Show the part in this place; the first time, it is mounted."""
        section, switcher = self._sections[place], self.query_one("#sections", ContentSwitcher)
        if not section.is_attached:
            await switcher.add_content(section)
        self._place = place
        self.is_paged, self.is_in_time = section.is_paged, section.is_in_time
        switcher.current = section.id
        self._mark()
        self.set_focus(section.focus_target)
        self.refresh_bindings()
        self.post_message(CursorMoved(reads=True))

    def _mark(self) -> None:
        for place, name in enumerate(self.query(SectionName)):
            name.set_class(place == self._place, "chosen")
