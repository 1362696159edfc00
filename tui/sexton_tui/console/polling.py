"""How the console reads: once a second, for the visible view alone, and what is told while nothing comes back.

What is read when is for ``core/pace.py`` to say: all refreshes together make at most five statements a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from textual import work
from textual.app import ScreenStackError
from textual.binding import Binding
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.widgets import ContentSwitcher, Static

from sexton.errors import NotFound, SextonError
from sexton.store import open_store
from sexton_tui.console.acts import Act
from sexton_tui.console.calls import Calls
from sexton_tui.console.core.history import LatenessHistory
from sexton_tui.console.core.leadership import alarm_lines
from sexton_tui.console.core.lines import ALARM, Line, line
from sexton_tui.console.core.pace import Pace, Turn
from sexton_tui.console.core.subjects import Subject
from sexton_tui.console.core.words import ClockReading, duration
from sexton_tui.console.opened.screen import OpenedScreen
from sexton_tui.console.operating import Operating
from sexton_tui.console.options import ConsoleOptions
from sexton_tui.console.panes import Pane
from sexton_tui.console.view import Request, Shown, View
from sexton_tui.console.widgets.banner import Banner
from sexton_tui.console.widgets.drawing import content_of
from sexton_tui.console.widgets.head import Head
from sexton_tui.console.widgets.tab import Tab

if TYPE_CHECKING:  # the first screen waits for none of it
    from sexton.cluster_views import Overview
    from sexton.store.protocol import Store
    from sexton.store.read_overview import OverviewParts

POLL_SECONDS = 1.0
BACK_OFF_SECONDS = (1.0, 2.0, 4.0, 8.0)
READ_WITHIN = 3.0
STALE_AFTER = 3.0


def unless_leaving() -> contextlib.AbstractContextManager[None]:
    """While the console is left, its widgets go before its timers do: what finds none has nothing to show any more."""
    return contextlib.suppress(NoMatches, ScreenStackError)


class Polling(Operating):
    """The views, and what keeps them fresh. ``monotonic`` measures the age of what is shown."""

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
        self._clock = ""
        self._offered: tuple[str, tuple[bool | None, ...]] | None = None
        self._pace = Pace(at=time.monotonic())
        self._parts: OverviewParts | None = None
        self._newest: tuple[View | None, Any] = (None, None)  # the view that was read last, and what was read

    def _open(self, read_only: bool) -> Store:
        from sexton.store.protocol import StoreOptions

        return open_store(
            StoreOptions(
                self.options.database_url,
                application="sexton console",
                answer_within=READ_WITHIN,
                read_only=read_only,
                clock=self.options.clock,
            )
        )

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

    async def read(self, request: Request) -> Any:
        try:
            return await self._reads(request, READ_WITHIN + 1)
        except TimeoutError:
            self.say("the database does not answer", is_error=True)
        except SextonError as error:
            self.say(str(error), is_error=True)
        return None

    async def find_jobs(self, text: str, limit: int) -> tuple[str, ...]:
        """Jobs whose names hold the letters of `text` in their order; none where the database does not answer."""
        try:
            return await self._reads(lambda store: store.reads.job_names(text, limit), READ_WITHIN)
        except (TimeoutError, SextonError):
            return ()

    async def act(self, act: Act) -> None:
        await super().act(act)
        self._pace = self._pace.acted()

    # --- polling ----------------------------------------------------------------------------------

    @work(exclusive=True, group="poll", exit_on_error=False)
    async def poll(self) -> None:
        """Read and show, once a second; less often while nothing comes back."""
        failures = 0
        while True:
            is_asked = self._wake.is_set()
            self._wake.clear()
            view = self.view
            name, request = type(view).__name__, view.request()
            turn = self._pace.turn(time.monotonic(), name, is_asked=is_asked or view.is_waiting)
            read = _reading(turn, self._parts, self._history.since, request)
            try:
                answer = await self._reads(read, READ_WITHIN + 1)
            except TimeoutError:
                failures, self._trouble = failures + 1, "the database does not answer"
            except SextonError as error:
                failures, self._trouble = failures + 1, str(error)
            except Exception as error:  # shown, and tried again: a poll must not end the console
                failures, self._trouble = failures + 1, f"{type(error).__name__}: {error}"
            else:
                failures, self._trouble = 0, ""
                at, is_first, self._parts = time.monotonic(), self._parts is None, answer.parts
                spent = self._pace.spent(at, turn, answer.statements, name, answer.of_view)
                self._pace = spent.began(at) if is_first else spent
                with unless_leaving():
                    self._arrived(answer.parts.overview, view, answer)
            self._tell_age()
            pause = BACK_OFF_SECONDS[min(failures, len(BACK_OFF_SECONDS)) - 1] if failures else POLL_SECONDS
            await self._sleep(pause)

    async def _sleep(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), seconds)
        except TimeoutError:
            return
        await asyncio.sleep(self._pace.wait(time.monotonic()))

    def _arrived(self, overview: Overview, view: View, answer: _Answer) -> None:
        self._answered_at = self._monotonic()
        self._overview = replace(overview, now=self._reading.now(overview.now, self.options.zone))
        self._history = self._history.merged(overview)
        if answer.of_view is not None:
            self._newest = (view, answer.data)
            view.is_waiting = False
            view.remove_class("waiting")
        of_view, data = self._newest
        if view.is_mounted and of_view is view and isinstance(data, NotFound):
            view.show_missing(str(data))
        elif view.is_mounted and of_view is view:
            view.show(Shown(self._overview, self._history, self.ascii_only, self.options.read_only), data)
        for tab in self.main.query(Tab):
            if tab.pane == "holds":
                tab.show_mark(f" ({len(overview.proposals)})" if overview.proposals else "")
        self._offer()

    def _tell_age(self) -> None:
        with unless_leaving():
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
            told += alarm_lines(self._overview, with_keys=not self.options.read_only)
        self.view.tell_wait(told[0].text.removeprefix("!! ") if is_stale else "")
        self.main.set_class(is_stale, "stale")
        if clock != self._clock:  # it is as wide as there is room
            self._clock = clock
            self.main.query_one("#clock", Static).update(content_of([line(clock)]), layout=False)
        self.main.query_one(Banner).show(told)
        for screen in self.screen_stack[1:]:
            if isinstance(screen, OpenedScreen) and screen.is_mounted:
                screen.set_class(is_stale, "stale")
                head = screen.query_one(Head)
                head.show_clock(line(clock))
                head.show_banner(told)

    def _offer(self) -> None:
        """Have the footer made anew where other keys are offered."""
        with unless_leaving():
            view = self.view
            actions = {one.action for one in self.BINDINGS if isinstance(one, Binding)}
            offered = (str(view.id or id(view)), tuple(self.check_action(one, ()) for one in sorted(actions)))
            if offered != self._offered:
                self._offered = offered
                self.refresh_bindings()

    def action_clock_reading(self) -> None:
        self._reading = self._reading.next
        if self._overview is not None:
            self._overview = replace(self._overview, now=self._reading.now(self._overview.now, self.options.zone))
        self._tell_age()
        self._wake.set()


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a turn read; ``of_view``: the statements of the view, None where its turn was not."""

    parts: OverviewParts
    data: Any
    statements: int
    of_view: int | None


def _reading(
    turn: Turn, known: OverviewParts | None, since: datetime | None, request: Request
) -> Callable[[Store], _Answer]:
    """Reads what the turn says; the view as of the moment at which it was read who leads."""

    def read(store: Store) -> _Answer:
        reads = store.reads
        before = reads.statements
        parts = reads.overview_parts(turn.parts, known, since)
        if known is not None and not turn.view:
            return _Answer(parts, None, reads.statements - before, None)
        of_parts = reads.statements
        with reads.at(parts.pulse.now):
            data = _found_or_not(request, store)
        return _Answer(parts, data, reads.statements - before, reads.statements - of_parts)

    return read


def _found_or_not(request: Request, store: Store) -> Any:
    """What was read; the error, where there is nothing to read."""
    try:
        return request(store)
    except NotFound as error:
        return error
