"""What every node does beside its loop, each a plain function of store and state that returns what it did.

APScheduler calls them in production, one at a time on a connection of their own;
the simulator calls them itself. None decides a tick but ``decide_late_claims``,
which only the leader does, or racers, under the term.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from sexton.claims import State
from sexton.clock import Clock, DatabaseTime
from sexton.decisions import LateJob
from sexton.errors import DatabaseUnreachable
from sexton.store.poison import pause_poison
from sexton.store.protocol import Store
from sexton.terms import NodeReport
from sexton_scheduler.catch_up_budget import CatchUpBudget
from sexton_scheduler.core.reach import Reach
from sexton_scheduler.election.candidate import NodeIdentity
from sexton_scheduler.job_book import DefinitionCache
from sexton_scheduler.late_claims import decide_as_leader, decide_as_racer
from sexton_scheduler.node_state import NodeState

LONGEST_BREAK = 5.0
LATE_JOBS_AT_ONCE = 100
LOOP_LOOKS_WITHIN = 5.0  # seconds in which the loop, woken, has seen a jump of the clock too
_log = structlog.get_logger("sexton.scheduler")


@dataclass(slots=True)
class Housekeeper:
    """What the duties of one node work with."""

    store: Store
    clock: Clock
    state: NodeState
    identity: NodeIdentity
    inputs_id: str
    reach: Reach = field(default_factory=lambda: Reach(LONGEST_BREAK))
    definitions: DefinitionCache = field(default_factory=DefinitionCache)
    time: DatabaseTime = field(init=False)
    jumped_at: float | None = None  # when the database's clock was last seen to have jumped, in elapsed seconds

    has_reported: bool = False
    namesake: str | None = None  # another process of this name that was warned of
    _budget: CatchUpBudget | None = None

    def __post_init__(self) -> None:
        self.time = DatabaseTime(self.clock)

    def budget_of(self, term: int) -> CatchUpBudget:
        """The catch-up budget as this term draws on it."""
        if self._budget is None or self._budget.term != term:
            self._budget = CatchUpBudget(self.store, term)
        return self._budget


POISON = "its last two ticks were lost with three workers each: it may be what kills them"


@dataclass(frozen=True, slots=True)
class Duty:
    """A function to be called every so many seconds."""

    name: str
    every: float
    run: Callable[[Housekeeper], int]


def requeue_expired(keeper: Housekeeper) -> int:
    """Give claims whose lease ran out to other workers, if this node has reached the database for one lease.

    A jump of the database's clock is a break too: it ends leases that no worker had the time to renew.
    """
    asked_at = keeper.clock.elapsed()
    _mind_jumps(keeper, keeper.store.now(), asked_at)
    if keeper.reach.unbroken_for() < keeper.state.settings.lease.total_seconds():
        return 0
    requeued = keeper.store.grants.requeue_expired()
    keeper.state.counts.leases_expired += len(requeued)
    for one in requeued:
        _log.warning("lease.expired", job_id=one.job_id, tick=one.scheduled_at.isoformat(), becomes=one.state.word)
    if lost := {one.job_id for one in requeued if one.state is State.LOST}:
        _pause_poison(keeper, lost)
    return len(requeued)


def _pause_poison(keeper: Housekeeper, lost: Collection[int]) -> None:
    """A job that took three workers with it at two ticks in a row is paused: it would take the pool with it."""
    for name in pause_poison(keeper.store, lost, POISON):
        _log.error("job.paused_as_poison", job=name)


def sweep(keeper: Housekeeper) -> int:
    """Promote parked claims whose slot is free, should a completion have missed one."""
    return keeper.store.grants.sweep()


def decide_late_claims(keeper: Housekeeper) -> int:
    """Decide the claims that nobody started in time, job by job; who leads or races, by a clock not in doubt."""
    deciding = keeper.state.deciding
    if deciding is None:
        return 0
    asked_at = keeper.clock.elapsed()
    cluster = keeper.store.terms.cluster()
    if not _mind_jumps(keeper, cluster.database_now, asked_at) or cluster.halted:
        return 0
    store, now, settings = keeper.store, cluster.database_now, keeper.state.settings
    budget = keeper.budget_of(deciding.term)
    if keeper.state.racing is None:
        return decide_as_leader(store, budget, _late_jobs(keeper), now, settings)
    seen = store.races.newest_pass()  # before the claims
    return decide_as_racer(store, budget, _late_jobs(keeper), now, settings, seen)


def lapse_proposals(keeper: Housekeeper) -> int:
    """Close the proposals that nobody answered within ``hold_for``; on any node, by a clock that is not in doubt."""
    asked_at = keeper.clock.elapsed()
    if not _mind_jumps(keeper, keeper.store.now(), asked_at):
        return 0
    lapsed = keeper.store.holds.lapse()
    for one in lapsed:
        _log.warning("proposal.lapsed", job=one.job, proposal=one.proposal_id, ticks=one.count)
    return len(lapsed)


def terminate_stuck(keeper: Housekeeper) -> int:
    """End transactions of Sexton's that wait for a client which was stopped in their midst."""
    ended = keeper.store.terms.terminate_stuck()
    if ended:
        _log.warning("backends.terminated", count=ended)
    return ended


def report(keeper: Housekeeper) -> int:
    """Say how this node is."""
    leading, view = keeper.state.leading, keeper.state.view
    read_at = view.jobs_read_at
    namesake = keeper.store.terms.report(
        NodeReport(
            name=keeper.identity.name,
            address=keeper.identity.address,
            version=keeper.identity.version,
            pid=keeper.identity.pid,
            role=keeper.state.role,
            confirmation=None if leading is None else leading.confirmation,
            coordinator_status=view.coordinator_status,
            jobs_warm=view.jobs_warm,
            behind_ms=0 if read_at is None else round((keeper.clock.elapsed() - read_at) * 1000),
            clock_offset_ms=view.clock_offset // timedelta(milliseconds=1),
            claims_upto=view.claims_upto,
            inputs_id=keeper.inputs_id,
            coordinator_servers=keeper.state.coordinator_servers,
            clock_jump_ms=None if view.clock_jump is None else view.clock_jump // timedelta(milliseconds=1),
            raced=keeper.state.raced,
        )
    )
    _mind_namesake(keeper, namesake)
    return 1


def clean_live(keeper: Housekeeper) -> int:
    """Delete the output of runs that nobody follows any more."""
    return keeper.store.outputs.clean_live()


DUTIES = (
    Duty("report", 1.0, report),
    Duty("requeue", 1.0, requeue_expired),
    Duty("sweep", 2.0, sweep),
    Duty("late claims", 5.0, decide_late_claims),
    Duty("proposals", 15.0, lapse_proposals),
    Duty("stuck backends", 1.0, terminate_stuck),
    Duty("live outputs", 15.0, clean_live),
)


def perform(duty: Duty, keeper: Housekeeper) -> int:
    """Call a duty; a database that is away, or a fault of the duty, is logged and ends nothing."""
    try:
        done = duty.run(keeper)
    except DatabaseUnreachable:
        keeper.reach.failed()  # the loop says that the database is away
        keeper.state.counts.missed("housekeeping")
        return 0
    except Exception:  # a fault in one duty must not end the others
        _log.exception("housekeeping.failed", duty=duty.name)
        return 0
    keeper.reach.succeeded(keeper.clock.elapsed())
    return done


def _mind_jumps(keeper: Housekeeper, database_now: datetime, asked_at: float) -> bool:
    """Take a reading of the database's clock; whether ticks may be decided by it. The loop decides what to believe:
    after a jump it is woken, and given time to doubt."""
    answered_at = keeper.clock.elapsed()
    keeper.time.observe(database_now, asked_at, answered_at)
    if not keeper.time.is_trusted:
        keeper.time.accept(database_now, asked_at, answered_at)
        keeper.jumped_at = answered_at
        keeper.reach.failed()
        keeper.state.wakeup.set()
    is_fresh = keeper.jumped_at is not None and answered_at - keeper.jumped_at <= LOOP_LOOKS_WITHIN
    return not is_fresh and keeper.state.view.clock_jump is None


def _mind_namesake(keeper: Housekeeper, namesake: str | None) -> None:
    """Warn of another process that goes by this node's name. Before the first report of this one, the row may be that
    of the process that it follows, and which is gone."""
    if keeper.has_reported and namesake is not None and namesake != keeper.namesake:
        keeper.namesake = namesake
        hint = "stop one of them, or give it another --name: screens and `leader force` cannot tell them apart"
        _log.warning("node.same_name", name=keeper.identity.name, other=namesake, hint=hint)
        detail = {"name": keeper.identity.name, "pid": keeper.identity.pid, "other": namesake}
        keeper.store.edits.record(keeper.identity.name, "node.same_name", detail)
    keeper.has_reported = True


def _late_jobs(keeper: Housekeeper) -> list[LateJob]:
    jobs: list[LateJob] = []
    for row in keeper.store.ticks.late_jobs(LATE_JOBS_AT_ONCE):
        try:
            jobs.append(keeper.definitions.late_job(row))
        except Exception as error:  # invariant 9: the loop puts the job in quarantine
            _log.error("job.unreadable", job=row.job.name, error=str(error))
    return jobs
