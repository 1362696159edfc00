"""What is wrong enough to tell somebody: signs read off the ledger in, conditions and changes of alerts out. Pure.

* A condition is *raised* when a look finds it, and *recovers* when a later look does not; each is told once. While it
  lasts its sentence is kept up to date.
* More than ``CROWD`` jobs with the same trouble are one alert of the cluster: an outage is not a storm. Nor is its end:
  the crowd lasts until ``REST`` are left, which are then told one by one.
* A tick that will not run any more stays what it is: its alert recovers with the job's next run.
* A job's trouble that comes back within ``DAMPED`` of telling its end is told when that has passed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sexton.job_rules import AlertRules
from sexton.settings import format_duration

CLUSTER = 0
"""In place of a job's number: the alert is the cluster's, or of many jobs at once."""
CROWD, REST = 20, 5
_NAMED = 5
DAMPED = timedelta(minutes=10)
MISSED_WITHIN = timedelta(minutes=50)
"""A longer ``alert: {late}`` is cut to this for ticks that will not run: decisions are looked at for an hour."""
FIRST_DELAY, LONGEST_DELAY = timedelta(seconds=5), timedelta(minutes=10)
LONGEST_ERROR = 500


class AlertKind(StrEnum):
    LATE = "late"  # a tick did not start within its allowance
    FAILING = "failing"  # so many failures in a row as the job's `alert` says
    HELD = "held"  # missed ticks wait for an operator
    QUARANTINED = "quarantined"
    NO_LEADER = "no_leader"
    UNDECIDED = "undecided"  # a node leads, and yet ticks are not decided
    NO_ELIGIBLE_NODE = "no_eligible_node"  # no living node has the cluster's inputs


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that is wrong now. ``job_id`` is ``CLUSTER`` where it is no single job's."""

    kind: AlertKind
    job_id: int
    since: datetime
    sentence: str
    tick: datetime | None = None
    job: str = ""

    @property
    def key(self) -> tuple[AlertKind, int]:
        return self.kind, self.job_id


@dataclass(frozen=True, slots=True)
class WaitingTicks:
    """Ticks of a job that are due and were never granted. ``due_at``: the oldest, jitter included; ``start_by``: of
    the one whose start is due first, None where none has one. ``is_caught_up``: the oldest was found late already."""

    job_id: int
    job: str
    tick: datetime
    due_at: datetime
    count: int
    start_by: datetime | None
    is_caught_up: bool
    rules: AlertRules


@dataclass(frozen=True, slots=True)
class MissedTicks:
    """Ticks of a job that were decided not to run, and were not merged into one that does, as the newest decision says;
    the job has not run since. ``due_at``: of the oldest tick that is known to be among all those since its last run."""

    job_id: int
    job: str
    upto: datetime
    due_at: datetime
    count: int
    reason: str
    decided_at: datetime
    rules: AlertRules


@dataclass(frozen=True, slots=True)
class Failures:
    """The newest runs of a job that failed in a row: at most as many as its rules ask for."""

    job_id: int
    job: str
    count: int
    tick: datetime
    since: datetime
    rules: AlertRules


@dataclass(frozen=True, slots=True)
class HeldTicks:
    job_id: int
    job: str
    count: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Quarantine:
    job_id: int
    job: str
    since: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class OpenAlert:
    """An alert that has not recovered. ``has_run_since``: its job was granted a run after the look that raised it;
    ``is_moot``: its job is retired, paused or gone."""

    kind: AlertKind
    job_id: int
    has_run_since: bool = False
    is_moot: bool = False
    sentence: str = ""

    @property
    def key(self) -> tuple[AlertKind, int]:
        return self.kind, self.job_id


@dataclass(frozen=True, slots=True)
class Signs:
    """What one look at the ledger found, all as of ``now``. ``heartbeat_at``: the leader's, or racers', last sign of
    life. ``node_inputs``: of the living nodes, by name. ``claims_upto``: the first tick without a claim, as the leader
    says, or the racer that is farthest; None where there is none, or nobody says."""

    now: datetime
    heartbeat_at: datetime
    who: str | None
    is_race: bool = False
    is_halted: bool = False
    inputs_id: str = ""
    node_inputs: Mapping[str, str] = field(default_factory=dict)
    claims_upto: datetime | None = None
    waiting: tuple[WaitingTicks, ...] = ()
    missed: tuple[MissedTicks, ...] = ()
    failures: tuple[Failures, ...] = ()
    held: tuple[HeldTicks, ...] = ()
    quarantined: tuple[Quarantine, ...] = ()
    open_alerts: tuple[OpenAlert, ...] = ()


@dataclass(frozen=True, slots=True)
class AlertChanges:
    """What to raise, which open alerts have recovered, and whose sentence is another by now."""

    raised: tuple[Condition, ...]
    recovered: tuple[tuple[AlertKind, int], ...]
    reworded: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class DueAlert:
    """An alert that this caller is to tell, under a lease. ``attempt`` numbers its deliveries within the episode."""

    kind: AlertKind
    job_id: int
    episode: int
    attempt: int
    since: datetime
    tick: datetime | None
    sentence: str
    recovered_at: datetime | None
    job: str | None
    owner: str
    cluster_id: str

    def message(self, node: str) -> dict[str, Any]:
        """What is told, as JSON has it."""
        return {
            "kind": self.kind.value,
            "state": "open" if self.recovered_at is None else "recovered",
            "job": self.job,
            "owner": self.owner,
            "tick": _iso(self.tick),
            "sentence": self.sentence if self.recovered_at is None else self._end(self.recovered_at),
            "since": _iso(self.since),
            "recovered_at": _iso(self.recovered_at),
            "cluster": self.cluster_id,
            "node": node,
            "episode": self.episode,
            "attempt": self.attempt,
        }

    def _end(self, at: datetime) -> str:
        return f"over, after {_lasting(at - self.since)}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class AlertView:
    """An alert as commands show it; ``job`` None: the cluster's. ``error``: why the last attempt to tell failed."""

    kind: str
    job: str | None
    tick: datetime | None
    sentence: str
    since: datetime
    recovered_at: datetime | None
    told_at: datetime | None
    recovery_told_at: datetime | None
    attempts: int
    next_try_at: datetime | None
    error: str

    @property
    def is_open(self) -> bool:
        return self.recovered_at is None


def trial_message(cluster_id: str, node: str, at: datetime) -> dict[str, Any]:
    """What `sexton alerts test` tells: a message with all keys of the others, that no alert is behind."""
    one = DueAlert(AlertKind.LATE, CLUSTER, 0, 1, at, None, "", None, None, "", cluster_id)
    return one.message(node) | {"kind": "test", "sentence": f"a test of alerts, sent from {node}: nothing is wrong"}


def retry_delay(attempt: int) -> timedelta:
    """How long to wait after the n-th attempt, the first being 1, has failed."""
    return min(FIRST_DELAY * (1 << min(attempt - 1, 10)), LONGEST_DELAY)


def alert_changes(signs: Signs, watched_for: timedelta, no_leader_after: timedelta) -> AlertChanges:
    """What a look changes. ``watched_for``: for how long who looks has reached the database without a break."""
    found = conditions(signs, watched_for, no_leader_after)
    is_open = {one.key: one for one in signs.open_alerts}
    told = _without_crowds(found, is_open)
    still = {one.key for one in told}
    raised = tuple(one for one in told if one.key not in is_open)
    ended = (one.key for one in signs.open_alerts if one.key not in still and _has_ended(one))
    reworded = (one for one in told if one.key in is_open and one.sentence != is_open[one.key].sentence)
    return AlertChanges(raised, tuple(ended), tuple(reworded))


def conditions(signs: Signs, watched_for: timedelta, no_leader_after: timedelta) -> tuple[Condition, ...]:
    """All that is wrong, by kind."""
    return (
        *_no_leader(signs, watched_for, no_leader_after),
        *_undecided(signs, watched_for, no_leader_after),
        *_no_eligible_node(signs, watched_for),
        *_late(signs),
        *_failing(signs),
        *(_held(one) for one in signs.held),
        *(_quarantined(one) for one in signs.quarantined),
    )


def _no_leader(signs: Signs, watched_for: timedelta, after: timedelta) -> list[Condition]:
    """Also who looks must have been there for as long: a cluster that was down is given the time to elect."""
    silent = signs.now - signs.heartbeat_at
    if silent <= after or watched_for <= after:
        return []
    who = "no node races" if signs.is_race else "no node leads"
    last = f"; the last was {signs.who}" if signs.who else ""
    sentence = f"{who} since {_iso(_seconds(signs.heartbeat_at))}: beyond the horizon no tick is decided{last}"
    return [Condition(AlertKind.NO_LEADER, CLUSTER, signs.heartbeat_at, sentence)]


def _undecided(signs: Signs, watched_for: timedelta, after: timedelta) -> list[Condition]:
    """Claims are written ahead, so the first tick without one lies ahead of now, unless who leads does not get on."""
    upto = signs.claims_upto
    if upto is None or signs.is_halted or signs.now - upto <= after or watched_for <= after:
        return []
    who = "a node races" if signs.is_race else f"{signs.who or 'a node'} leads"
    sentence = f"ticks from {_iso(_seconds(upto))} on are undecided although {who}; its log says why"
    return [Condition(AlertKind.UNDECIDED, CLUSTER, upto, sentence, upto)]


def _no_eligible_node(signs: Signs, watched_for: timedelta) -> list[Condition]:
    others = sorted({one for one in signs.node_inputs.values() if one != signs.inputs_id})
    is_eligible = signs.inputs_id in ("", *signs.node_inputs.values())
    if is_eligible or not others or watched_for < timedelta(seconds=30):
        return []
    sentence = (
        f"no living node has the cluster's inputs {signs.inputs_id} (they have {', '.join(others)}), so none may lead; "
        "start one that has, or run `sexton inputs accept`"
    )
    return [Condition(AlertKind.NO_ELIGIBLE_NODE, CLUSTER, signs.now, sentence)]


def _late(signs: Signs) -> list[Condition]:
    """Not while halted: then nothing starts because an operator wants it so."""
    if signs.is_halted:
        return []
    late: dict[int, Condition] = {}
    for one in signs.missed:
        if one.rules.late is not None and signs.now - one.due_at <= min(one.rules.late, MISSED_WITHIN):
            continue
        what = "a tick" if one.count == 1 else f"{one.count} ticks"
        sentence = f"job {one.job}: {what} up to {_iso(one.upto)} did not run: {one.reason}"
        late[one.job_id] = Condition(AlertKind.LATE, one.job_id, one.decided_at, sentence, one.upto, one.job)
    for waiting in signs.waiting:
        if _is_late(waiting, signs.now):
            late[waiting.job_id] = _late_condition(waiting, signs.now)
    return list(late.values())


def _is_late(one: WaitingTicks, now: datetime) -> bool:
    if one.rules.late is not None:
        return now - one.due_at > one.rules.late
    return one.is_caught_up or (one.start_by is not None and one.start_by < now)


def _late_condition(one: WaitingTicks, now: datetime) -> Condition:
    waited = _lasting(now - one.due_at)
    more = "" if one.count == 1 else f", the oldest of {one.count}"
    sentence = f"job {one.job}: tick {_iso(one.tick)} has not started {waited} after it fell due{more}"
    return Condition(AlertKind.LATE, one.job_id, one.due_at, sentence, one.tick, one.job)


def _failing(signs: Signs) -> list[Condition]:
    return [
        Condition(
            AlertKind.FAILING,
            one.job_id,
            one.since,
            f"job {one.job} failed {one.count} times in a row, the last time at tick {_iso(one.tick)}"
            if one.count > 1
            else f"job {one.job} failed at tick {_iso(one.tick)}",
            one.tick,
            one.job,
        )
        for one in signs.failures
        if one.rules.failures is not None and one.count >= one.rules.failures
    ]


def _held(one: HeldTicks) -> Condition:
    what = "a missed tick waits" if one.count == 1 else f"{one.count} missed ticks wait"
    sentence = f"job {one.job}: {what} for an answer; `sexton holds list` shows them"
    return Condition(AlertKind.HELD, one.job_id, one.since, sentence, None, one.job)


def _quarantined(one: Quarantine) -> Condition:
    sentence = f"job {one.job} is quarantined: {one.reason}"
    return Condition(AlertKind.QUARANTINED, one.job_id, one.since, sentence, None, one.job)


def _without_crowds(found: Sequence[Condition], is_open: Collection[tuple[AlertKind, int]]) -> list[Condition]:
    """Where more than ``CROWD`` jobs have the same trouble, those not told of yet are one condition, until ``REST``
    are left."""
    told: list[Condition] = []
    for kind in AlertKind:
        of_kind = [one for one in found if one.kind is kind]
        jobs = [one for one in of_kind if one.job_id != CLUSTER]
        if len(jobs) <= (REST if _is_of_jobs(kind) and (kind, CLUSTER) in is_open else CROWD):
            told += of_kind
            continue
        told += [one for one in of_kind if one.key in is_open]
        names = ", ".join(sorted(one.job for one in jobs)[:_NAMED])
        sentence = f"{len(jobs)} jobs are {kind.value}: {names}, ...; `sexton alerts` lists them"
        told.append(Condition(kind, CLUSTER, min(one.since for one in jobs), sentence))
    return told


def in_crowds(signs: Signs, limit: int) -> tuple[Condition, ...]:
    """The jobs in trouble now that no alert of their own tells of, for an open one tells of many; by kind and name."""
    is_open = {one.key for one in signs.open_alerts}
    kinds = {kind for kind in AlertKind if _is_of_jobs(kind) and (kind, CLUSTER) in is_open}
    found = conditions(signs, timedelta(0), timedelta.max) if kinds else ()
    hidden = [one for one in found if one.kind in kinds and one.key not in is_open and one.job_id != CLUSTER]
    return tuple(sorted(hidden, key=lambda one: (one.kind.value, one.job))[:limit])


def _is_of_jobs(kind: AlertKind) -> bool:
    return kind in (AlertKind.LATE, AlertKind.FAILING, AlertKind.HELD, AlertKind.QUARANTINED)


def _has_ended(one: OpenAlert) -> bool:
    return one.kind is not AlertKind.LATE or one.job_id == CLUSTER or one.has_run_since or one.is_moot


def _lasting(span: timedelta) -> str:
    """In seconds at first, then in minutes: a sentence that is kept up to date does not change with each look."""
    unit = timedelta(seconds=1) if span < timedelta(minutes=2) else timedelta(minutes=1)
    return format_duration(span // unit * unit)


def _seconds(instant: datetime) -> datetime:
    return instant.replace(microsecond=0)


def _iso(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat().replace("+00:00", "Z")
