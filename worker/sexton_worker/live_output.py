"""What runs have written so far, for those who follow them; on a thread and a connection of its own.

    nobody follows ── told, or asked ──▶ watched runs are here ──▶ twice a second: look, write down what grew
          ▲                                        └── the watch is over, or the run is ──┘

Nobody watching costs nothing: no connection, and no query but one each ``NET_SECONDS`` while there are runs that take
long, for a notification may be lost. Each write is conditional on its token, in the statement (invariant 4). A run that
is not taken any more (nobody watches, or another worker has it) is looked at no more.
"""

from __future__ import annotations

import contextlib
from typing import Protocol

import structlog

from sexton.clock import Clock, Wakeup
from sexton.errors import DatabaseUnreachable
from sexton.output_views import LiveOutput
from sexton.store.protocol import Store
from sexton_worker.lease_book import LeaseBook
from sexton_worker.zygote.frames import Seen

NET_SECONDS = 30.0  # between two looks for watches of which nobody told
LONG_SECONDS = 1.0  # a run that is here for longer may be followed
WATCHED_SECONDS = 2.0  # between two looks for watches while there are some
LOOK_SECONDS = 0.5
LOCAL_SECONDS = 1.0
RETRY_SECONDS = 1.0


class Looking(Protocol):
    """What this needs of the execution."""

    def look(self, token: int) -> None: ...

    def seen(self) -> dict[int, Seen]: ...


class WatchBell:
    """A ``Wakeup``: somebody begins to follow a run. Ends the pauses of a loop that waits for ``pause``."""

    def __init__(self, pause: Wakeup) -> None:
        self._pause = pause
        self._is_set = False

    def set(self) -> None:
        self._is_set = True
        self._pause.set()

    def clear(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set


class LiveOutputLoop:
    """``store`` is this loop's own; ``told`` is set when somebody begins to follow a run, ``seen`` when a look was
    answered, and by ``told``: it ends this loop's pauses."""

    def __init__(
        self, store: Store, clock: Clock, execution: Looking, book: LeaseBook, told: Wakeup, seen: Wakeup
    ) -> None:
        self._store = store
        self._clock = clock
        self._execution = execution
        self._book = book
        self._told = told
        self._is_told = False  # and nobody has been asked since with success
        self._seen = seen
        self._since: dict[int, float] = {}  # held here since, by token
        self._watched: frozenset[int] = frozenset()
        self._asked_at = -NET_SECONDS  # for watches
        self._looked_at: dict[int, float] = {}  # for the first time, by token
        self._look_at = 0.0
        self._written: dict[int, tuple[int, int]] = {}  # bytes of both outputs
        self._is_connected = False
        self._log = structlog.get_logger("sexton.worker.output")
        self.is_ended = False

    def run(self) -> None:
        """Until ``end``."""
        while not self.is_ended:
            try:
                seconds = self.step()
            except DatabaseUnreachable:
                seconds = RETRY_SECONDS  # the heartbeat says so
            except Exception:
                self._log.exception("live_output.failed")
                seconds = RETRY_SECONDS
            self._clock.wait(self._seen, seconds)
            self._seen.clear()
        self._disconnect()

    def end(self) -> None:
        """Have ``run`` return after its present step."""
        self.is_ended = True
        self._seen.set()

    def step(self) -> float:
        """Do what is due; seconds until something can be due again."""
        now = self._clock.elapsed()
        held = {one.token for one in self._book.holdings()}
        self._since = {token: self._since.get(token, now) for token in held}
        self._ask_if_due(now)
        here = self._watched & held
        self._written = {token: sizes for token, sizes in self._written.items() if token in here}
        self._looked_at = {token: at for token, at in self._looked_at.items() if token in here}
        if not here:
            if not self._watched:
                self._disconnect()
            return LOCAL_SECONDS if held or self._watched else NET_SECONDS
        self._write(here, now)
        if now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            for token in here:
                self._looked_at.setdefault(token, now)
                self._execution.look(token)
        return max(0.05, self._look_at - now)

    def _ask_if_due(self, now: float) -> None:
        """Whom somebody watches."""
        has_long = any(now - since >= LONG_SECONDS for since in self._since.values())
        is_old = now - self._asked_at >= (WATCHED_SECONDS if self._watched else NET_SECONDS)
        self._is_told |= self._told.is_set()
        if self._is_told or (is_old and (has_long or self._watched)):
            self._told.clear()
            self._is_connected = True
            self._watched = self._store.outputs.watched()
            self._asked_at = now
            self._is_told = False

    def _write(self, here: frozenset[int], now: float) -> None:
        """What has grown, and once that a look was not answered, for the run has not begun."""
        worker_id = self._book.worker_id
        seen = {token: one for token, one in self._execution.seen().items() if token in here}
        fresh = [
            LiveOutput(token, one.stdout, one.stderr, one.stdout_bytes, one.stderr_bytes)
            for token, one in seen.items()
            if self._written.get(token) != (one.stdout_bytes, one.stderr_bytes)
        ]
        fresh += [
            LiveOutput(token, b"", b"", 0, 0)
            for token, at in self._looked_at.items()
            if token not in seen and token not in self._written and now - at >= LOOK_SECONDS
        ]
        if not fresh or worker_id is None:
            return
        taken = self._store.outputs.write_live(worker_id, fresh)
        self._written |= {one.token: (one.stdout_bytes, one.stderr_bytes) for one in fresh if one.token in taken}
        self._watched -= {one.token for one in fresh} - taken

    def _disconnect(self) -> None:
        if self._is_connected:
            with contextlib.suppress(DatabaseUnreachable):
                self._store.close()
            self._is_connected = False
