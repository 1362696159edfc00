"""A node's loop: follow warmly, take the term when elected, or race; write the ledger while leading or racing.

The loop sees, asks the pure cores what to do, and does it; it decides nothing
about ticks itself. It takes its store, clock and candidates as arguments, so that
the simulator runs this very file on virtual time.

Failure stance: a database that does not answer ends nothing. The loop tries again,
with growing pauses, for as long as it lives; whatever fell due meanwhile is decided
by the same rules as after a takeover. A leader that is superseded learns it from
its next statement or its heartbeat, and steps down (invariant 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from sexton.clock import Clock
from sexton.errors import DatabaseUnreachable
from sexton.store.protocol import Store
from sexton.terms import ClusterState, Confirmation, ElectedBy, Strategy
from sexton_scheduler.candidacies import LOOKS_PER_SESSION, Candidacies
from sexton_scheduler.core.leadership import (
    Course,
    Sighting,
    campaigns,
    confirmation,
    course,
    ends_force,
    force_seen,
)
from sexton_scheduler.core.planner import Planner
from sexton_scheduler.database_clock import DatabaseClock
from sexton_scheduler.election.candidate import Candidate, Standing
from sexton_scheduler.election.database import DatabaseCandidate
from sexton_scheduler.job_book import JobBook
from sexton_scheduler.missed_passes import LeaderPasses, Passes, RacePasses
from sexton_scheduler.node_state import Leading, NodeState, NodeView
from sexton_scheduler.tick_writer import TermOver, TickWriter

RETRY_FIRST = 0.1
RETRY_MOST = 2.0
GOODBYE_TRIES = 2
NO_COORDINATOR = "none: a race"


@dataclass(frozen=True, slots=True)
class LoopOptions:
    """Who this node is. ``poll``: how often it reads jobs and settings without being told; ``look``: how often a leader
    looks at the cluster row."""

    name: str
    inputs_id: str
    poll: timedelta = timedelta(seconds=5)
    look: timedelta = timedelta(seconds=1)


class NodeLoop:
    """One node. ``lease``: the leader-lease candidacy beside a coordinator that can be away; else None."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        state: NodeState,
        candidate: Candidate,
        lease: DatabaseCandidate | None,
        options: LoopOptions,
    ) -> None:
        self._store = store
        self._clock = clock
        self._state = state
        self._candidate = candidate
        self._lease = lease
        self._candidacies = Candidacies(candidate, lease, clock)
        self._options = options
        self._leader_look = options.look.total_seconds()
        self._time = DatabaseClock(store, clock, options.name)
        self._planner = Planner()
        self._book = JobBook(store.ticks, self._planner)
        self._writer: TickWriter | None = None
        self._has_begun = False
        self._cluster: ClusterState | None = None
        self._looked_at = 0.0
        self._refreshed_at: float | None = None
        self._followed_at = 0.0  # when this node, not leading, last looked where the leader had moved the cursors
        self._failures = 0
        self._unreached_from = 0.0
        self._said_aside = ""
        self._standing = Standing.OUT
        self._place = ""  # where the ledger was when this node last looked
        self._is_done = False
        self._log = structlog.get_logger("sexton.scheduler").bind(node=options.name)

    def run(self) -> None:
        """Step until stopped and, if leading, handed over."""
        while True:
            seconds = self.step()
            if self._is_done:
                return
            self._clock.wait(self._state.wakeup, seconds)

    @property
    def is_done(self) -> bool:
        """Whether the node was stopped and leads no more."""
        return self._is_done

    def step(self) -> float:
        """See, decide, act; seconds until the next step at most (a wake-up may come sooner)."""
        try:
            seconds = self._step()
        except DatabaseUnreachable as error:
            return self._retry(error)
        except TermOver:
            self._state.counts.refused += 1
            self._state.supersede(self._state.deciding.term if self._state.deciding else 0)
            return 0.0
        if self._failures:
            self._log.info("database.reached", tries=self._failures)
            self._failures = 0
            self._refreshed_at = None  # notifications may have been lost meanwhile
        self._state.counts.turned(self._clock.elapsed(), reached=True)
        return seconds

    # --- seeing ---

    def _step(self) -> float:
        woken = self._state.wakeup.is_set()
        self._state.wakeup.clear()
        if self._state.is_stopping and self._state.deciding is None:
            return self._end()
        self._look(woken)
        chosen = course(self._sight())
        self._show()
        return self._act(chosen)

    def _look(self, woken: bool) -> None:
        elapsed = self._clock.elapsed()
        if woken or self._cluster is None or elapsed - self._looked_at >= self._look_every():
            self._cluster = self._mind_place(self._time.read_cluster())
            self._looked_at = elapsed
        poll = self._options.poll.total_seconds()
        if woken or self._refreshed_at is None or elapsed - self._refreshed_at >= poll:
            settings = self._store.edits.settings()
            self._candidacies.adopt(settings)
            self._state.settings = settings
            self._book.refresh()
            self._refreshed_at = elapsed
        if self._state.deciding is None and elapsed - self._followed_at >= poll:
            self._book.follow()
            self._followed_at = elapsed

    def _mind_place(self, cluster: ClusterState) -> ClusterState:
        """Where the ledger was restored or promoted: have its numbers go on, and read all of it anew."""
        if cluster.is_displaced:
            moved = self._store.restores.settle(self._options.name)
            if moved is not None:
                held = dict(moved.held)
                self._log.warning("ledger.moved", was=moved.was, here=moved.here, term=moved.term, held=held)
            cluster = self._time.read_cluster()
        if self._place and cluster.place != self._place:
            self._book.start_over()
            self._refreshed_at = None
        self._place = cluster.place
        self._planner.may_have_run_upto = cluster.may_have_run_upto
        return cluster

    def _look_every(self) -> float:
        every = self._state.settings.session.total_seconds() / LOOKS_PER_SESSION
        return self._leader_look if self._state.deciding is not None else every

    def _sight(self) -> Sighting:
        leading = self._state.leading
        may_lead = self._may_lead()
        force = force_seen(self._cluster.forced_to if self._cluster else None, self._options.name)
        strategy = self._cluster.strategy if self._cluster else Strategy.LEADER
        is_racing, is_stopping = self._state.racing is not None, self._state.is_stopping
        seeks = campaigns(strategy, force, is_racing=is_racing, may_lead=may_lead, is_stopping=is_stopping)
        found = self._candidacies.standings(campaigns=seeks, is_leading=leading is not None)
        self._standing = found.standing
        return Sighting(
            standing=found.standing,
            lease=found.lease,
            force=force,
            yields=found.yields,
            is_leading=leading is not None,
            is_superseded=self._state.is_superseded,
            may_lead=may_lead,
            is_asked_to_resign=self._is_asked_to_resign(),
            is_stopping=is_stopping,
            strategy=strategy,
            is_racing=is_racing,
        )

    def _may_lead(self) -> bool:
        """Whether this node's inputs are the cluster's (invariant 8)."""
        return self._cluster is None or self._cluster.inputs_id in ("", self._options.inputs_id)

    def _is_asked_to_resign(self) -> bool:
        leading, cluster = self._state.leading, self._cluster
        if leading is None or cluster is None:
            return False
        return cluster.resign_requested and cluster.term == leading.term

    def _show(self) -> None:
        decides = self._state.deciding is not None
        self._state.view = NodeView(
            jobs_warm=len(self._planner.jobs),
            jobs_read_at=self._refreshed_at,
            coordinator_status=NO_COORDINATOR if self._state.racing else self._candidate.describe(),
            clock_offset=self._time.host_offset,
            claims_upto=self._planner.claims_upto() if decides else None,
            clock_jump=self._time.jump,
            standing=None if self._state.racing else self._standing.value,
            is_eligible=self._may_lead(),
        )

    # --- acting ---

    def _act(self, chosen: Course) -> float:
        if chosen is Course.LEAD:
            return self._lead()
        if chosen is Course.RACE and self._cluster is not None:
            return self._decide(self._cluster)
        if chosen is Course.ENTER_RACE:
            return self._enter_race()
        if chosen is Course.LEAVE_RACE:
            return self._leave_race()
        if chosen is Course.TAKE:
            return self._take_if_confirmed(self._candidate, Confirmation.CONFIRMED)
        if chosen is Course.TAKE_BY_LEASE and self._lease is not None:
            return self._take_if_confirmed(self._lease, Confirmation.DEGRADED)
        if chosen is Course.TAKE_BY_FORCE:
            return self._take_by_force()
        if chosen is Course.HAND_OVER:
            return self._hand_over()
        if chosen is Course.STEP_DOWN:
            return self._step_down()
        if chosen is Course.STAND_ASIDE:
            self._stand_aside()
        elif chosen is Course.YIELD:
            self._log.info("candidate.yields", leader=self._cluster.leader if self._cluster else None)
            self._candidate.resign()
        return min(self._look_every(), self._options.poll.total_seconds())

    def _take_if_confirmed(self, candidate: Candidate, confirmed: Confirmation) -> float:
        """Take the term: read it, ask the coordinator once more, compare and set; start over where it had moved."""
        self._cluster = self._time.read_cluster()
        if not candidate.confirm():
            return self._look_every()
        self._take(self._cluster, candidate.elected_by, confirmed)
        return 0.0

    def _take_by_force(self) -> float:
        """Take the term because an operator says so; the coordinator confirms it when it can."""
        self._cluster = self._time.read_cluster()
        if self._take(self._cluster, ElectedBy.FORCED, Confirmation.UNCONFIRMED):
            self._candidate.seated()
        return 0.0

    def _take(self, cluster: ClusterState, elected_by: ElectedBy, confirmed: Confirmation) -> bool:
        taken = self._store.terms.take(cluster.term, self._options.name, elected_by)
        if taken is None:
            return False  # invariant 6: lost, as is normal
        self._cluster = None  # what was read is of the term before
        self._state.counts.terms_taken += 1
        self._state.lead(Leading(taken.term, confirmed))
        self._begin_term(taken.term, LeaderPasses(self._store, self._planner, taken.term))
        self._log.info(
            "leader.elected",
            term=taken.term,
            by=elected_by.value,
            predecessor=taken.predecessor,
            predecessor_ended=taken.predecessor_ended.value,
        )
        return True

    def _begin_term(self, term: int, passes: Passes, served_at: datetime | None = None) -> None:
        self._writer = TickWriter(
            self._store, self._clock, self._planner, self._book, term, passes, self._state.counts, served_at
        )
        self._has_begun = False

    def _lead(self) -> float:
        leading, cluster = self._state.leading, self._cluster
        if leading is None or cluster is None:
            raise RuntimeError("leading without a term")
        self._note_confirmation(leading)
        if cluster.term == leading.term:
            self._mind_force(cluster)
        return self._decide(cluster)

    def _decide(self, cluster: ClusterState) -> float:
        """Write what is due, as leader or racer."""
        writer = self._writer
        if writer is None:
            raise RuntimeError("deciding without a term")
        if cluster.term != writer.term:
            raise TermOver
        if cluster.halted or not self._time.may_decide:
            return self._leader_look
        if not self._has_begun:
            writer.begin(self._time.now(), self._state.settings)
            self._has_begun = True
        seconds = writer.turn(self._time.now(), self._state.settings, cluster.has_open_pass)
        return min(seconds, self._leader_look)

    def _enter_race(self) -> float:
        """No coordinator is needed any more, nor asked."""
        cluster = self._cluster
        if cluster is None:
            raise RuntimeError("a race whose cluster nobody read")
        self._candidacies.rest()
        passes = RacePasses(self._store, self._planner, self._book, cluster.term, self._state.count_race)
        self._begin_term(cluster.term, passes, self._store.terms.heartbeat().at)  # a sign of the other racers' life
        self._state.race(cluster.term)
        self._log.info("race.entered", term=cluster.term)
        return 0.0

    def _leave_race(self) -> float:
        self._log.info("race.left", term=self._writer.term if self._writer else None)
        self._leave_office()
        return self._end() if self._state.is_stopping else 0.0

    def _note_confirmation(self, leading: Leading) -> None:
        now = confirmation(self._candidate.standing(), leading.confirmation)
        if now is not leading.confirmation:
            self._state.lead(Leading(leading.term, now))
            self._log.info("leader.confirmation", term=leading.term, confirmation=now.value)

    def _mind_force(self, cluster: ClusterState) -> None:
        """End a force that has done its work, or whose node is gone."""
        leading = self._state.leading
        force = force_seen(cluster.forced_to, self._options.name)
        if leading is not None and ends_force(force, leading.confirmation, has_lapsed=cluster.has_lapsed_force):
            self._store.terms.end_force(leading.term)
            self._log.info("leader.force_ended", term=leading.term, has_lapsed=cluster.has_lapsed_force)
            self._cluster = None  # look again

    def _hand_over(self) -> float:
        leading = self._state.leading
        if leading is not None:
            self._store.terms.leave(leading.term)
            self._log.info("leader.left", term=leading.term)
        self._leave_office()
        return self._end() if self._state.is_stopping else 0.0

    def _step_down(self) -> float:
        self._log.warning("leader.superseded", term=self._writer.term if self._writer else None)
        self._leave_office()
        return 0.0

    def _leave_office(self) -> None:
        self._state.follow()
        self._writer = None
        self._candidacies.resign()
        self._cluster = None  # look again before the next campaign

    def _stand_aside(self) -> None:
        if self._cluster is not None and not self._may_lead() and self._cluster.inputs_id != self._said_aside:
            self._said_aside = self._cluster.inputs_id
            self._log.warning(
                "node.stands_aside",
                own_inputs=self._options.inputs_id,
                cluster_inputs=self._cluster.inputs_id,
                hint="install the cluster's version of tzdata and Sexton here; this node decides nothing until then",
            )
        self._candidacies.stand_aside()

    def _end(self) -> float:
        self._candidate.close()
        self._is_done = True
        return 0.0

    def _retry(self, error: DatabaseUnreachable) -> float:
        self._failures += 1
        self._state.counts.missed("loop")
        self._state.counts.turned(self._clock.elapsed(), reached=False)
        self._cluster = None  # the next step must reach the database, or fail again
        if self._failures == 1:
            self._unreached_from = self._clock.elapsed()
            self._log.warning("database.unreachable", error=str(error))
        if self._state.is_stopping and self._failures >= GOODBYE_TRIES:
            # A leader that cannot say good-bye just goes: its heartbeat stops.
            self._leave_office()
            return self._end()
        self._make_way()
        return min(RETRY_MOST, RETRY_FIRST * self._failures)

    def _make_way(self) -> None:
        """Whoever is elected and has not reached the database for a session lets others try: they may reach it.

        A leader keeps its term until it is superseded, and campaigns again once it reaches the database.
        """
        unreached = self._clock.elapsed() - self._unreached_from
        if self._candidacies.makes_way(unreached):
            self._log.warning("candidate.makes_way", unreached_seconds=round(unreached, 1))
            self._candidate.resign()
