"""The worker's loop: results out, grants in, runs started. The simulator runs this file on virtual time.

Each step takes what has ended, then makes one exchange with the database (results,
promotion, pull), then starts what was granted. Where the next exchange follows at once
(`_goes_on`) it is sent before all that, which is done while the database works. What the
loop holds is in its hands (hands.py), each claim in exactly one place, or in an answer
that waits to be taken in (answers.py).

Failure stance:
* The database does not answer: results stay unsent and go with the next exchange;
  the store refuses those whose token no longer counts (invariant 4). Grants that
  could not be prepared wait, and go back if their lease runs out meanwhile.
* The answer to an exchange was lost: what it granted is unknown here. The next
  contact asks for it, and gives it back.
* The machine cannot start a run: its claim goes back, and nothing is pulled for a
  while (core.machine_faults).
* At most once: a run starts only after its *started* write was answered with yes.
* A worker that was frozen first stops what may be another's by now, then goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog

from sexton.catch_up import paced_slots
from sexton.clock import Clock, Wakeup
from sexton.errors import DatabaseUnreachable
from sexton.store.protocol import Grant, RunResult, StepRequest, Store
from sexton.store.protocol.grants import nothing
from sexton_worker.absence import Absence
from sexton_worker.answers import Answer, Answers
from sexton_worker.core import pull_policy
from sexton_worker.core.machine_faults import NO_SPELL
from sexton_worker.core.pull_policy import NOTHING_PULLED, Pace
from sexton_worker.core.runs import EndedRun, Ending, StopReason
from sexton_worker.execution import Execution
from sexton_worker.hands import Hands
from sexton_worker.lease_book import LeaseBook
from sexton_worker.notice import Notice
from sexton_worker.poison import pause_killers
from sexton_worker.refused_results import tell_refused
from sexton_worker.run_counts import RunCounts, Standing
from sexton_worker.settings_reader import SettingsReader
from sexton_worker.starts import Starts
from sexton_worker.worker_time import WorkerTime

RETRY_SECONDS = 1.0
PARTING_SECONDS = 20.0  # how long an ending worker tries to write its last results
GIVEN_BACK = "given back: the worker stopped"
SLOTS_BUSY = "given back: the worker's slots were busy"
ANSWER_LOST = "given back: the answer that granted it was lost"


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Who this worker is and how much it takes. ``poll``: the longest pause; ``drain``: the patience of an end."""

    name: str
    queues: tuple[str, ...]
    slots: int
    poll: timedelta = timedelta(seconds=5)
    drain: timedelta = timedelta(seconds=30)
    address: str = ""
    version: str = ""
    pid: int = 0


class WorkerLoop:
    """One worker. ``execution`` must wake it by the same ``wakeup``; ``draw`` gives numbers in [0, 1) for jitter.

    ``drain`` and ``give_back`` may be called from any thread; everything else belongs to the thread of ``run``.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        execution: Execution,
        book: LeaseBook,
        wakeup: Wakeup,
        settings: WorkerSettings,
        draw: Callable[[], float],
    ) -> None:
        self._store = store
        self._clock = clock
        self._execution = execution
        self._book = book
        self._wakeup = wakeup
        self.notice = Notice(wakeup)  # to be set when others say that there is work
        self._own = settings
        self._cluster = SettingsReader(store, clock)
        self._time = WorkerTime(clock)
        self._absence = Absence(clock, execution, book)
        self.counts = RunCounts()
        self._hands = Hands(clock, self._time, draw)
        self._answers = Answers(self._hands, book, self.counts)
        self._starts = Starts(store, clock, self._time, execution, book, self._hands, wakeup, settings.name)
        self._pulled = NOTHING_PULLED
        self._pace = Pace()
        self._spell = NO_SPELL
        self._place = ""  # where the ledger was at the last exchange
        self._is_registered = False
        self._durations: list[float] = []
        self._answer_lost = False
        self._is_away = False
        self._drain_by: float | None = None  # elapsed seconds; None: not draining
        self._is_told = False  # to end, whatever operators ask
        self._gives_back = False
        self._leave_by: float | None = None
        self._log = structlog.get_logger("sexton.worker").bind(worker=settings.name)

    # --- what others may ask ----------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Take no more claims, and end when the running runs have; after ``drain`` their claims are given back."""
        self._is_told = True
        self._begin_draining()

    def heed_drain(self, asked: bool) -> None:
        """An operator asked this worker to drain, or took that back, which helps while its runs still go on."""
        if asked:
            self._log.info("worker.asked_to_drain", patience=self._own.drain.total_seconds())
            self._begin_draining()
        elif not self._is_told and not self._gives_back and self._drain_by is not None:
            self._log.info("worker.drain_taken_back")
            self._drain_by = None
            self._book.is_draining = False
            self._wakeup.set()

    def _begin_draining(self) -> None:
        if self._drain_by is None:
            self._drain_by = self._clock.elapsed() + self._own.drain.total_seconds()
        self._book.is_draining = True
        self._wakeup.set()

    def give_back(self) -> None:
        """Stop the runs and give their claims back, then end."""
        self._gives_back = True
        self.drain()

    def standing(self) -> Standing:
        """How it stands now; for any thread."""
        hands, paused = self._hands, self._spell.remaining(self._clock.elapsed())
        is_draining = self._drain_by is not None
        return Standing(len(hands.granted), len(hands.running), hands.results(), self._is_away, is_draining, paused)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left in this worker's hands and it may end."""
        if self._drain_by is None or self._in_hand():
            return False
        return not self._hands.results() or (self._leave_by is not None and self._clock.elapsed() >= self._leave_by)

    # --- the loop ---------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Work until drained; then the worker's row says that it stopped."""
        while not self.is_done:
            try:
                seconds = self.step()
            except Exception:
                # Nobody else would run this worker's claims while it is alive: note it and go on.
                self._log.exception("worker.step_failed")
                self._answer_lost = True
                seconds = RETRY_SECONDS
            self._clock.wait(self._wakeup, seconds)
            self._wakeup.clear()
        self.close()

    def step(self) -> float:
        """Do all that can be done now; seconds until there can be more to do without a wake-up."""
        self.counts.turned_at = self._clock.elapsed()
        self._absence.end()
        if not self._answers.granted() or not self._goes_on():
            self._answers.take_in()
            self._collect()
        self._recall_stuck()
        self._stop_in_time()
        try:
            self._make_contact()
            seconds = self._exchange_if_due()
            goes_on = seconds is None and self._goes_on()
            if not goes_on or self._answers.are_pressing():
                self._answers.take_in()
            if self._hands.granted:
                self._starts.read(self._hands.granted.values())
                if goes_on:
                    self._start(self._hands.pressing())
                    return 0.0
                self._collect()
                self._start(self._hands.startable())
        except DatabaseUnreachable as error:
            if not self._is_away:
                self._log.warning("worker.database_unreachable", error=str(error))
            self._is_away = True
            self.counts.errors += 1
            return RETRY_SECONDS
        if self._is_away:
            self._log.info("worker.database_answers", unsent=self._hands.results())
            self._is_away = False
        if seconds is not None:
            return seconds
        now = self._clock.elapsed()
        seconds = pull_policy.pause(self._room(), self._pulled, now, self._own.poll.total_seconds())
        if paused := self._spell.remaining(now):
            seconds = min(seconds, paused)
        if len(self._hands.running) > self._own.slots:
            seconds = min(seconds, pull_policy.RECALL_SECONDS)
        return self._until_drained(now, seconds)

    def close(self) -> None:
        """Say in the worker's row that it stopped, if the database answers."""
        if self._book.worker_id is None:
            return
        try:
            self._store.grants.unregister(self._book.worker_id)
        except DatabaseUnreachable as error:
            self._log.warning("worker.not_unregistered", error=str(error))

    # --- runs that ended --------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        if not self._hands.unsent:
            self._hands.unsent_since = self._clock.elapsed()
        for ended in self._execution.finished():
            if self._hands.end(ended):
                self._note_fault(ended)
                if ended.started is not None:
                    self._durations.append(ended.ended - ended.started)

    def _note_fault(self, ended: EndedRun) -> None:
        """A machine that could not start a run gets no claims for a while: other workers may."""
        if ended.ending is Ending.MACHINE_FAULT:
            now = self._clock.elapsed()
            if self._spell.is_over(now):
                self._log.warning("worker.machine_fault", token=ended.token, error=ended.error)
            self._spell = self._spell.after_fault(now)

    def _recall_stuck(self) -> None:
        """What was taken ahead waits behind runs that became long: other workers may be free."""
        waits = len(self._hands.running) > self._own.slots
        if not waits or self._clock.elapsed() - self._hands.ended_at < pull_policy.RECALL_SECONDS:
            return
        self._pace = Pace()  # nothing more is taken ahead until runs are short again
        for token in self._execution.recall():
            self._hands.recalled(token, SLOTS_BUSY)

    # --- the database -----------------------------------------------------------------------------------------------

    def _make_contact(self) -> None:
        """Be registered, know the settings, and leave no grant behind of which the answer was lost."""
        self._cluster.refresh()
        worker_id = self._book.worker_id
        if worker_id is None or not self._is_registered:
            self._time.observed(self._store.now, lambda now: now)
            own = self._own
            worker_id = self._book.worker_id = self._store.grants.register(
                own.name, own.address, own.version, own.pid, own.queues, own.slots, again=worker_id
            )
            self._is_registered = True
            self._log.info("worker.registered", worker_id=worker_id, queues=own.queues, slots=own.slots)
        if self._answer_lost:
            for grant in self._store.grants.orphans(worker_id, self._hands.tokens()):
                self._hands.give_back(grant, ANSWER_LOST)
            self._answer_lost = False

    def _exchange_if_due(self) -> float | None:
        """Exchange, if there is a reason to; else the seconds to wait for one that is near."""
        free, now = self._room(), self._clock.elapsed()
        if self._has_plenty() and self._drain_by is None and self.notice.is_rare():
            self._exchange(pull_policy.URGENT_PULL, (), nothing)
            self._answers.take_in_last()
            return None
        results = self._hands.results()
        if len(self._hands.running) > self._own.slots and 0 < results < len(self._hands.running):
            wait: float | None = pull_policy.linger(results, self._hands.unsent_since, now)
        else:
            wait = pull_policy.exchange_in(results, free, self._pulled, now)
        if wait == 0.0:
            self._exchange(free, self._hands.send(), self._use_the_wait)
            return None
        return wait

    def _has_plenty(self) -> bool:
        """Whether more is in hand than runs at once, and more likely follows."""
        return len(self._hands.running) + self._hands.results() > self._own.slots

    def _in_hand(self) -> int:
        return self._hands.count() + self._answers.granted()

    def _exchange(self, free: int, results: tuple[RunResult, ...], meanwhile: Callable[[], None]) -> None:
        assert self._book.worker_id is not None  # noqa: S101 - _make_contact registered it
        settings = self._cluster.known
        request = StepRequest(
            worker_id=self._book.worker_id,
            queues=self._own.queues,
            room=free,
            lease=settings.lease,
            catch_up_concurrency=settings.catch_up_concurrency,
            results=results,
            paced_room=max(0, paced_slots(self._own.slots) - self._hands.paced_count()),
        )
        if results or not self._hands.running:
            self._pace = self._pace.after(self._durations)
            self._durations = []
        sent = self._clock.elapsed()
        self._hands.unsent_since = sent
        self._answer_lost = True  # until the answer is here
        self.notice.clear()  # before it looks: what is said from now on may be missed by it
        answer = self._time.observed(lambda: self._store.grants.step(request, meanwhile), lambda result: result.now)
        self._answer_lost = False
        carried, seconds = max(len(request.results), answer.granted), self._clock.elapsed() - sent
        self._pace = self._pace.exchanged(carried, seconds, sent if answer.priority > 0 else None)
        if results:
            self._hands.settle()
        if answer.place != self._place:
            self._answers.take_in()
            self._starts.begin_anew(self._hands.startable() if self._place else ())
            self._is_registered = not self._place  # where it was restored, this worker's row may be missing
            self._place = answer.place
        refused = [one for one in results if one.token not in answer.accepted] if answer.refused else []
        self._answers.add(Answer(request, answer, refused, sent, seconds))
        pause_killers(self._store, request.results)
        tell_refused(self._store, self._book.worker_id, refused)
        if free:
            next_due = answer.next_available_at
            at = None if next_due is None else self._time.elapsed(next_due)
            self._pulled = self._pulled.after(free, answer.picked, answer.granted, at, sent)

    def _use_the_wait(self) -> None:
        """While the database works: start what the exchange before granted, take what has ended, and make it ready."""
        self._answers.take_in()
        self._start(self._hands.simple())
        self._collect()
        self._store.grants.prepare(tuple(self._hands.unsent.values()))

    # --- runs that begin --------------------------------------------------------------------------------------------

    def _goes_on(self) -> bool:
        """Whether the next exchange follows at once, and processes have work until then: it comes before all that it
        leaves time for."""
        return (
            pull_policy.is_full(self._pulled)
            and not self._answer_lost
            and self._drain_by is None
            and self._has_plenty()
            and self._room() > 0
        )

    def _start(self, grants: Sequence[Grant]) -> None:
        """Start those of these that were read."""
        grants = self._starts.readable(grants)
        if not grants:
            return
        self._absence.end()
        if self._drain_by is None:
            self._starts.begin(grants)
        else:
            self._stop_in_time()

    # --- the end ----------------------------------------------------------------------------------------------------

    def _stop_in_time(self) -> None:
        drain_by = self._drain_by
        if drain_by is None:
            return
        now = self._clock.elapsed()
        # What has not begun goes to others at once, what runs only when the patience is over.
        for token in self._execution.recall():
            self._hands.recalled(token, GIVEN_BACK)
            self._wakeup.set()
        for grant in tuple(self._hands.granted.values()):
            self._hands.give_back(grant, GIVEN_BACK)
            self._wakeup.set()
        self._gives_back = self._gives_back or now >= drain_by
        if not self._gives_back:
            return
        if self._leave_by is None:
            self._leave_by = now + PARTING_SECONDS
        for token in self._hands.running:
            self._execution.stop(token, StopReason.GIVEN_BACK)

    def _until_drained(self, now: float, seconds: float) -> float:
        drain_by = self._drain_by
        if drain_by is None or self._gives_back:
            return seconds
        return max(0.0, min(seconds, drain_by - now))

    def _room(self) -> int:
        if self._spell.remaining(self._clock.elapsed()):
            return 0
        holds = pull_policy.capacity(self._own.slots, self._pace)
        is_draining, most = self._drain_by is not None, self._pace.largest_pull(self._clock.elapsed())
        return pull_policy.room(holds, self._in_hand(), is_draining=is_draining, most=most)
