"""The console: panes over the ledger and screens on top of them, that answer keys whatever the database does.

All reads are one call a second, for the visible view alone, on a daemon thread; actions have a thread of their own. A
call that does not come back is left behind (``calls.py``): the last known data stays, greyed, with its age.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from textual import work
from textual.app import ComposeResult, ScreenStackError
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.css.query import NoMatches
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import ContentSwitcher, Footer, Static

from sexton.cluster_views import Overview
from sexton.errors import NotFound, Refused, SextonError
from sexton.store import open_store
from sexton.store.protocol import Store, StoreOptions
from sexton_tui.console.calls import Calls
from sexton_tui.console.core.history import LatenessHistory
from sexton_tui.console.core.keys import PANES, help_lines
from sexton_tui.console.core.leadership import alarm_lines
from sexton_tui.console.core.lines import ALARM, Line, line
from sexton_tui.console.core.subjects import Subject
from sexton_tui.console.core.words import ClockReading, duration, wants_ascii
from sexton_tui.console.driver import driver_that_leaves
from sexton_tui.console.opened.help import HelpScreen
from sexton_tui.console.opened.opening import screen_for
from sexton_tui.console.opened.screen import OpenedScreen
from sexton_tui.console.operating import OPERATING_BINDINGS, Operating
from sexton_tui.console.options import ConsoleOptions
from sexton_tui.console.panes import PANE_TYPES, Pane
from sexton_tui.console.panes.runs import RunsPane
from sexton_tui.console.view import CursorMoved, OpenAsked, Request, Shown, View
from sexton_tui.console.widgets.banner import Banner
from sexton_tui.console.widgets.dialogs import AskLine
from sexton_tui.console.widgets.drawing import content_of
from sexton_tui.console.widgets.head import Head
from sexton_tui.console.widgets.tab import Tab
from sexton_tui.terminal import is_terminal_gone, leave_terminal_if_gone

__all__ = ["ConsoleOptions", "SextonConsole", "run_console"]

POLL_SECONDS = 1.0
BACK_OFF_SECONDS = (1.0, 2.0, 4.0, 8.0)
READ_WITHIN = 3.0
STALE_AFTER = 3.0
_NARROW = 110


def run_console(options: ConsoleOptions) -> int:
    """Run the console until it is left; its exit code. Raises ``Refused`` where there is no terminal to draw on."""
    # On Linux Textual draws on stderr and would wait forever for a terminal that is none.
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or os.environ.get("TERM", "dumb") in ("dumb", ""):
        raise Refused("the console needs a terminal", hint="use `sexton status --watch`")
    app = SextonConsole(options, ascii_only=options.ascii or wants_ascii(os.environ))
    app.driver_class = driver_that_leaves(app.is_being_left)
    app.run()
    leave_terminal_if_gone()
    return 0


def _unless_leaving() -> contextlib.AbstractContextManager[None]:
    """While the console is left, its widgets go before its timers do: what finds none has nothing to show any more."""
    return contextlib.suppress(NoMatches, ScreenStackError)


class SextonConsole(Operating):
    """The console's app. ``monotonic`` measures the age of what is shown."""

    CSS_PATH = "sexton.tcss"
    TITLE = "Sexton"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide"), (200, "-ultra")]  # noqa: RUF012 - as Textual declares it
    VERTICAL_BREAKPOINTS = [(0, "-short"), (34, "-tall")]  # noqa: RUF012 - as Textual declares it
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(pane.key, f"pane('{pane.id}')", pane.title, show=False) for pane in PANES),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("slash", "find", "find", key_display="/"),
        Binding("f", "failed", "failed"),
        Binding("left_square_bracket", "turn(-1)", "before", key_display="[", show=False),
        Binding("right_square_bracket", "turn(1)", "after", key_display="]", show=False),
        Binding("z", "clock_reading", "zone", show=False),
        *OPERATING_BINDINGS,
        Binding("q", "quit", "leave"),
    ]

    def __init__(
        self,
        options: ConsoleOptions,
        *,
        ascii_only: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(options, lambda: self._open(False))
        self.ascii_only = ascii_only
        self._monotonic = monotonic
        self._reads = Calls(lambda: self._open(options.read_only), "console reads")
        self._history = LatenessHistory()
        self._reading = ClockReading.UTC
        self._answered_at: float | None = None
        self._started_at = monotonic()
        self._trouble = ""
        self._offered: tuple[str, Subject | None] | None = None

    def _open(self, read_only: bool) -> Store:
        return open_store(
            StoreOptions(
                self.options.database_url,
                application="sexton console",
                answer_within=READ_WITHIN,
                read_only=read_only,
                clock=self.options.clock,
            )
        )

    # --- the screen -------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        with Horizontal(id="top", classes="top"):
            yield Static(content_of([line(self.options.title)]), id="title")
            for pane in PANES:
                yield Tab(pane)
            yield Static(id="clock", classes="clock")
        yield Banner(ascii_only=self.ascii_only)
        with ContentSwitcher(initial=PANES[0].id, id="panes"):
            for pane in PANES:
                yield PANE_TYPES[pane.id](id=pane.id, ascii_only=self.ascii_only)
        yield Footer()

    def on_mount(self) -> None:
        if self.ascii_only:
            self.screen.add_class("ascii")
        self._choose(PANES[0].id)
        self.set_interval(0.5, self._tell_age)
        if not self.is_headless:
            self.set_interval(0.5, self._leave_without_terminal)
        if self.options.is_over is not None:
            self.set_interval(0.5, self._leave_when_over)
        self.poll()

    def on_resize(self, event: Resize) -> None:
        for tab in self.main.query(Tab):
            tab.show_short(event.size.width < _NARROW)

    def is_being_left(self) -> bool:
        """Whether nobody waits for the screen any more."""
        return self._exit or (self.options.is_over is not None and self.options.is_over())

    def _leave_when_over(self) -> None:
        if self.options.is_over is not None and self.options.is_over():
            self.exit()

    def _leave_without_terminal(self) -> None:
        if is_terminal_gone():
            self.exit()

    async def on_unmount(self) -> None:
        for calls in (self._reads, self._writes):
            calls.close()
        self._errands.close()

    @property
    def main(self) -> Screen[Any]:
        """The screen of the panes, whatever lies on top of it. Raises ``ScreenStackError`` once it is gone."""
        if not self.screen_stack:
            raise ScreenStackError("the console is being left")
        return self.screen_stack[0]

    @property
    def pane(self) -> Pane:
        """The chosen pane."""
        switcher = self.main.query_one("#panes", ContentSwitcher)
        return self.main.query_one(f"#{switcher.current}", Pane)

    @property
    def view(self) -> View:
        """What is looked at: the topmost opened screen, else the chosen pane."""
        for screen in reversed(self.screen_stack[1:]):
            if isinstance(screen, OpenedScreen):
                return screen
        return self.pane

    @property
    def subject(self) -> Subject | None:
        return self.view.subject

    def _choose(self, name: str) -> None:
        self.main.query_one("#panes", ContentSwitcher).current = name
        for tab in self.main.query(Tab):
            tab.set_class(tab.pane == name, "chosen")
        self.pane.add_class("waiting")  # what it shows is of its last visit
        self.main.set_focus(self.pane.focus_target)
        self._offer()
        self._wake.set()

    # --- polling ----------------------------------------------------------------------------------

    @work(exclusive=True, group="poll", exit_on_error=False)
    async def poll(self) -> None:
        """Read and show, once a second; less often while nothing comes back."""
        failures = 0
        while True:
            self._wake.clear()
            view = self.view
            request, since = view.request(), self._history.since

            def read(store: Store, since: datetime | None = since, request: Request = request) -> tuple[Overview, Any]:
                return store.reads.overview(since), _found_or_not(request, store)

            try:
                overview, data = await self._reads(read, READ_WITHIN + 1)
            except TimeoutError:
                failures, self._trouble = failures + 1, "the database does not answer"
            except SextonError as error:
                failures, self._trouble = failures + 1, str(error)
            except Exception as error:  # shown, and tried again: a poll must not end the console
                failures, self._trouble = failures + 1, f"{type(error).__name__}: {error}"
            else:
                failures, self._trouble = 0, ""
                with _unless_leaving():
                    self._arrived(overview, view, data)
            self._tell_age()
            pause = BACK_OFF_SECONDS[min(failures, len(BACK_OFF_SECONDS)) - 1] if failures else POLL_SECONDS
            await self._sleep(pause)

    async def _sleep(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), seconds)
        except TimeoutError:
            return

    def _arrived(self, overview: Overview, view: View, data: Any) -> None:
        self._answered_at = self._monotonic()
        self._overview = replace(overview, now=self._reading.now(overview.now, self.options.zone))
        self._history = self._history.merged(overview)
        if view.is_mounted and isinstance(data, NotFound):
            view.show_missing(str(data))
        elif view.is_mounted:
            view.show(Shown(self._overview, self._history, self.ascii_only), data)
        view.remove_class("waiting")
        for tab in self.main.query(Tab):
            if tab.pane == "holds":
                tab.show_mark(f" ({len(overview.proposals)})" if overview.proposals else "")
        self._offer()

    def _tell_age(self) -> None:
        with _unless_leaving():
            self._show_age()

    def _show_age(self) -> None:
        """The clock, the age of what is shown, and what must not be overlooked: on the panes and on what is open."""
        now = self._monotonic()
        age = now - (self._started_at if self._answered_at is None else self._answered_at)
        is_stale = age > STALE_AFTER or (self._answered_at is None and bool(self._trouble))
        clock = "UTC"
        if self._overview is not None and self._answered_at is not None:
            clock = self._reading.clock(self._overview.now + timedelta(seconds=age))
        told: list[Line] = []
        if is_stale:
            old = (
                f"stale: {duration(timedelta(seconds=int(age)))} old"
                if self._answered_at is not None
                else "no data yet"
            )
            told.append(line((f"!! {old}; {self._trouble or 'the database does not answer'}", ALARM)))
        if self._overview is not None:
            told += alarm_lines(self._overview)
        self.main.set_class(is_stale, "stale")
        self.main.query_one("#clock", Static).update(content_of([line(clock)]))
        self.main.query_one(Banner).show(told)
        for screen in self.screen_stack[1:]:
            if isinstance(screen, OpenedScreen) and screen.is_mounted:
                screen.set_class(is_stale, "stale")
                head = screen.query_one(Head)
                head.show_clock(line(clock))
                head.show_banner(told)

    # --- keys -------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Which keys are offered now; the footer shows those alone."""
        if not self.screen_stack:
            return True
        if (is_offered := self.offers(action)) is not None:
            return is_offered
        if action == "find":
            return self.view.is_findable
        if action == "turn":
            return self.view.is_paged
        if action == "failed":
            return isinstance(self.view, RunsPane)
        return True

    def _offer(self) -> None:
        """Have the footer made anew where other keys are offered; it is empty for a moment."""
        with _unless_leaving():
            view = self.view
            offered = (str(view.id or id(view)), view.subject)
            if offered != self._offered:
                self._offered = offered
                self.refresh_bindings()

    def action_pane(self, name: str) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self._choose(name)

    def action_help(self) -> None:
        lines = help_lines(can_kill=self.options.kill_leader is not None, read_only=self.options.read_only)
        if not isinstance(self.screen, HelpScreen):
            self._push(HelpScreen(lines, ascii_only=self.ascii_only))

    def action_turn(self, pages: int) -> None:
        self.view.turn(pages)
        self._wake.set()

    def action_failed(self) -> None:
        if isinstance(self.view, RunsPane):
            self.view.toggle_failed()
            self._wake.set()

    def action_clock_reading(self) -> None:
        self._reading = self._reading.next
        if self._overview is not None:
            self._overview = replace(self._overview, now=self._reading.now(self._overview.now, self.options.zone))
        self._tell_age()
        self._wake.set()

    @work
    async def action_find(self) -> None:
        view = self.view
        if view.is_findable:
            question = "Runs of the job" if isinstance(view, RunsPane) else "Jobs with this in their name"
            text = await self.push_screen_wait(AskLine(question, value=view.find, required=False, empty="empty: all"))
            if text is not None:
                view.find_by(text)
                self._wake.set()

    def on_tab_clicked(self, event: Tab.Clicked) -> None:
        self.action_pane(event.pane)

    # --- opening ----------------------------------------------------------------------------------

    def on_open_asked(self, event: OpenAsked) -> None:
        self.open(event.subject)

    def on_cursor_moved(self, event: CursorMoved) -> None:
        if event.reads:
            self._wake.set()
        self._offer()

    def open(self, subject: Subject) -> None:
        """Show the subject on a screen of its own, where it has one."""
        writes = None if self.options.read_only else self._writes
        if (screen := screen_for(subject, writes, ascii_only=self.ascii_only)) is not None:
            self._push(screen)

    async def read(self, request: Request) -> Any:
        try:
            return await self._reads(request, READ_WITHIN + 1)
        except TimeoutError:
            self.say("the database does not answer", is_error=True)
        except SextonError as error:
            self.say(str(error), is_error=True)
        return None

    def _push(self, screen: OpenedScreen) -> None:
        trail = [self.options.title, next(pane.title for pane in PANES if pane.id == self.pane.id)]
        trail += [opened.crumb for opened in self.screen_stack[1:] if isinstance(opened, OpenedScreen)]
        screen.trail = (*trail, screen.crumb)
        self.push_screen(screen, lambda _: self._came_back())
        self._offer()
        self._wake.set()

    def _came_back(self) -> None:
        self._offer()
        self._wake.set()


def _found_or_not(request: Request, store: Store) -> Any:
    """What was read; the error, where there is nothing to read."""
    try:
        return request(store)
    except NotFound as error:
        return error
