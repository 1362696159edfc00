"""What needs a human, worst first: the first thing on the screen, and the exit code of ``sexton status``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from sexton.cluster_views import FAILURES_IN_A_ROW, FAILURES_SEEN, FailingJob, Overview, Undecided
from sexton.settings import settings_from_rows
from sexton_tui.console.core.standing import (
    NODE_SILENCE,
    Word,
    alarms,
    forceable,
    has_quorum,
    late_beat,
    living,
    servers,
    word,
)
from sexton_tui.console.core.subjects import OfJob, OfNode, OfProposal, OfQueue, OfWorker, Subject
from sexton_tui.console.core.words import duration, instant, plural

if TYPE_CHECKING:  # the first screen waits for none of it
    from sexton.alerts import AlertView

OVERDUE = timedelta(seconds=30)
UNDECIDED = timedelta(seconds=10)
CLOCK_LIMIT = timedelta(seconds=1)
WORKER_SILENCE = timedelta(seconds=30)
_TOLD_EACH, _NAMED = 3, 8


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that needs a human. `is_urgent`: ticks are not decided or not run because of it, or wait for an
    answer; else it is a warning. `todo`: what to do next, where that is not plain. `alarm`: its name
    in capitals, where it is one that the console's banner tells in full. `about`: what it opens into in the console;
    `keys`: the console's keys that act on it, in the place of `todo`."""

    text: str
    is_urgent: bool = True
    todo: str = ""
    alarm: str = ""
    about: Subject | None = None
    keys: str = ""


def needs(
    overview: Overview, failing: Sequence[FailingJob] = (), undecided: Undecided | None = None
) -> tuple[Need, ...]:
    """All that needs a human now, urgent things first."""
    found = [
        *_leadership(overview),
        *_undecided(overview, undecided),
        *_work(overview),
        *_lost(overview),
        *_jobs(overview, failing),
        *_nodes(overview),
    ]
    return tuple(sorted(found, key=lambda need: not need.is_urgent))


def _leadership(overview: Overview) -> list[Need]:
    found = [
        Need(alarm.text, alarm.is_urgent, alarm.todo, alarm.name, keys=_alarm_keys(alarm.name, overview))
        for alarm in alarms(overview)
    ]
    told = word(overview)
    if overview.leader is not None and told is not Word.NO_LEADER and overview.heartbeat_age > late_beat(overview):
        silent = f"leader {overview.leader} is silent for {duration(overview.heartbeat_age)}"
        session = duration(settings_from_rows(overview.settings).session)
        waits = "" if overview.forced_to is None else ", once its force has lapsed"
        found.append(Need(f"{silent}: a follower takes over after {session}{waits}", is_urgent=False))
    if swallowed := overview.counters.get("swallowed", 0):
        found.append(
            Need(f"{plural(swallowed, 'tick')} swallowed: a decided tick met an older claim; run `sexton audit`")
        )
    return found + _servers(overview)


def _alarm_keys(name: str, overview: Overview) -> str:
    """The keys that do something about an alarm now."""
    able = {node.name for node in forceable(overview)}
    keys = {"HALTED": "h lifts it", "CLOCK IN DOUBT": "C accepts it", "ALL PAUSED": "P ends it"}
    if able:
        keys["NO LEADER"] = "F forces a node"
    if able - {overview.forced_to}:
        keys["FORCED"] = "F forces another"
    return keys.get(name, "")


def _servers(overview: Overview) -> list[Need]:
    """ZooKeeper's servers that do not serve, or not all nodes."""
    found = servers(living(overview))
    away: dict[str, list[str]] = {}
    for server in found:
        if not server.serves:
            away.setdefault(server.state, []).append(server.address)
    needed = []
    if away:
        rest = f"{sum(server.serves for server in found)} of {len(found)} serve"
        which = ", ".join(f"{state}: {' '.join(addresses)}" for state, addresses in away.items())
        lost = "" if has_quorum(found) else "; no election can be held"
        needed.append(Need(f"ZooKeeper: {rest} ({which}){lost}", is_urgent=False))
    for server in found:
        if server.serves and server.otherwise:
            others = ", ".join(f"{state} for {' and '.join(nodes)}" for state, nodes in server.otherwise)
            needed.append(Need(f"ZooKeeper {server.address}: {server.state}, but {others}", is_urgent=False))
    return needed


def _undecided(overview: Overview, undecided: Undecided | None) -> list[Need]:
    if undecided is None or undecided.oldest is None or overview.now - undecided.oldest <= UNDECIDED:
        return []
    age = duration(overview.now - undecided.oldest)
    jobs = plural(undecided.jobs, "job")
    return [Need(f"{jobs} with undecided ticks, the oldest due {age} ago ({undecided.oldest_job})")]


def _work(overview: Overview) -> list[Need]:
    found = []
    for queue in overview.queues:
        waits = "" if queue.oldest is None else f", the oldest for {duration(overview.now - queue.oldest)}"
        if not queue.workers and (queue.due or queue.ahead):
            told = f"queue {queue.name} has no worker: {plural(queue.due, 'claim')} due{waits}"
            found.append(Need(told, about=OfQueue(queue.name)))
        elif queue.oldest is not None and overview.now - queue.oldest > OVERDUE:
            limit = f"; its limit is {queue.rule}" if queue.rule else ""
            told = f"queue {queue.name} is behind: {plural(queue.due, 'claim')} due{waits}{limit}"
            found.append(Need(told, about=OfQueue(queue.name)))
    if overview.proposals:
        first = overview.proposals[0]
        oldest = duration(overview.now - first.made_at)
        told = f"{plural(len(overview.proposals), 'proposal')} held, the oldest for {oldest} ({first.job})"
        keys = "a approves, x rejects, 3 lists"
        found.append(Need(told, about=OfProposal(first.job, first.proposal_id), keys=keys))
    return found


def _lost(overview: Overview) -> list[Need]:
    """Runs that nobody tries again: whether their work was done only a human can find out."""
    found = []
    for job, worker in dict.fromkeys((run.job, run.worker) for run in overview.lost):
        ticks = [run.scheduled_at for run in overview.lost if (run.job, run.worker) == (job, worker)]
        several = "" if len(ticks) == 1 else f", {len(ticks)} in 1 h"
        told = f"job {job}: a run was lost with {worker} (tick {instant(ticks[0], overview.now)}{several})"
        todo = f"see on {worker} what it did; again: `sexton trigger {job}`"
        keys = f"see on {worker} what it did; t runs it again"
        found.append(Need(told, todo=todo, about=OfJob(job), keys=keys))
    return found


def _jobs(overview: Overview, failing: Sequence[FailingJob]) -> list[Need]:
    found = [
        Need(
            f"job {job.name} is paused by sexton: {job.reason}",
            todo=f"mend it, then `sexton resume {job.name}`",
            about=OfJob(job.name),
            keys="mend it, then r resumes",
        )
        if job.is_paused
        else Need(f"job {job.name} is quarantined: {job.reason}", about=OfJob(job.name), keys="mend it, then r resumes")
        for job in overview.quarantined
    ]
    found += [
        Need(
            f"job {job.name} failed {_in_a_row(job)} in a row: {job.error or 'no reason given'}",
            is_urgent=False,
            about=OfJob(job.name),
        )
        for job in failing
        if job.failed >= FAILURES_IN_A_ROW
    ]
    lost = {run.job for run in overview.lost}  # told above
    return found + _failed_lately([job for job in failing if job.failed < FAILURES_IN_A_ROW and job.name not in lost])


def _failed_lately(failing: Sequence[FailingJob]) -> list[Need]:
    """Jobs that failed at their last run or two: each with its error, or all in one line where they are many."""
    if len(failing) <= _TOLD_EACH:
        return [
            Need(
                f"job {job.name} failed at its last {'run' if job.failed == 1 else f'{job.failed} runs'}: "
                f"{job.error or 'no reason given'}",
                is_urgent=False,
                about=OfJob(job.name),
            )
            for job in failing
        ]
    names = ", ".join(job.name for job in failing[:_NAMED])
    more = f" and {len(failing) - _NAMED} more" if len(failing) > _NAMED else ""
    told = f"{len(failing)} jobs failed at their last run: {names}{more}"
    return [Need(told, is_urgent=False, todo="`sexton runs --state failed` tells why", keys="5 then f lists them")]


def _in_a_row(job: FailingJob) -> str:
    """No more than the newest runs are looked at."""
    return f"{job.failed} or more" if job.failed >= FAILURES_SEEN else str(job.failed)


def _nodes(overview: Overview) -> list[Need]:
    found = []
    for node in overview.nodes:
        if node.age > NODE_SILENCE:
            if node.name != overview.leader or overview.heartbeat_age <= late_beat(overview):  # else told above
                told = f"node {node.name} was last heard of {duration(node.age)} ago"
                found.append(Need(told, is_urgent=False, about=OfNode(node.name)))
            continue
        if abs(node.clock_offset) > CLOCK_LIMIT:
            told = f"clock of {node.name} differs from the database's by {duration(node.clock_offset)}"
            found.append(Need(told, is_urgent=False, about=OfNode(node.name)))
        if node.inputs_id != overview.inputs_id:
            other = f"{node.inputs_id}, the cluster's are {overview.inputs_id}"
            told = f"node {node.name} may not lead: its inputs are {other}"
            found.append(Need(told, is_urgent=False, about=OfNode(node.name)))
    alive = {worker.name for worker in overview.workers if worker.age <= WORKER_SILENCE}
    for worker in overview.workers:
        if worker.age > WORKER_SILENCE and worker.name not in alive:  # else it was started again
            told = f"worker {worker.name} was last heard of {duration(worker.age)} ago"
            found.append(Need(told, is_urgent=False, about=OfWorker(worker.name)))
    return found


ALERTS_COUNTED = 100


def standing_needs(alerts: Sequence[AlertView]) -> tuple[Need, ...]:
    """Open alerts, of which ``ALERTS_COUNTED`` at most were read: in one line, for what each of them is about stands
    above it, if it is so still."""
    found = []
    if alerts:
        more = f", the oldest of {len(alerts)}" + ("" if len(alerts) < ALERTS_COUNTED else "+")
        told = f"an alert is open{more if len(alerts) > 1 else ''}: {alerts[0].sentence}"
        job = alerts[0].job
        found.append(Need(told, False, "`sexton alerts`", about=None if job is None else OfJob(job)))
    return tuple(found)
