"""A run, opened: its output as it comes, until it has ended; then the run as it became."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from sexton.errors import NotFound, SextonError
from sexton.output_views import LiveOutput
from sexton.store.protocol import Store
from sexton.views import ClaimView, RunOutput
from sexton_tui.console.calls import Calling
from sexton_tui.console.core.lines import DIM, WARN, Line, Part, line
from sexton_tui.console.core.run_page import Outputs, live_head, live_output_lines, run_head, run_output_lines
from sexton_tui.console.core.subjects import OfRun, Subject
from sexton_tui.console.core.words import clock_of
from sexton_tui.console.opened.screen import OpenedScreen
from sexton_tui.console.view import Request, Shown
from sexton_tui.console.widgets.drawing import content_of
from sexton_tui.console.widgets.read_lines import ReadLines

WATCH_FOR = timedelta(seconds=15)
WATCH_EVERY = 5.0
_WATCH_WITHIN = 5.0


@dataclass(frozen=True, slots=True)
class LiveRun:
    """What was read of it. Both None: it is over, and nothing is known of it any more."""

    claim: ClaimView | None
    live: LiveOutput | None
    ended: RunOutput | None


def read_run(token: int) -> Callable[[Store], LiveRun]:
    """Reads the run with this token, whether it goes on or has ended."""

    def read(store: Store) -> LiveRun:
        claim = store.reads.running_claim(token)
        if claim is not None:
            return LiveRun(claim, store.reads.live_output(token), None)
        try:
            return LiveRun(None, None, store.reads.run_output(token))
        except NotFound:
            return LiveRun(None, None, None)

    return read


class RunScreen(OpenedScreen):
    """How it goes above, its output below, followed while it grows unless one scrolls back.

    ``writes`` None: this console changes nothing, not even by a watch, and shows output only where somebody else
    follows.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "outputs", "stdout/stderr"),
        Binding("l", "follow", "follow"),
    ]

    def __init__(self, run: OfRun, writes: Calling | None, *, ascii_only: bool = False) -> None:
        super().__init__(run, ascii_only=ascii_only)
        self._run = run
        self._token = run.token
        self._writes = writes
        self._is_first = True
        self._goes_on = run.goes_on
        self._is_read = False
        self._data: LiveRun | None = None
        self._shown: Shown | None = None
        self._outputs = Outputs.BOTH
        self._follows = run.goes_on

    def compose_body(self) -> ComposeResult:
        yield ReadLines(classes="opened-head", ascii_only=self.ascii_only)
        with VerticalScroll(id="page"):
            yield Static(id="lines")

    @property
    def subject(self) -> Subject | None:
        return replace(self._run, goes_on=self._goes_on)

    @property
    def focus_target(self) -> Widget | None:
        return self.query_one("#page")

    def on_mount(self) -> None:
        super().on_mount()
        if self._goes_on:
            self.set_interval(WATCH_EVERY, self._watch)
            self.call_later(self._watch)

    async def _watch(self) -> None:
        """Ask the run's worker to write its output down while somebody looks."""
        if self._writes is None or not self._goes_on:
            return
        is_first, self._is_first = self._is_first, False
        try:
            await self._writes(
                lambda store: store.outputs.watch(self._token, WATCH_FOR, remind=is_first), _WATCH_WITHIN
            )
        except (TimeoutError, SextonError):
            self._is_first = is_first  # the console says that what it shows is old

    def request(self) -> Request:
        if self._is_read and not self._goes_on:
            return lambda _store: None
        return read_run(self._token)

    def show(self, shown: Shown, data: LiveRun | None) -> None:
        is_other_clock = self._shown is None or clock_of(self._shown.now) != clock_of(shown.now)
        self._shown = shown
        if data is not None:
            self._is_read, self._goes_on, self._data = True, data.claim is not None, data
            self.refresh_bindings()
        if data is not None or is_other_clock:
            self._draw()

    def _draw(self) -> None:
        """Show what is known of the run."""
        if self._data is None or self._shown is None:
            return
        page = self.query_one("#page", VerticalScroll)
        if self._follows and page.scroll_offset.y < page.max_scroll_y and not page.is_vertical_scrollbar_grabbed:
            self._follows = page.scroll_offset.y >= self._end_shown  # who scrolled back reads there
        head, body = self._lines(self._data, self._shown.now)
        self.query_one(".opened-head", Static).update(content_of(head, ascii_only=self.ascii_only))
        self.query_one("#lines", Static).update(content_of(body, ascii_only=self.ascii_only))
        if self._follows:
            self.call_after_refresh(self._to_end)

    _end_shown = 0.0

    def _to_end(self) -> None:
        for page in self.query("#page").results(VerticalScroll):  # none, where the screen was left meanwhile
            page.scroll_end(animate=False, immediate=True)
            self._end_shown = page.max_scroll_y

    def _lines(self, data: LiveRun, now: datetime) -> tuple[list[Line], list[Line]]:
        keys: list[Part] = [(f"{self._outputs.value}   v shows {self._outputs.next.value}", DIM)]
        if data.claim is not None:
            keys.append((f"   following: {'yes' if self._follows else 'no'}, l changes that", DIM))
            return [*live_head(data.claim, now), line(*keys)], live_output_lines(data.live, self._outputs)
        if data.ended is not None:
            return [*run_head(data.ended, now), line(*keys)], run_output_lines(data.ended, self._outputs)
        return [line(("this run is over", WARN))], []

    def show_missing(self, sentence: str) -> None:
        self.query_one(".opened-head", Static).update(content_of([line((sentence, WARN))]))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._goes_on if action == "follow" else True

    def action_outputs(self) -> None:
        self._outputs = self._outputs.next
        self._draw()

    def action_follow(self) -> None:
        self._follows = not self._follows
        self._end_shown = 0.0
        self._draw()
