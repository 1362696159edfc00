"""A run, opened: its output as it comes, until it has ended; then the run as it became."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from sexton.errors import NotFound, SextonError
from sexton.output_views import LiveOutput
from sexton.store.protocol import Store
from sexton.views import ClaimView, RunOutput
from sexton_tui.console.calls import Calling
from sexton_tui.console.core.details import live_lines, run_lines
from sexton_tui.console.core.lines import WARN, Line, line
from sexton_tui.console.core.subjects import OfRun
from sexton_tui.console.opened.screen import LinesScreen
from sexton_tui.console.view import Request, Shown

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


class RunScreen(LinesScreen):
    """``writes`` None: this console changes nothing, not even by a watch, and shows output only where somebody else
    follows."""

    def __init__(self, run: OfRun, writes: Calling | None, *, ascii_only: bool = False) -> None:
        super().__init__(run, ascii_only=ascii_only)
        self._token = run.token
        self._writes = writes
        self._is_first = True
        self._goes_on = run.goes_on
        self._is_read = False

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

    def lines_of(self, shown: Shown, data: LiveRun) -> list[Line]:
        self._is_read, self._goes_on = True, data.claim is not None
        if data.claim is not None:
            return live_lines(data.claim, data.live, shown.now)
        if data.ended is not None:
            return run_lines(data.ended, shown.now)
        return [line(("this run is over", WARN))]
