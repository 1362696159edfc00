"""The console: one screen of panes over the ledger, polled once a second, that answers keys whatever the database does.

All reads are one call a second, for the visible pane alone, on a daemon thread; actions have a thread of their own. A
call that does not come back is left behind (``calls.py``): the last known data stays, greyed, with its age.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar

from textual import work
from textual.app import ComposeResult, ScreenStackError
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.widgets import ContentSwitcher, DataTable, Footer, Static

from sexton.cluster_views import Overview
from sexton.errors import Refused, SextonError
from sexton.store import open_store
from sexton.store.protocol import Store, StoreOptions
from sexton_tui.console.calls import Calls
from sexton_tui.console.core import details
from sexton_tui.console.core.history import LatenessHistory
from sexton_tui.console.core.keys import PANES, help_lines
from sexton_tui.console.core.leadership import alarm_lines
from sexton_tui.console.core.lines import ALARM, Line, line
from sexton_tui.console.core.tables import RUNNING
from sexton_tui.console.core.words import duration, wants_ascii
from sexton_tui.console.driver import driver_that_leaves
from sexton_tui.console.live_run import LiveRunScreen, read_run
from sexton_tui.console.operating import Operating
from sexton_tui.console.options import ConsoleOptions
from sexton_tui.console.panes import (
    EventsPane,
    JobsPane,
    OverviewPane,
    Pane,
    RunsPane,
    Shown,
    TakeoversPane,
    WorkersPane,
)
from sexton_tui.console.screens import LinesScreen
from sexton_tui.console.widgets.banner import Banner
from sexton_tui.console.widgets.dialogs import AskLine
from sexton_tui.console.widgets.drawing import content_of
from sexton_tui.console.widgets.tab import Tab
from sexton_tui.terminal import is_terminal_gone, leave_terminal_if_gone

__all__ = ["ConsoleOptions", "SextonConsole", "run_console"]

POLL_SECONDS = 1.0
BACK_OFF_SECONDS = (1.0, 2.0, 4.0, 8.0)
READ_WITHIN = 3.0
STALE_AFTER = 3.0
_PANE_TYPES: Mapping[str, type[Pane]] = {
    "overview": OverviewPane,
    "takeovers": TakeoversPane,
    "jobs": JobsPane,
    "runs": RunsPane,
    "workers": WorkersPane,
    "events": EventsPane,
}


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
        Binding("p", "pause", "pause"),
        Binding("r", "resume", "resume"),
        Binding("t", "trigger", "trigger"),
        Binding("R", "resign", "resign"),
        Binding("h", "halt", "halt", show=False),
        Binding("F", "force_leader", "force", show=False),
        Binding("C", "accept_clock", "accept the clock", show=False),
        Binding("K", "kill_leader", "kill"),
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
        self._answered_at: float | None = None
        self._started_at = monotonic()
        self._trouble = ""
        self._offered: tuple[str | None, bool] | None = None

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
        with Horizontal(id="top"):
            yield Static(content_of([line(self.options.title)]), id="title")
            for pane in PANES:
                yield Tab(f"{pane.key} {pane.title}", pane.id)
            yield Static(id="clock")
        yield Banner(id="banner", ascii_only=self.ascii_only)
        with ContentSwitcher(initial=PANES[0].id, id="panes"):
            for pane in PANES:
                yield _PANE_TYPES[pane.id](id=pane.id, ascii_only=self.ascii_only)
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

    def _choose(self, name: str) -> None:
        self.main.query_one("#panes", ContentSwitcher).current = name
        for tab in self.main.query(Tab):
            tab.set_class(tab.pane == name, "chosen")
        self.pane.add_class("waiting")  # what it shows is of its last visit
        if self.pane.table is not None:
            self.pane.table.focus()
        else:
            self.main.set_focus(None)
        self._offer()
        self._wake.set()

    # --- polling ----------------------------------------------------------------------------------

    @work(exclusive=True, group="poll", exit_on_error=False)
    async def poll(self) -> None:
        """Read and show, once a second; less often while nothing comes back."""
        failures = 0
        while True:
            self._wake.clear()
            pane = self.pane
            request, since = pane.request(), self._history.since

            def read(store: Store, since: datetime | None = since, request: Any = request) -> tuple[Overview, Any]:
                return store.reads.overview(since), request(store)

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
                    self._arrived(overview, pane, data)
            self._tell_age()
            pause = BACK_OFF_SECONDS[min(failures, len(BACK_OFF_SECONDS)) - 1] if failures else POLL_SECONDS
            await self._sleep(pause)

    async def _sleep(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), seconds)
        except TimeoutError:
            return

    def _arrived(self, overview: Overview, pane: Pane, data: Any) -> None:
        self._answered_at = self._monotonic()
        self._overview = overview
        self._history = self._history.merged(overview)
        pane.show(Shown(overview, self._history, self.ascii_only), data)
        pane.remove_class("waiting")
        self._offer()

    def _tell_age(self) -> None:
        with _unless_leaving():
            self._show_age()

    def _show_age(self) -> None:
        """The clock, the age of what is shown, and what must not be overlooked."""
        now = self._monotonic()
        age = now - (self._started_at if self._answered_at is None else self._answered_at)
        is_stale = age > STALE_AFTER or (self._answered_at is None and bool(self._trouble))
        self.main.set_class(is_stale, "stale")
        clock = "UTC"
        if self._overview is not None and self._answered_at is not None:
            clock = f"UTC {self._overview.now + timedelta(seconds=age):%H:%M:%S}"
        self.main.query_one("#clock", Static).update(content_of([line(clock)]))
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
        self.main.query_one("#banner", Banner).show(told)

    # --- keys -------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Which keys are offered now; the footer shows those alone."""
        if not self.screen_stack:
            return True
        if action in ("pause", "resume", "trigger"):
            return not self.options.read_only and self.job_under_cursor is not None
        if action in ("resign", "halt", "force_leader", "accept_clock"):
            return not self.options.read_only
        if action == "kill_leader":
            return not self.options.read_only and self.options.kill_leader is not None
        if action in ("find", "turn"):
            return self.screen is self.main and isinstance(self.pane, JobsPane | RunsPane)
        if action == "failed":
            return self.screen is self.main and isinstance(self.pane, RunsPane)
        return True

    def _offer(self) -> None:
        """Have the footer made anew where other keys are offered; it is empty for a moment."""
        with _unless_leaving():
            offered = (self.pane.id, self.pane.job_under_cursor is not None)
            if offered != self._offered:
                self._offered = offered
                self.refresh_bindings()

    @property
    def job_under_cursor(self) -> str | None:
        """The job that an action would be about."""
        if isinstance(self.screen, LinesScreen):
            return self.screen.job
        return self.pane.job_under_cursor if self.screen is self.main else None

    def action_pane(self, name: str) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self._choose(name)

    def action_help(self) -> None:
        lines = help_lines(can_kill=self.options.kill_leader is not None, read_only=self.options.read_only)
        if not isinstance(self.screen, LinesScreen):
            self._open_lines(LinesScreen(lines, ascii_only=self.ascii_only))

    def action_turn(self, pages: int) -> None:
        if isinstance(self.pane, JobsPane | RunsPane):
            self.pane.turn(pages)
            self._wake.set()

    def action_failed(self) -> None:
        if isinstance(self.pane, RunsPane):
            self.pane.toggle_failed()
            self._wake.set()

    @work
    async def action_find(self) -> None:
        pane = self.pane
        if isinstance(pane, JobsPane | RunsPane):
            question = "Jobs with this in their name" if isinstance(pane, JobsPane) else "Runs of the job"
            text = await self.push_screen_wait(AskLine(question, value=pane.find, required=False, empty="empty: all"))
            if text is not None:
                pane.find_by(text)
                self._wake.set()

    def on_tab_clicked(self, event: Tab.Clicked) -> None:
        self.action_pane(event.pane)

    # --- opening ----------------------------------------------------------------------------------

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        key = event.row_key.value
        if key is None:
            return
        if event.data_table.id == "job-table":
            self.open_job(key)
        elif event.data_table.id == "run-table":
            self.open_run(int(key.removeprefix(RUNNING)), goes_on=key.startswith(RUNNING))
        elif event.data_table.id == "takeover-table":
            self._wake.set()

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        if event.data_table.id == "takeover-table":
            self._wake.set()  # its decisions are shown below
        self._offer()

    @work(exclusive=True, group="open")
    async def open_job(self, name: str) -> None:
        """Show a job on a screen of its own."""
        detail = await self._read(lambda store: (store.reads.job(name, 10), store.now()))
        if detail is not None:
            lines = details.job_lines(*detail)
            self._open_lines(LinesScreen(lines, job=detail[0].job.name, ascii_only=self.ascii_only))

    @work(exclusive=True, group="open")
    async def open_run(self, token: int, *, goes_on: bool) -> None:
        """Show a run with its output."""
        if goes_on:
            if (run := await self._read(read_run(token))) is not None:
                writes = None if self.options.read_only else self._writes
                self._open_lines(LiveRunScreen(token, run, self._reads, writes, ascii_only=self.ascii_only))
            return
        output = await self._read(lambda store: (store.reads.run_output(token), store.now()))
        if output is not None:
            lines = details.run_lines(*output)
            self._open_lines(LinesScreen(lines, job=output[0].run.job, ascii_only=self.ascii_only))

    def _open_lines(self, screen: LinesScreen) -> None:
        self.push_screen(screen)
        if self.ascii_only:
            screen.add_class("ascii")

    async def _read(self, request: Callable[[Store], Any]) -> Any:
        """What was read; None after saying why not."""
        try:
            return await self._reads(request, READ_WITHIN + 1)
        except TimeoutError:
            self._say("the database does not answer", is_error=True)
        except SextonError as error:
            self._say(str(error), is_error=True)
        return None
