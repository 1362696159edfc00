"""A run that goes on, opened: its output as it comes, until it has ended; then the run as it became."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from textual.containers import VerticalScroll
from textual.widgets import Static

from sexton.errors import NotFound, SextonError
from sexton.output_views import LiveOutput
from sexton.store.protocol import Store
from sexton.views import ClaimView, RunOutput
from sexton_tui.console.core.details import live_lines, run_lines
from sexton_tui.console.core.lines import WARN, Line, line
from sexton_tui.console.screens import LinesScreen
from sexton_tui.console.widgets.drawing import content_of

REFRESH_SECONDS = 1.0
WATCH_FOR = timedelta(seconds=15)
WATCH_EVERY = 5  # refreshes

CALL_WITHIN = 5.0

Calling = Callable[[Callable[[Store], Any], float], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class LiveRun:
    """What was read of it. Both None: it is over, and nothing is known of it any more."""

    claim: ClaimView | None
    live: LiveOutput | None
    ended: RunOutput | None
    now: datetime


def read_run(token: int) -> Callable[[Store], LiveRun]:
    """Reads the run with this token, which ran a moment ago."""

    def read(store: Store) -> LiveRun:
        claim = store.reads.running_claim(token)
        if claim is not None:
            return LiveRun(claim, store.reads.live_output(token), None, store.now())
        try:
            return LiveRun(None, None, store.reads.run_output(token), store.now())
        except NotFound:
            return LiveRun(None, None, None, store.now())

    return read


def lines_of(run: LiveRun) -> list[Line]:
    """The page of it."""
    if run.claim is not None:
        return live_lines(run.claim, run.live, run.now)
    if run.ended is not None:
        return run_lines(run.ended, run.now)
    return [line(("this run is over", WARN))]


class LiveRunScreen(LinesScreen):
    """Reads anew once a second while it is open. ``writes`` None: this console changes nothing, not even by a watch,
    and shows output only where somebody else follows."""

    def __init__(self, token: int, first: LiveRun, reads: Calling, writes: Calling | None, *, ascii_only: bool) -> None:
        job = None if first.claim is None else first.claim.job
        super().__init__(lines_of(first), job=job, ascii_only=ascii_only)
        self._token = token
        self._reads = reads
        self._writes = writes
        self._count = 0
        self._is_busy = False
        self._goes_on = first.claim is not None

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(REFRESH_SECONDS, self._refresh_run)
        self.call_later(self._refresh_run)

    async def _refresh_run(self) -> None:
        if self._is_busy or not self._goes_on:
            return
        self._is_busy = True
        try:
            if self._writes is not None and self._count % WATCH_EVERY == 0:
                is_first = self._count == 0
                await self._writes(
                    lambda store: store.outputs.watch(self._token, WATCH_FOR, remind=is_first), CALL_WITHIN
                )
            self._count += 1
            run = await self._reads(read_run(self._token), CALL_WITHIN)
            if self.is_attached:
                self._show(run)
        except (TimeoutError, SextonError):
            pass  # the console says that what it shows is old
        finally:
            self._is_busy = False

    def _show(self, run: LiveRun) -> None:
        self._goes_on = run.claim is not None
        page = self.query_one("#page", VerticalScroll)
        is_at_end = page.max_scroll_y > 0 and page.scroll_offset.y >= page.max_scroll_y
        self.query_one("#lines", Static).update(content_of(lines_of(run), ascii_only=self._ascii_only))
        if is_at_end:
            page.scroll_end(animate=False)
