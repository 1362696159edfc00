"""Whole outputs on their way from this worker's disk to where they are kept.

    spooled ──put──▶ kept ──its result counted──▶ noted in the run's row
       └── the store stays away, or too much waits ──▶ lost, with a line in the log

One thread of its own carries them, so a store that is slow or away delays no run and no result, and costs whole outputs
at worst; the kept tails go another way. A run whose result was refused has no row to be noted in: what was put for it
lies there under its own token, and nothing points to it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, Protocol
from urllib.parse import quote

import structlog

from sexton.clock import Clock
from sexton.errors import DatabaseUnreachable
from sexton_worker.core.runs import EndedRun, Spooled
from sexton_worker.targets.outputs import discard

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between two tries
GIVE_UP_AFTER = 600.0  # seconds without a store
NOTE_FOR = 3600.0  # seconds in which a result may come to count: the database may be away for long
MOST_WAITING = 10  # times the limit of one output, in bytes
MOST_NOTES = 100_000


class WholeRun(NamedTuple):
    """Whose output it is."""

    job: str
    scheduled_at: datetime
    token: int

    @property
    def place(self) -> str:
        """Below the base, without its ending; in letters that every store takes."""
        tick = self.scheduled_at.astimezone(UTC).isoformat().replace("+00:00", "Z").replace(":", "-")
        job = quote(self.job, safe="")
        return f"{job if job.strip('.') else job.replace('.', '%2E')}/{tick}/{self.token}"


class Keeper(Protocol):
    """Where whole outputs are kept (``sexton.output_places``)."""

    base: str

    def put(self, file: bytes, place: str, note: bytes = b"") -> None:
        """Copy this file, and the note after it, to that place below the base. Raises whatever its library does."""
        ...


class _SpoolGone(Exception):
    """A file that was to be carried is no longer there."""


@dataclass(slots=True)
class _Parcel:
    run: WholeRun
    spooled: Spooled
    missing: tuple[int, int]  # bytes of each output that the limit cost
    since: float
    is_put: bool = False
    next_at: float = 0.0
    pause: float = FIRST_PAUSE

    @property
    def size(self) -> int:
        return 0 if self.is_put else self.spooled.stdout_size + self.spooled.stderr_size


class Carrier:
    """``note`` writes into a run's row where its output is, and is false if it has none (yet). ``carry`` may be called
    from any thread and returns at once."""

    def __init__(self, keeper: Keeper, limit: int, note: Callable[[int, str], bool], clock: Clock) -> None:
        self._keeper = keeper
        self._limit = limit
        self._most = MOST_WAITING * limit
        self._note = note
        self._clock = clock
        self._changed = threading.Condition()  # over all that follows
        self._waiting: deque[_Parcel] = deque()
        self._ends_by: float | None = None  # elapsed seconds
        self._is_away = False
        self._log = structlog.get_logger("sexton.worker.output")
        self._thread = threading.Thread(target=self._serve, name="sexton output", daemon=True)
        self._thread.start()

    def carry(self, ended: EndedRun, run: WholeRun) -> None:
        """Take the files of a run that has ended."""
        spooled, now = ended.spooled, self._clock.elapsed()
        sizes = (0, 0) if spooled is None else (spooled.stdout_size, spooled.stderr_size)
        if any(size < min(total, self._limit) for size, total in zip(sizes, _totals(ended), strict=True)):
            why = "not all of it could be written down on this worker's disk"
            self._tell_lost(run, why, bytes=sum(_totals(ended)), kept=sum(sizes))
        if spooled is None:
            return
        missing = (ended.stdout_bytes - spooled.stdout_size, ended.stderr_bytes - spooled.stderr_size)
        with self._changed:
            self._waiting.append(_Parcel(run, spooled, missing, now))
            while sum(parcel.size for parcel in self._waiting) > self._most or len(self._waiting) > MOST_NOTES:
                self._lose(self._waiting.popleft(), "more is waiting than this worker keeps")
            self._changed.notify()

    def close(self, patience: float) -> None:
        """End once all is where it belongs, at the latest in so many seconds; what is left then is lost."""
        with self._changed:
            self._ends_by = self._clock.elapsed() + patience
            for parcel in self._waiting:
                parcel.next_at = 0.0
            self._changed.notify()
        self._thread.join(patience + 1.0)  # longer only where a library hangs
        with self._changed:
            for parcel in self._waiting:
                self._lose(parcel, "the worker ended")
            self._waiting.clear()

    # --- the thread -------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        while (parcel := self._next()) is not None:
            now = self._clock.elapsed()
            try:
                is_over = self._advance(parcel)
            except Exception:
                self._log.exception("output.fault", token=parcel.run.token)  # the others go on
                is_over = False
            if not is_over and now - parcel.since > (NOTE_FOR if parcel.is_put else GIVE_UP_AFTER):
                self._lose(parcel, "its store stayed away, or its result was refused")
                is_over = True
            if not is_over:
                parcel.next_at = now + parcel.pause
                parcel.pause = min(2 * parcel.pause, LONGEST_PAUSE)
                with self._changed:
                    self._waiting.append(parcel)

    def _next(self) -> _Parcel | None:
        """The first that is due, once there is one; None: no more will come."""
        with self._changed:
            while True:
                now = self._clock.elapsed()
                if self._ends_by is not None and (not self._waiting or now >= self._ends_by):
                    return None
                due = min(self._waiting, key=lambda parcel: parcel.next_at, default=None)
                if due is not None and due.next_at <= now:
                    self._waiting.remove(due)
                    return due
                until = LONGEST_PAUSE if due is None else due.next_at - now
                self._changed.wait(until if self._ends_by is None else min(until, max(0.0, self._ends_by - now)))

    def _advance(self, parcel: _Parcel) -> bool:
        """Whether it is where it belongs, and its row says so."""
        if not parcel.is_put:
            try:
                self._put(parcel)
            except Exception as error:  # whatever the store's library raises
                if isinstance(error, _SpoolGone):
                    self._lose(parcel, f"its file on this worker's disk is gone ({error})")
                    return True
                if not self._is_away:
                    self._log.warning("output.store_away", store=self._keeper.base, error=f"{error}")
                self._is_away = True
                return False
            if self._is_away:
                self._log.info("output.store_answers", store=self._keeper.base)
            self._is_away = False
            parcel.is_put, parcel.pause = True, FIRST_PAUSE
            discard(parcel.spooled)
        with contextlib.suppress(DatabaseUnreachable):
            return self._note(parcel.run.token, f"{self._keeper.base}/{parcel.run.place}")
        return False

    def _put(self, parcel: _Parcel) -> None:
        spooled = parcel.spooled
        for name, file, size, missing in zip(
            ("stdout", "stderr"),
            (spooled.stdout, spooled.stderr),
            (spooled.stdout_size, spooled.stderr_size),
            parcel.missing,
            strict=True,
        ):
            if not size:
                continue
            if not os.path.exists(file):
                raise _SpoolGone(os.fsdecode(file))
            why = b"output_limit" if size >= self._limit else b"this worker's disk took no more"
            note = b"\n[... %d bytes not kept, for %s ...]\n" % (missing, why) if missing > 0 else b""
            self._keeper.put(file, f"{parcel.run.place}.{name}", note)

    def _lose(self, parcel: _Parcel, why: str) -> None:
        if not parcel.is_put:
            self._tell_lost(parcel.run, why)
            discard(parcel.spooled)

    def _tell_lost(self, run: WholeRun, why: str, **more: int) -> None:
        tick = run.scheduled_at.isoformat()
        self._log.error("output.lost", job=run.job, tick=tick, token=run.token, why=why, **more)


def _totals(ended: EndedRun) -> tuple[int, int]:
    return ended.stdout_bytes, ended.stderr_bytes
