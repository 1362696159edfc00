"""``sexton logs --follow``: a run's output as it is written, from before its start to the end of its last try.

    waits ──granted──▶ runs: watched, read again and again ──ended──▶ the rest of it, how it ended ──▶ next try, or done

The follower says every few seconds that it is there (a *watch*), and the run's worker writes down what it has so far;
nothing else is asked of anybody. What was written faster than it could be read is counted and said.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from sexton.claims import State
from sexton.errors import NotFound
from sexton.output_views import Piece, after, kept_pieces, live_pieces
from sexton.store.protocol import Store
from sexton.views import ClaimView, RunView
from sexton_tui.cli.listings.output_writing import NAMES, Stream, Writer, how_it_ended
from sexton_tui.cli.output import instant_text

WATCH_FOR = timedelta(seconds=15)
WATCH_EVERY = 5.0
REMIND_AFTER = 2.0
SILENT_AFTER = 10.0
POLL_SECONDS = 0.3


class Follower:
    """Follows one claim. ``store`` may write: a watch is a row."""

    def __init__(self, store: Store, writer: Writer, stream: Stream) -> None:
        self._store = store
        self._writer = writer
        self._names = [name for name in NAMES if stream in (Stream.BOTH, name)]
        self._done: set[int] = set()
        self._token: int | None = None
        self._positions = dict.fromkeys(NAMES, 0)
        self._since = 0.0  # of the present run, by the monotonic clock
        self._watched_at = 0.0
        self._is_live = False  # its worker has told of it
        self._said = ""

    def follow(self, job: str, tick: datetime) -> None:
        """Until the claim has ended. Raises ``NotFound`` if it does without a run."""
        runs, claim = self._look_up(job, tick)
        is_over = not _goes_on(claim)
        self._done = {run.token for run in (runs[:-1] if is_over else runs)}
        if is_over and not runs:
            why = f" ({claim.reason})" if claim.reason else ""
            raise NotFound(
                f"tick {instant_text(tick)} of job {claim.job!r} ended without a run: it is {claim.state.word}{why}",
                hint=f"`sexton ticks {claim.job}` tells of the others",
            )
        while True:
            for run in runs:
                if run.token not in self._done:
                    self._finish(run)
            if not _goes_on(claim):
                return
            if claim.state is State.RUNNING and claim.token is not None and claim.token not in self._done:
                self._advance(claim, claim.token)
            else:
                self._say(_why_it_waits(claim, self._store.now()))
            time.sleep(POLL_SECONDS)
            runs, claim = self._look_up(job, tick)

    def _look_up(self, job: str, tick: datetime) -> tuple[tuple[RunView, ...], ClaimView]:
        detail = self._store.reads.claim(job, tick)
        return detail.runs, detail.claim

    def _begin(self, token: int) -> None:
        self._token = token
        self._positions = dict.fromkeys(NAMES, 0)
        self._since, self._watched_at, self._is_live, self._said = time.monotonic(), 0.0, False, ""

    def _advance(self, claim: ClaimView, token: int) -> None:
        """Show what this run has written since the last time."""
        if token != self._token:
            self._begin(token)
        now = time.monotonic()
        if now - self._watched_at >= (WATCH_EVERY if self._is_live else REMIND_AFTER):
            self._store.outputs.watch(token, WATCH_FOR, remind=not self._is_live)
            self._watched_at = now
        live = self._store.reads.live_output(token)
        if live is not None:
            self._is_live = True
            self._show("stdout", live_pieces(live.stdout, live.stdout_bytes))
            self._show("stderr", live_pieces(live.stderr, live.stderr_bytes))
        elif now - self._since >= SILENT_AFTER:
            self._say(
                f"worker {claim.worker} has not told yet what the run has written; `sexton workers` shows whether it "
                "is there, and its version: an older one tells at the end"
            )
        self._mind_lease(claim)

    def _mind_lease(self, claim: ClaimView) -> None:
        lease = claim.lease_expires_at
        if lease is not None and lease < self._store.now():
            self._say(
                f"worker {claim.worker} has not renewed its lease, which ended at {instant_text(lease)}: "
                "it may be lost, and another will take this tick, or not (on_worker_lost)"
            )

    def _finish(self, run: RunView) -> None:
        """The run is over: show the rest of what was kept, and how it ended."""
        if run.token != self._token:
            self._begin(run.token)
        found = self._store.reads.run_output(run.token)
        for name, kept, total in (
            ("stdout", found.stdout, run.stdout_bytes),
            ("stderr", found.stderr, run.stderr_bytes),
        ):
            self._show(name, kept_pieces(kept, total), total)
        self._done.add(run.token)
        self._writer.ended(found.run, how_it_ended(found.run) + where_it_is_whole(found.run))

    def _show(self, name: str, pieces: tuple[Piece, ...], total: int = 0) -> None:
        if name not in self._names:
            return
        for piece in after(pieces, self._positions[name]):
            if missing := piece.at - self._positions[name]:
                self._writer.gap(name, missing)
            self._writer.piece(name, piece)
            self._positions[name] = piece.at + len(piece.data)
        if (missing := total - self._positions[name]) > 0:
            self._writer.gap(name, missing)
            self._positions[name] = total

    def _say(self, text: str) -> None:
        if text and text != self._said:
            self._said = text
            self._writer.note(text)


def where_it_is_whole(run: RunView) -> str:
    """The end of a line that says where the whole output is, if it is kept."""
    return f"; all of it is at {run.output_at}.stdout and .stderr" if run.output_at else ""


def _goes_on(claim: ClaimView) -> bool:
    return claim.state in (State.READY, State.PARKED, State.RUNNING)


def _why_it_waits(claim: ClaimView, now: datetime) -> str:
    """Why this claim does not run now."""
    if claim.state is State.RUNNING:
        return ""
    tick = f"tick {instant_text(claim.scheduled_at)} of job {claim.job!r}"
    if claim.state is State.PARKED:
        return f"{tick} waits for its slot: another run has it"
    if claim.is_blocked:
        return f"{tick} waits: its job is paused"
    when = f" from {instant_text(claim.available_at.replace(microsecond=0))} on" if claim.available_at > now else ""
    what = "begins again" if claim.attempt else "has not begun; it may"
    return f"{tick} {what}{when}"
