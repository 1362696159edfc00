"""The renewal of leases, on a thread and a connection of its own that no job can starve.

Each step:

1. A run that must not outlive its lease is stopped when the lease has run out by the worker's own clock, whether or
   not the database answers. (While an answer is waited for, ``lease_guard`` does it.)
2. Tokens not renewed for one ``heartbeat`` (× 3 ≤ lease, so a claim gets three tries) are renewed together. Short
   runs never are.
3. A token that is no longer held has lost its claim: a run that must not outlive its lease is stopped, others go
   on, and their result will be refused (invariant 4). A token that is to be cancelled is stopped.
4. The worker's row is refreshed once per ``heartbeat``.
5. What the worker is asked to stop is read when a wake-up says that there is something, and at each refresh: runs that
   are to be cancelled are stopped, and a request to drain (or its end) is handed on.

A failed step loses nothing but time: the next one does all of it again.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from sexton.clock import Clock, Wakeup
from sexton.errors import DatabaseUnreachable
from sexton.settings import ClusterSettings
from sexton.store.protocol import Store
from sexton_worker.core.runs import StopReason
from sexton_worker.execution import Execution
from sexton_worker.lease_book import Holding, LeaseBook
from sexton_worker.settings_reader import SettingsReader

RETRY_SECONDS = 0.5
LONGEST_PAUSE = 1.0  # a grant made while this thread sleeps is seen in time for the shortest lease


class HeartbeatLoop:
    """Renews what the book holds. ``store`` is this loop's own; ``wakeup``, to be set when something is to be stopped,
    ends a pause early; ``longest_pause`` (seconds) is for those who know that no lease is short. ``heed_drain`` is told
    whether the worker is asked to drain, whenever that has changed."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        execution: Execution,
        book: LeaseBook,
        wakeup: Wakeup,
        longest_pause: float = LONGEST_PAUSE,
        heed_drain: Callable[[bool], None] = lambda asked: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._execution = execution
        self._book = book
        self._wakeup = wakeup
        self._longest_pause = longest_pause
        self._heed_drain = heed_drain
        self._is_asked = False  # there may be stop requests that were not read yet
        self._is_drain_asked = False
        self._cancelled: frozenset[int] = frozenset()
        self._settings = SettingsReader(store, clock)
        self._seen_at: float | None = None
        self._lost: set[int] = set()
        self._unreachable_since: float | None = None  # by the clock's elapsed seconds, and how many tries since
        self._failed_tries = 0
        self._log = structlog.get_logger("sexton.worker.heartbeat")
        self.is_ended = False
        self.errors = 0  # tries that the database did not answer since the process began
        self.leases_lost = 0

    def run(self) -> None:
        """Beat until ``end``."""
        while not self.is_ended:
            try:
                seconds = self.step()
            except Exception:
                # This thread is what keeps claims: no fault of one step may end it.
                self._log.exception("heartbeat.failed")
                seconds = RETRY_SECONDS
            self._is_asked = self._clock.wait(self._wakeup, seconds) or self._is_asked
            self._wakeup.clear()

    def end(self) -> None:
        """Have ``run`` return after its present step."""
        self.is_ended = True
        self._wakeup.set()

    def step(self) -> float:
        """Do what is due; seconds until something can be due again."""
        self._stop_expired()
        if self._book.worker_id is None:
            return RETRY_SECONDS
        try:
            settings = self._settings.refresh()
            self._renew(self._book.worker_id, settings)
            self._show_up(self._book.worker_id, settings)
            self._heed_requests(self._book.worker_id)
        except DatabaseUnreachable as error:
            self._note_unreachable(error)
            self._stop_expired()
            return RETRY_SECONDS
        self._note_reachable()
        return min(self._longest_pause, settings.heartbeat.total_seconds() / 4)

    def _note_unreachable(self, error: DatabaseUnreachable) -> None:
        """Say it once an outage."""
        self._failed_tries += 1
        self.errors += 1
        if self._unreachable_since is None:
            self._unreachable_since = self._clock.elapsed()
            self._log.warning("heartbeat.database_unreachable", error=str(error))

    def _note_reachable(self) -> None:
        if self._unreachable_since is not None:
            seconds = round(self._clock.elapsed() - self._unreachable_since, 1)
            self._log.info("heartbeat.database_answers", after_seconds=seconds, failed_tries=self._failed_tries)
        self._unreachable_since, self._failed_tries = None, 0

    def _stop_expired(self) -> None:
        for token in self._book.lapsed(self._clock.elapsed()):
            self._execution.stop(token, StopReason.LEASE_LOST)

    def _renew(self, worker_id: int, settings: ClusterSettings) -> None:
        now = self._clock.elapsed()
        holdings = {one.token: one for one in self._book.holdings()}
        self._lost &= holdings.keys()
        interval = settings.heartbeat.total_seconds()
        due = [one for one in holdings.values() if one.token not in self._lost and now - one.renewed >= interval / 2]
        # Those half due go along, so that the renewals of many runs fall together.
        if not any(now - one.renewed >= interval for one in due):
            return
        sent = self._clock.elapsed()
        renewal = self._store.grants.renew(worker_id, [one.token for one in due], settings.lease)
        self._book.renewed(renewal.held, sent=sent, lease=settings.lease.total_seconds())
        for token in renewal.cancel:
            self._execution.stop(token, StopReason.CANCELLED)
        asked = {one.token for one in due}
        for holding in self._book.holdings():
            if holding.token in asked and holding.token not in renewal.held:
                self._lose(holding)

    def _lose(self, holding: Holding) -> None:
        self._lost.add(holding.token)
        self.leases_lost += 1
        self._log.warning("lease.lost", token=holding.token, stopped=holding.ends_with_lease)
        if holding.ends_with_lease:
            self._execution.stop(holding.token, StopReason.LEASE_LOST)

    def _show_up(self, worker_id: int, settings: ClusterSettings) -> None:
        now = self._clock.elapsed()
        if self._seen_at is None or now - self._seen_at >= settings.heartbeat.total_seconds():
            self._store.grants.seen(worker_id, self._book.count(), self._book.is_draining)
            self._seen_at = now
            self._is_asked = True  # a notification may be lost

    def _heed_requests(self, worker_id: int) -> None:
        if self._is_asked:
            asked = self._store.grants.stop_requests(worker_id)
            self._is_asked = False
            self._cancelled = asked.cancel
            if asked.drain != self._is_drain_asked:
                self._is_drain_asked = asked.drain
                self._heed_drain(asked.drain)
                self._seen_at = None  # its row is to show it now
        if self._cancelled:
            # Until they are gone: a run that was only granted yet is stopped once it has begun.
            self._cancelled &= {one.token for one in self._book.holdings()}
            for token in self._cancelled:
                self._execution.stop(token, StopReason.CANCELLED)
