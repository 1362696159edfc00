"""A fleet under both strategies, on virtual time: what deciding ticks costs, and what happens when nodes are lost.

Counted, not computed: the planner of the one who wins and that of a racer who loses go through the same rounds (wake,
draft, commit, settle or read anew). What is multiplied is alike by proof, and checked on the way:

* **Racers.** All racers hold the same jobs at the same cursors, wake at the same instant and draft the same moves; one
  wins, every other is told `not_moved` and reads the jobs anew, after which all are alike again. So each round costs
  the winner's attempts, and the loser's as often as there are others alive. The loser goes along, and is compared, for
  the first 20,000 moves; from then on it follows from the round before that it would draft the same.
* **Jobs.** Jobs of equal schedule and equal rules have equal ticks; one goes through the rounds for all of them.
* **Workers.** Each goes by the same policy and knows of the same next start; one counts for all. That is the most: in
  truth a worker that is told of a start by another does not look.

Nodes are lost at random from a seed; a lost leader is one gap, decided (`rehearsal`) with and without a horizon. In
a race nobody waits for anybody: as long as a node is left there is no gap.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sexton.decisions import Cause, CommitResult, PlannedJob
from sexton.settings import ClusterSettings
from sexton.terms import Strategy
from sexton_scheduler.core.planner import BATCH_ROWS, Draft, Planner
from sexton_scheduler.core.takeover import at_cursor
from sexton_tui.simulation.rehearsal import SLOWEST_ELECTION, Ending, Gap, GapLedger, decide_gaps, refuse_faults
from sexton_worker.core import pull_policy

BACK_AFTER = timedelta(minutes=1)  # a lost node is started again
WORKER_POLL = 5.0
_MOST_AHEAD = timedelta(seconds=1)
_MANY = 1_000_000
_COMPARED = 20_000  # moves


@dataclass(frozen=True, slots=True)
class Fleet:
    """What is simulated. ``failures``: nodes lost in a day."""

    nodes: int
    workers: int
    failures: int
    settings: ClusterSettings
    begin: datetime
    end: datetime
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Lost:
    """What the loss of nodes did to ticks. ``missed``: merged, skipped, expired or held."""

    late: int
    caught_up: int
    missed: int
    latest: timedelta


@dataclass(frozen=True, slots=True)
class StrategyCost:
    """One strategy over the stretch. ``attempts``: cursors that somebody wanted to move; ``conflicts``: those that
    another had moved; ``rows``: written; ``statements``: commits sent."""

    strategy: Strategy
    ticks: int
    attempts: int
    conflicts: int
    rows: int
    statements: int
    takeovers: int
    pulls: int
    with_horizon: Lost
    without_horizon: Lost


@dataclass(slots=True)
class _Rounds:
    """What the rounds add up to."""

    ticks: int = 0
    attempts: int = 0
    conflicts: int = 0
    rows: int = 0
    statements: int = 0


def compare(
    fleet: Fleet, jobs: Sequence[PlannedJob], told: Callable[[float, float], None] | None = None
) -> tuple[StrategyCost, StrategyCost]:
    """The fleet led, and racing. Pure: equal arguments, equal results. ``jobs`` are decided up to ``fleet.begin``.

    ``told``: how many seconds of the stretch are done, of how many.
    """
    losses = _losses(fleet)
    led, raced, starts = _rounds(fleet, [job for job in jobs if not job.pauses], [at for at, _ in losses], told)
    pulls = fleet.workers * _pulls_of_one(fleet, sorted(starts))
    costs = []
    for strategy, rounds in ((Strategy.LEADER, led), (Strategy.RACE, raced)):
        gaps = list(_gaps(fleet, losses)) if strategy is Strategy.LEADER or fleet.nodes == 1 else []
        kept, bare = (
            _lost(decide_gaps(jobs, fleet.begin, fleet.end, gaps, settings))
            for settings in (fleet.settings, replace(fleet.settings, horizon=timedelta(0)))
        )
        costs.append(
            StrategyCost(
                strategy,
                rounds.ticks,
                rounds.attempts,
                rounds.conflicts,
                rounds.rows,
                rounds.statements,
                len(gaps) if strategy is Strategy.LEADER else 0,
                pulls,
                kept,
                bare,
            )
        )
    return costs[0], costs[1]


# --- deciding -------------------------------------------------------------------------------------


def _rounds(
    fleet: Fleet,
    jobs: Sequence[PlannedJob],
    lost_at: Sequence[datetime],
    told: Callable[[float, float], None] | None,
) -> tuple[_Rounds, _Rounds, set[datetime]]:
    """Let the winner's and a loser's planner go through all ticks up to the end."""
    winner, loser = Planner(), Planner()
    weights = _weights(jobs)
    ones = [job for job in jobs if job.job_id in weights]
    winner.put_all(ones)
    loser.put_all(ones)
    horizon = fleet.settings.horizon
    led, raced, starts = _Rounds(), _Rounds(), set[datetime]()
    compared, length = 0, fleet.end - fleet.begin
    while (now := winner.next_at(horizon)) is not None and now + horizon <= fleet.end:
        upto = min(now + horizon + min(_MOST_AHEAD, horizon / 10), fleet.end)
        won = winner.draft(now, upto, max_rows=_MANY)
        if compared < _COMPARED:
            compared += len(won.plans)
            _lose(loser, won, now, upto)
        others = _alive(fleet, lost_at, now) - 1
        _count(led, won, weights, 0)
        _count(raced, won, weights, others)
        starts.update(claim.available_at for plan in won.plans for claim in plan.claims)
        winner.settle(won, CommitResult(True, True, len(won.plans), 0))
        if told is not None:
            told((now - fleet.begin).total_seconds(), length.total_seconds())
    refuse_faults(winner)
    return led, raced, starts


def _lose(loser: Planner, won: Draft, now: datetime, upto: datetime) -> None:
    """A racer's round who comes too late: it drafts the winner's moves, is told that none was made, and reads anew."""
    lost = loser.draft(now, upto, max_rows=_MANY)
    moves = {plan.job.job_id: plan for plan in won.plans}
    if _moves_of(lost) != _moves_of(won):
        raise RuntimeError("two racers of the same cursors drafted different moves")
    for job_id in loser.settle(lost, CommitResult(True, True, 0, 0, lost.job_ids)):
        loser.put(at_cursor(moves[job_id].job, moves[job_id].upto))


def _moves_of(draft: Draft) -> set[tuple[int, datetime, datetime]]:
    return {(plan.job.job_id, plan.job.at, plan.upto) for plan in draft.plans}


def _weights(jobs: Sequence[PlannedJob]) -> dict[int, int]:
    """One job's id for each schedule and rules, and how many are like it."""
    first: dict[tuple[int, int], int] = {}
    weights: Counter[int] = Counter()
    for job in jobs:
        key = (id(job.revisions[0].schedule), id(job.revisions[0].firing))
        weights[first.setdefault(key, job.job_id)] += 1
    return dict(weights)


def _count(rounds: _Rounds, draft: Draft, weights: dict[int, int], others: int) -> None:
    """A round: somebody's commit, and that of ``others`` who come too late."""
    attempts = sum(weights[plan.job.job_id] for plan in draft.plans)
    claims = sum(weights[plan.job.job_id] * plan.rows for plan in draft.plans)
    rounds.ticks += sum(weights[plan.job.job_id] * plan.ticks for plan in draft.plans)
    rounds.attempts += attempts * (1 + others)
    rounds.conflicts += attempts * others
    rounds.rows += attempts + claims
    rounds.statements += -(-claims // BATCH_ROWS) * (1 + others)


# --- losing nodes ---------------------------------------------------------------------------------


def _losses(fleet: Fleet) -> list[tuple[datetime, int]]:
    """When which node is lost, in order."""
    drawn = random.Random(fleet.seed)
    length = fleet.end - fleet.begin
    count = round(fleet.failures * (length / timedelta(days=1)))
    times = sorted(fleet.begin + length * drawn.random() for _ in range(count))
    return [(at, drawn.randrange(fleet.nodes)) for at in times]


def _alive(fleet: Fleet, lost_at: Sequence[datetime], now: datetime) -> int:
    """How many nodes race at ``now``; at least one, for who is lost last is started again first."""
    away = bisect_right(lost_at, now) - bisect_right(lost_at, now - BACK_AFTER)
    return max(1, fleet.nodes - away)


def _gaps(fleet: Fleet, losses: Sequence[tuple[datetime, int]]) -> Iterator[Gap]:
    """One for each loss of the node that leads; the slowest election that was measured, or a lone node's restart."""
    length = BACK_AFTER if fleet.nodes == 1 else fleet.settings.session * SLOWEST_ELECTION
    leader, free_from = 0, fleet.begin
    for at, node in losses:
        if node == leader and at >= free_from:
            free_from = at + length
            yield Gap(at, free_from, Ending.KILLED, Cause.TAKEOVER)
            leader = (leader + 1) % fleet.nodes


def _lost(ledgers: Sequence[GapLedger]) -> Lost:
    return Lost(
        late=sum(ledger.late for ledger in ledgers),
        caught_up=sum(ledger.caught_up for ledger in ledgers),
        missed=sum(skip.count for ledger in ledgers for skip in ledger.skips),
        latest=max((ledger.latest for ledger in ledgers), default=timedelta(0)),
    )


# --- pulling --------------------------------------------------------------------------------------


def _pulls_of_one(fleet: Fleet, starts: Sequence[datetime]) -> int:
    """The exchanges of one worker with free slots, awake for every start and polling between."""
    seconds = [(start - fleet.begin).total_seconds() for start in starts]
    end = (fleet.end - fleet.begin).total_seconds()
    now, taken, pulls, last = 0.0, 0, 0, pull_policy.NOTHING_PULLED
    while now < end:
        there = bisect_right(seconds, now)
        picked, taken = there - taken, there
        following = seconds[there] if there < len(seconds) else None
        last = last.after(picked + 1, picked, picked, following, now)
        pulls += 1
        now += max(pull_policy.pause(1, last, now, WORKER_POLL), pull_policy.WAKE_LATE)
    return pulls
