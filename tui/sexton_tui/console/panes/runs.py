"""What runs now and what ran, newest first, or from another time on: a window by key over however many runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from textual.app import ComposeResult
from textual.message import Message
from textual.widgets import Static

from sexton.claims import State
from sexton.errors import InvalidInput
from sexton.store.protocol import Store
from sexton.views import ClaimView, RunFilter, RunKey, RunPage
from sexton_tui.console.core import tables
from sexton_tui.console.core.filters import KEYS
from sexton_tui.console.core.lines import WARN, Row
from sexton_tui.console.core.run_window import RunWindow
from sexton_tui.console.core.typed_instants import parse_reading
from sexton_tui.console.core.windows import BLOCK
from sexton_tui.console.core.words import full_instant
from sexton_tui.console.panes.pane import Pane
from sexton_tui.console.view import CursorMoved, Request, Shown
from sexton_tui.console.widgets.fleet_table import FleetTable

_FAILED = frozenset({State.FAILED, State.TIMED_OUT, State.LOST})
_NEWER = 32  # rows above the time that was asked for
_RUNNING = 50
_BEFORE_ALL = 2**62  # no run has a token so high


class EndAsked(Message):
    """Home or end: the newest run, or the oldest."""

    def __init__(self, *, oldest: bool) -> None:
        super().__init__()
        self.oldest = oldest


class RunTable(FleetTable):
    """Its end is not known before it was read: home and end ask for another list."""

    def action_first(self) -> None:
        self.post_message(EndAsked(oldest=False))

    def action_last(self) -> None:
        self.post_message(EndAsked(oldest=True))


@dataclass(frozen=True, slots=True)
class _Runs:
    """A block of the list, and the list it is of."""

    generation: int
    block: int
    start: RunKey | None
    which: RunFilter  # with the job, where the letters are its whole name
    running: tuple[ClaimView, ...]
    page: RunPage


class RunsPane(Pane):
    """What runs now and what ran; ``/`` with a job's whole name finds that job's own runs, however seldom it runs."""

    is_paged = True
    is_in_time = True
    has_failures = True
    table: RunTable

    def __init__(self, *, id: str, ascii_only: bool) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, ascii_only=ascii_only)
        self.only_failed = False
        self._place = RunWindow()
        self._at: datetime | None = None  # the time that was gone to
        self._is_oldest = False  # the list is of the oldest runs alone
        self._is_sought = False  # its row is to come under the cursor
        self._states: frozenset[State] = frozenset()
        self._which: RunFilter | None = None
        self._searched: RunKey | None = None  # how far back a filter looked that found too little
        self._shown: Shown | None = None

    def compose(self) -> ComposeResult:
        self.table = RunTable(tables.RUN_COLUMNS, id="run-table", ascii_only=self.ascii_only, follows_top=True)
        yield self.table
        yield Static(classes="info")

    @property
    def filter_keys(self) -> Sequence[str]:
        return KEYS

    # --- reading ----------------------------------------------------------------------------------

    def request(self) -> Request:
        window, (first, last) = self.table.window, self.table.visible_rows
        if first < BLOCK or not window.total:
            block = 0 if not window.is_known(0, BLOCK - 1) or last < BLOCK else self._place.next_block(last)
        else:
            unknown = [place for place in (first, last) if not window.is_known(place, place)]
            if not unknown:
                return lambda _store: None
            block = self._place.next_block(unknown[0])
        generation, at, start = window.generation, self._at, self._place.start
        before = self._place.before(block)
        asked, failed = self.filter, self.only_failed
        states = self._states or (_FAILED if failed else frozenset())
        which = RunFilter(states=states, queue=asked.queue, owner=asked.owner, tag=asked.tag, letters=asked.letters)
        known = self._which
        is_oldest = self._is_oldest
        with_running = block == 0 and at is None and not states and not is_oldest

        def read(store: Store) -> _Runs:
            reads, begin, since = store.reads, before, start
            if at is not None and start is None:
                since = begin = reads.run_key_after(at, _NEWER) or RunKey(at, _BEFORE_ALL)
            narrowed = known or _of_one_job(store, which)
            if is_oldest:
                return _Runs(generation, block, since, narrowed, (), reads.oldest_runs(narrowed, BLOCK))
            running = reads.running(_RUNNING, narrowed) if with_running else ()
            page = reads.runs_page(narrowed, begin, BLOCK - len(running))
            return _Runs(generation, block, since, narrowed, running, page)

        return read

    def show(self, shown: Shown, data: _Runs | None) -> None:
        if data is None or data.generation != self.table.window.generation:
            return
        rows: list[Row] = [tables.running_row(claim, shown.now) for claim in data.running]
        rows += [tables.run_row(run, shown.now) for run in data.page.runs]
        place = RunWindow(data.start, self._place.keys, self._place.end)
        self._searched = data.page.older if len(rows) < BLOCK else None
        self._which = data.which
        self._place = place.read(data.block, len(rows), data.page.older)
        self.table.show_rows(data.generation, data.block * BLOCK, rows, self._place.total)
        if self._is_sought:
            self._is_sought, at = False, self._at
            newer = len(rows) - 1 if at is None else sum(run.finished_at > at for run in data.page.runs)
            self.table.move_cursor(row=newer, on_top=at is not None)
        self._tell_place(shown)

    def on_cursor_moved(self, event: CursorMoved) -> None:
        if self._shown is not None:
            self._tell_place(self._shown)

    def _tell_place(self, shown: Shown) -> None:
        self._shown = shown
        first, last = self.table.visible_rows
        known = self._place.end
        end = min(last + 1, self._place.total)
        of = f"{known:,}" if known is not None else f"{self._place.total:,}+" if self._place.keys else "more"
        told = f"{first + 1:,} to {end:,} of {of} runs" if self._place.total else "no runs"
        if self._is_oldest and self._place.total:
            told += " from the oldest on; home: the newest"
        parts = [told, " only failed" if self.only_failed else ""]
        if self._searched is not None:
            parts.append(f", looked back to {full_instant(self._searched.finished_at, shown.now)}; @ goes further")
        more = f"  as of {full_instant(self._at, shown.now)}" if self._at is not None else ""
        more += f"  found by {self.find!r}" if self.find else ""
        self.tell("".join(parts), (f"{more}; escape shows all", WARN) if more else "")

    # --- other runs -------------------------------------------------------------------------------

    def turn(self, pages: int) -> None:
        self.table.action_page(pages)

    def find_by(self, text: str) -> None:
        before = self.filter
        super().find_by(text)
        try:
            self._states = _states(self.filter.state)
        except InvalidInput:
            self.filter = before
            raise
        self._renew()

    def toggle_failed(self) -> None:
        """Only what failed, or all again."""
        self.only_failed = not self.only_failed
        self._renew()

    def jump_to(self, text: str, now: datetime) -> None:
        self._at, self._is_oldest = parse_reading(text, now, now) if text else None, False
        self._is_sought = self._at is not None
        self._renew()

    @property
    def is_narrowed(self) -> bool:
        return bool(self.find) or self._at is not None or self._is_oldest

    def widen(self) -> None:
        self._at, self._is_oldest = None, False
        self.find_by("")

    def on_end_asked(self, event: EndAsked) -> None:
        event.stop()
        has_all = self._place.end is not None and self._at is None and not self._is_oldest
        if has_all or (event.oldest == self._is_oldest and self._at is None):
            self.table.move_cursor(row=self._place.total - 1 if event.oldest else 0)
            return
        self._at, self._is_oldest = None, event.oldest
        self._is_sought = event.oldest
        self._renew()
        self.post_message(CursorMoved(reads=True))

    def _renew(self) -> None:
        self._place = RunWindow()
        self._searched = None
        self._which = None
        self.table.renew()


def _states(word: str) -> frozenset[State]:
    """The outcome of this word; all by none. Raises ``InvalidInput``."""
    if not word:
        return frozenset()
    ended = (State.SUCCEEDED, State.FAILED, State.TIMED_OUT, State.LOST, State.CANCELLED)
    found = [state for state in ended if state.word == word.lower()]
    if not found:
        words = ", ".join(state.word for state in ended)
        raise InvalidInput(f"no run ends as {word!r}", hint=f"write state: with one of {words}")
    return frozenset(found)


def _of_one_job(store: Store, which: RunFilter) -> RunFilter:
    """A job's whole name means that job: its runs have an index."""
    found = store.reads.job_names(which.letters, 1) if which.letters else ()
    if which.letters.lower() not in [name.lower() for name in found]:
        return which
    return replace(which, job=which.letters, letters="")
