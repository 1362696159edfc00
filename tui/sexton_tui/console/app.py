"""The console: panes over the ledger and screens on top of them, that answer keys whatever the database does.

All reads are one call a second, for the visible view alone, on a daemon thread; actions have a thread of their own. A
call that does not come back is left behind (``calls.py``): the last known data stays, greyed, with its age.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.events import Resize
from textual.filter import LineFilter
from textual.widgets import ContentSwitcher, Static

from sexton.errors import Refused
from sexton_tui.console.ascii_filter import AsciiFilter
from sexton_tui.console.core.keys import PANES, help_lines
from sexton_tui.console.core.lines import line
from sexton_tui.console.core.subjects import Subject, crumb
from sexton_tui.console.core.typed_instants import EXAMPLES
from sexton_tui.console.core.words import wants_ascii
from sexton_tui.console.driver import driver_that_leaves
from sexton_tui.console.loading import load_next, part
from sexton_tui.console.opened.opening import SCREEN_PARTS, screen_for
from sexton_tui.console.opened.screen import OpenedScreen
from sexton_tui.console.operating import OPERATING_BINDINGS
from sexton_tui.console.operating.asking import asks
from sexton_tui.console.options import ConsoleOptions
from sexton_tui.console.palette import SextonCommands, SextonPalette
from sexton_tui.console.panes import PANE_PARTS, make_pane
from sexton_tui.console.polling import Polling, unless_leaving
from sexton_tui.console.themes import next_theme, themes
from sexton_tui.console.view import CursorMoved, OpenAsked
from sexton_tui.console.widgets.banner import Banner
from sexton_tui.console.widgets.dialogs import AskLine
from sexton_tui.console.widgets.drawing import content_of
from sexton_tui.console.widgets.keys_footer import KeysFooter
from sexton_tui.console.widgets.tab import Tab
from sexton_tui.terminal import is_terminal_gone, leave_terminal_if_gone

__all__ = ["ConsoleOptions", "SextonConsole", "run_console"]

_NARROW = 110
_HELP = "sexton_tui.console.opened.help:HelpScreen"
_LOADED_AHEAD = (*PANE_PARTS.values(), *SCREEN_PARTS.values(), _HELP)
_LOAD_EVERY = 0.05  # seconds
_GREY_AFTER = 0.3
_SWITCH_SECONDS = 0.001  # a key waits no longer than that for a thread that makes values of what it read


def run_console(options: ConsoleOptions) -> int:
    """Run the console until it is left; its exit code. Raises ``Refused`` where there is no terminal to draw on."""
    # On Linux Textual draws on stderr and would wait forever for a terminal that is none.
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or os.environ.get("TERM", "dumb") in ("dumb", ""):
        raise Refused("the console needs a terminal", hint="use `sexton status --watch`")
    app = SextonConsole(options, ascii_only=options.ascii or wants_ascii(os.environ))
    app.driver_class = driver_that_leaves(app.is_being_left)
    sys.setswitchinterval(_SWITCH_SECONDS)
    app.run()
    leave_terminal_if_gone()
    return app.return_code or 0


class SextonConsole(Polling):
    """The console's app. ``monotonic`` measures the age of what is shown."""

    CSS_PATH = "sexton.tcss"
    TITLE = "Sexton"
    COMMANDS = App.COMMANDS | {SextonCommands}
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide"), (200, "-ultra")]  # noqa: RUF012 - as Textual declares it
    VERTICAL_BREAKPOINTS = [(0, "-short"), (34, "-tall")]  # noqa: RUF012 - as Textual declares it
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(pane.key, f"pane('{pane.id}')", pane.title, show=False) for pane in PANES),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("slash", "find", "find", key_display="/"),
        Binding("slash", "find_jobs", "find jobs", key_display="/"),
        Binding("f", "failed", "failed"),
        Binding("S", "sort", "sort"),
        Binding("at", "jump", "go to", key_display="@"),
        Binding("at", "runs_at", "runs at", key_display="@"),
        Binding("escape", "widen", "all"),
        Binding("left_square_bracket", "turn(-1)", "before", key_display="[", show=False),
        Binding("right_square_bracket", "turn(1)", "after", key_display="]", show=False),
        Binding("z", "clock_reading", "zone", show=False),
        Binding("T", "next_theme", "theme", show=False),
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
        super().__init__(options, ascii_only=ascii_only, monotonic=monotonic)
        for theme in themes():
            self.register_theme(theme)
        self.theme = options.theme

    def get_line_filters(self) -> Sequence[LineFilter]:
        filters = super().get_line_filters()
        return [*filters, AsciiFilter()] if self.ascii_only else filters

    # --- the screen -------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        with Horizontal(id="top", classes="top"):
            yield Static(content_of([line(self.options.title)]), id="title")
            for pane in PANES:
                yield Tab(pane)
            yield Static(id="clock", classes="clock")
        yield Banner(ascii_only=self.ascii_only)
        with ContentSwitcher(initial=PANES[0].id, id="panes"):
            yield make_pane(PANES[0].id, ascii_only=self.ascii_only)
        yield KeysFooter()

    async def on_mount(self) -> None:
        if self.ascii_only:
            self.screen.add_class("ascii")
        await self._choose(PANES[0].id)
        self._loading_ahead = self.set_interval(_LOAD_EVERY, self._load_ahead)
        self.set_interval(0.5, self._tell_age)
        if not self.is_headless:
            self.set_interval(0.5, self._leave_without_terminal)
        if self.options.is_over is not None:
            self.set_interval(0.5, self._leave_when_over)
        self.call_after_refresh(self.poll)  # the first screen waits for no database and none of its libraries

    def on_resize(self, event: Resize) -> None:
        for tab in self.main.query(Tab):
            tab.show_short(event.size.width < _NARROW)

    def is_being_left(self) -> bool:
        """Whether nobody waits for the screen any more."""
        return self._exit or (self.options.is_over is not None and self.options.is_over())

    def _handle_exception(self, error: Exception) -> None:
        # While the console is left, widgets go before what is asked of them does; telling that to a terminal that
        # stands still would keep it for ever.
        if not self.is_being_left():
            super()._handle_exception(error)

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

    def _load_ahead(self) -> None:
        """Load the next part that was not needed yet, once what was needed first is on the screen."""
        if (self._overview is not None or self._trouble) and not load_next(_LOADED_AHEAD):
            self._loading_ahead.stop()
            if not gc.isenabled():  # who started the console left that to it
                gc.freeze()  # what is loaded stays: no key waits while it is searched for garbage
                gc.enable()

    async def _choose(self, name: str) -> None:
        """Bring a pane to the front; the first time, it is made."""
        switcher = self.main.query_one("#panes", ContentSwitcher)
        if not switcher.query_children(f"#{name}"):
            await switcher.add_content(make_pane(name, ascii_only=self.ascii_only))
        switcher.current = name
        for tab in self.main.query(Tab):
            tab.set_class(tab.pane == name, "chosen")
        self.pane.is_waiting = True
        self.set_timer(_GREY_AFTER, self._grey)
        self.main.set_focus(self.pane.focus_target)
        self._offer()
        self._wake.set()

    def _grey(self) -> None:
        """What the pane shows is of its last visit, and nothing newer has come yet."""
        with unless_leaving():
            self.pane.set_class(self.pane.is_waiting, "waiting")

    # --- keys -------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Which keys are offered now; the footer shows those alone."""
        if not self.screen_stack:
            return True
        if (is_offered := self.offers(action)) is not None:
            return is_offered
        if action in ("find", "find_jobs"):
            return self.view.is_findable is (action == "find")
        if action in ("jump", "runs_at"):
            return self.view.is_in_time is (action == "jump")
        if action == "turn":
            return self.view.is_paged
        if action == "sort":
            return self.view.is_sortable
        if action == "widen":
            return self.view.is_narrowed
        if action == "failed":
            return self.view.has_failures
        return True

    async def action_pane(self, name: str) -> None:
        while len(self.screen_stack) > 1:
            self.screen.dismiss(None)
        await self._choose(name)

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, SextonPalette):
            self.push_screen(SextonPalette(id="--command-palette"))

    def action_help(self) -> None:
        help_screen = part(_HELP)
        if not isinstance(self.screen, help_screen):
            bindings = [one.binding for one in self.screen.active_bindings.values()]
            here = {self.get_key_display(one): one.description for one in bindings if one.show or "turn" in one.action}
            can_kill = self.options.kill_leader is not None
            lines = help_lines(can_kill=can_kill, read_only=self.options.read_only, here=here)
            self._push(help_screen(lines, ascii_only=self.ascii_only))

    def action_turn(self, pages: int) -> None:
        self.view.turn(pages)
        self._wake.set()

    def action_failed(self) -> None:
        self.view.toggle_failed()
        self._wake.set()

    def action_next_theme(self) -> None:
        self.theme = next_theme(self.theme)

    def action_sort(self) -> None:
        self.view.sort()
        self._wake.set()

    def action_widen(self) -> None:
        self.view.widen()
        self._offer_anew()

    @asks
    async def action_find(self) -> None:
        await self._find()

    @asks
    async def action_find_jobs(self) -> None:
        """Where there is no list to narrow: letters follow this key, wherever it is pressed."""
        await self.action_pane("jobs")
        await self._find()

    @asks
    async def action_jump(self) -> None:
        await self._jump()

    @asks
    async def action_runs_at(self) -> None:
        """Where there is no time to go to."""
        await self.action_pane("runs")
        await self._jump()

    async def _find(self) -> None:
        view = self.view
        await self._ask_view(view.find_question, view.find, "empty: all", view.find_by)

    async def _jump(self) -> None:
        if self._overview is None:
            self.say("nothing was read yet: there is no time to go to", is_error=True)
            return
        view, now = self.view, self._overview.now
        question = f"Go to (in {now:%Z}): {EXAMPLES}"
        await self._ask_view(question, "", "empty: as of now", lambda text: view.jump_to(text, now))

    async def _ask_view(self, question: str, value: str, empty: str, take: Callable[[str], None]) -> None:
        """Ask for a line until the view can do with it."""
        if await self.ask(AskLine(question, value=value, required=False, empty=empty, take=take)) is not None:
            self._offer_anew()

    def _offer_anew(self) -> None:
        self._offered = None
        self._offer()
        self._wake.set()

    async def on_tab_clicked(self, event: Tab.Clicked) -> None:
        await self.action_pane(event.pane)

    # --- opening ----------------------------------------------------------------------------------

    def on_open_asked(self, event: OpenAsked) -> None:
        self.open(event.subject)

    def on_cursor_moved(self, event: CursorMoved) -> None:
        if event.reads:
            self._wake.set()
        self._offer()

    def open(self, subject: Subject) -> None:
        """Show the subject on a screen of its own, where it has one, and it is not open already."""
        if isinstance(self.view, OpenedScreen) and self.view.crumb == crumb(subject):
            return
        writes = None if self.options.read_only else self._writes
        if (screen := screen_for(subject, writes, ascii_only=self.ascii_only)) is not None:
            self._push(screen)

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
