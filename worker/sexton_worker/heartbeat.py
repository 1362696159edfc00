"""The renewal of leases, on a thread and a connection of its own that no job can starve.

Each step:

1. A run that must not outlive its lease (at most once) is stopped when the lease has run out by the worker's own
   clock, whether or not the database answers.
2. Tokens not renewed for one ``heartbeat`` (× 3 ≤ lease, so a claim gets three tries) are renewed together. Short
   runs never are.
3. A token that is no longer held has lost its claim: at-most-once runs are stopped, others go on, and their result
   will be refused (invariant 4). A token that is to be cancelled is stopped.
4. The worker's row is refreshed once per ``heartbeat``.

A failed step loses nothing but time: the next one does all of it again.
"""

from __future__ import annotations

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
    """Renews what the book holds. ``store`` is this loop's own; ``wakeup`` ends a pause early, ``longest_pause``
    (seconds) is for those who know that no lease is short."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        execution: Execution,
        book: LeaseBook,
        wakeup: Wakeup,
        longest_pause: float = LONGEST_PAUSE,
    ) -> None:
        self._store = store
        self._clock = clock
        self._execution = execution
        self._book = book
        self._wakeup = wakeup
        self._longest_pause = longest_pause
        self._settings = SettingsReader(store, clock)
        self._seen_at: float | None = None
        self._lost: set[int] = set()
        self._unreachable_since: float | None = None  # by the clock's elapsed seconds, and how many tries since
        self._failed_tries = 0
        self._log = structlog.get_logger("sexton.worker.heartbeat")
        self.is_ended = False

    def run(self) -> None:
        """Beat until ``end``."""
        while not self.is_ended:
            try:
                seconds = self.step()
            except Exception:
                # This thread is what keeps claims: no fault of one step may end it.
                self._log.exception("heartbeat.failed")
                seconds = RETRY_SECONDS
            self._clock.wait(self._wakeup, seconds)
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
        except DatabaseUnreachable as error:
            self._note_unreachable(error)
            self._stop_expired()
            return RETRY_SECONDS
        self._note_reachable()
        return min(self._longest_pause, settings.heartbeat.total_seconds() / 4)

    def _note_unreachable(self, error: DatabaseUnreachable) -> None:
        """Say it once an outage."""
        self._failed_tries += 1
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
        still_held = {one.token for one in self._book.holdings()}
        for holding in due:
            if holding.token not in renewal.held and holding.token in still_held:
                self._lose(holding)

    def _lose(self, holding: Holding) -> None:
        self._lost.add(holding.token)
        self._log.warning("lease.lost", token=holding.token, stopped=holding.ends_with_lease)
        if holding.ends_with_lease:
            self._execution.stop(holding.token, StopReason.LEASE_LOST)

    def _show_up(self, worker_id: int, settings: ClusterSettings) -> None:
        now = self._clock.elapsed()
        if self._seen_at is None or now - self._seen_at >= settings.heartbeat.total_seconds():
            self._store.grants.seen(worker_id, self._book.count(), self._book.is_draining)
            self._seen_at = now
