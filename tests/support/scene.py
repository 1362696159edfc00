"""One reproducible scene: a cluster just after a takeover, with things that need a human, written through the tables.

Everything in it follows from `now`: two seeds with the same `now` write the same rows, so that screens and pictures
made from it are the same byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, insert

from sexton.claims import Origin, Overlap, State
from sexton.job_rules import MissedPolicy, MissedRules
from sexton.jobs import JobDefinition
from sexton.store import tables
from sexton.targets import CommandTarget

NOW = datetime(2026, 3, 29, 2, 30, 41, 250_000, tzinfo=UTC)
TAKEOVER_AT = datetime(2026, 3, 29, 2, 13, 7, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
SERVERS = (("zk1:2181", "follower"), ("zk2:2181", "leader"), ("zk3:2181", "follower"))
HOSTILE_NAME = "a [/x] b\x1b[2J\u202e[@click=app.quit]x"


@dataclass(frozen=True, slots=True)
class SceneJob:
    """A job of the scene; the others' keys have their defaults."""

    job_id: int
    definition: JobDefinition
    paused: str = ""
    quarantined: str = ""


def _job(job_id: int, name: str, part: dict[str, Any], **keys: Any) -> SceneJob:
    marks = {key: keys.pop(key) for key in ("paused", "quarantined") if key in keys}
    definition = JobDefinition(name=name, schedule_parts=(part,), target=CommandTarget(("true",)), **keys)
    return SceneJob(job_id, definition, **marks)


def scene_jobs() -> tuple[SceneJob, ...]:
    epoch = "1970-01-01T00:00:00Z"
    return (
        _job(1, "heartbeat-ping", {"every_ms": 1000, "anchor": epoch}, overlap=Overlap.QUEUE, tags=("infra",)),
        _job(2, "minutely-sync", {"cron": "* * * * *"}, owner="data"),
        _job(3, "nightly-billing", {"cron": "0 2 * * *"}, owner="payroll", timezone="UTC", tags=("money",)),
        _job(4, "gl-export", {"cron": "*/5 * * * *"}, owner="payroll", missed=MissedRules(policy=MissedPolicy.HOLD)),
        _job(5, "sync-eu", {"cron": "*/5 * * * *"}, timezone="Europe/Berlin", owner="data"),
        _job(6, "train-model", {"cron": "*/10 * * * *"}, queue="gpu", owner="research", tags=("ml", "gpu")),
        _job(7, "backup-db", {"cron": "0 3 * * *"}, paused="storage moves tonight", owner="infra"),
        _job(8, "broken-feed", {"cron": "*/2 * * * *"}, quarantined="next tick took longer than 2 s", owner="data"),
        _job(9, "weekly-report", {"cron": "0 6 * * MON"}, queue="reports", timezone="Europe/Berlin"),
    )


def seed(connection: Connection, now: datetime = NOW, *, hostile: bool = False) -> None:
    """Write the scene into a database that has the tables; `hostile` adds a job whose every text is an attack."""
    for table in (tables.cluster, tables.heartbeat, tables.budget):
        connection.execute(delete(table))
    jobs = scene_jobs()
    if hostile:
        name = HOSTILE_NAME
        jobs += (_job(10, name, {"cron": "* * * * *"}, owner=name, description=name, tags=(name,)),)
    _seed_cluster(connection, now)
    for job in jobs:
        _seed_job(connection, job, now)
    _insert(connection, tables.runs, _runs(now))
    _insert(connection, tables.outputs, _outputs(now))
    _insert(connection, tables.claims, [*_ended_claims(now), *_open_claims(now)])
    _seed_takeovers(connection, now)
    _seed_events(connection, now)
    if hostile:
        _seed_hostile(connection, now)


def _insert(connection: Connection, table: Any, rows: list[dict[str, Any]]) -> None:
    if rows:
        connection.execute(insert(table), rows)


def _seed_cluster(connection: Connection, now: datetime) -> None:
    since = now - (NOW - TAKEOVER_AT)
    connection.execute(
        insert(tables.cluster).values(
            id=1,
            cluster_id="5f0c",
            term=41,
            leader="sched-2",
            leader_since=since,
            elected_by="zookeeper",
            coordinator="zookeeper://zk1:2181,zk2:2181,zk3:2181/sexton",
            inputs_id="2026b/1",
        )
    )
    beat = {"id": 1, "term": 41, "counter": 1054, "at": now - timedelta(milliseconds=300)}
    connection.execute(insert(tables.heartbeat).values(confirmation="confirmed", timeline="00000001", **beat))
    connection.execute(insert(tables.budget).values(id=1, next_at=now))
    for name, value in (("swallowed", 0), ("stale_results", 0), ("stale_commits", 1), ("lost_races", 3)):
        connection.execute(insert(tables.counters).values(name=name, value=value))
    for name, role, behind_ms, offset_ms in (
        ("sched-1", "follower", 200, 1),
        ("sched-2", "leader", 0, 0),
        ("sched-3", "follower", 100, -3),
    ):
        leads = role == "leader"
        connection.execute(
            insert(tables.nodes).values(
                name=name,
                address=f"10.0.0.{name[-1]}:7000",
                version="0.1.0",
                pid=4000 + int(name[-1]),
                role=role,
                confirmation="confirmed" if leads else None,
                coordinator_status="session 0x1a, 6s, connected to zk1:2181",
                coordinator_servers=json.dumps(SERVERS),
                jobs_warm=9,
                behind_ms=behind_ms,
                clock_offset_ms=offset_ms,
                claims_upto=now + MINUTE if leads else None,
                inputs_id="2026b/1",
                started_at=now - timedelta(hours=9),
                seen_at=now - timedelta(milliseconds=700),
            )
        )
    for worker_id, queues, slots, busy in ((1, ["default"], 4, 2), (2, ["default", "reports"], 4, 1)):
        connection.execute(
            insert(tables.workers).values(
                worker_id=worker_id,
                name=f"worker-{worker_id}",
                address="10.0.1.1",
                version="0.1.0",
                pid=5000 + worker_id,
                queues=json.dumps(queues),
                slots=slots,
                busy=busy,
                started_at=now - timedelta(hours=5),
                seen_at=now - SECOND,
            )
        )


def _seed_job(connection: Connection, job: SceneJob, now: datetime) -> None:
    definition, applied = job.definition, now - timedelta(days=2)
    connection.execute(
        insert(tables.jobs).values(
            job_id=job.job_id,
            name=definition.name,
            name_key=definition.name.lower(),
            hash_seed=definition.name,
            revision=1,
            created_at=applied,
            paused_at=now - timedelta(hours=3) if job.paused else None,
            paused_by="ana" if job.paused else None,
            pause_reason=job.paused or None,
            quarantined_at=now - timedelta(minutes=40) if job.quarantined else None,
            quarantine_reason=job.quarantined or None,
            changed=job.job_id,
        )
    )
    connection.execute(
        insert(tables.revisions).values(
            job_id=job.job_id,
            revision=1,
            definition=definition.to_text(),
            schedule=definition.schedule_text(definition.name),
            firing=definition.firing_text(definition.name),
            inputs_id="2026b/1",
            in_force_since=applied,
            applied_at=applied,
            applied_by="ana",
        )
    )
    if job.paused:
        connection.execute(
            insert(tables.pauses).values(job_id=job.job_id, since=now - timedelta(hours=3), who="ana", why=job.paused)
        )
    connection.execute(insert(tables.cursors).values(job_id=job.job_id, at=now + MINUTE, seq=1))


# --- runs and claims ------------------------------------------------------------------------------


def _minute(now: datetime) -> datetime:
    return now.replace(second=0, microsecond=0)


def _starts(now: datetime) -> Iterator[tuple[int, datetime, int]]:
    """(job, tick, lateness in ms) of the last half hour, in the order of ticks; what the takeover merged has no run."""
    start = _minute(now) - 30 * MINUTE
    taken_over = now - (NOW - TAKEOVER_AT)
    newest_missed = _minute(taken_over)
    tick = start
    while tick < now - 2 * SECOND:
        number = round((tick - start) / SECOND)
        late = 3 + (number * 7919) % 11 + (28 if number % 97 == 0 else 0)
        if abs(tick - taken_over) < 20 * SECOND:
            late += 400 - 10 * int(abs(tick - taken_over) / SECOND)
        if number % 10 == 0:
            yield 1, tick, late
        if tick == newest_missed - 13 * MINUTE:
            yield 3, tick, (taken_over - tick) // timedelta(milliseconds=1) + 40
        if tick.second == 0:
            if not newest_missed - 13 * MINUTE < tick < newest_missed:
                yield 2, tick, late + 2
            if tick.minute % 5 == 0:
                yield 5, tick, late + 4
        tick += SECOND


def _runs(now: datetime) -> list[dict[str, Any]]:
    rows = []
    for token, (job_id, tick, late) in enumerate(_starts(now), start=1000):
        started = tick + timedelta(milliseconds=late)
        fails = job_id == 5
        rows.append(
            {
                "token": token,
                "job_id": job_id,
                "scheduled_at": tick,
                "attempt": 1,
                "revision": 1,
                "worker_id": 1 + token % 2,
                "outcome": int(State.FAILED if fails else State.SUCCEEDED),
                "exit_code": 7 if fails else 0,
                "error": "exit code 7: connection refused by db-eu [primary]" if fails else None,
                "started_at": started,
                "finished_at": started + timedelta(milliseconds=90 + (token * 31) % 700),
                "lateness_ms": late,
                "stdout_bytes": 120 if fails else 17,
                "stderr_bytes": 52 if fails else 0,
            }
        )
    return rows


def _outputs(now: datetime) -> list[dict[str, Any]]:
    return [
        {
            "token": run["token"],
            "stdout": b"connecting to db-eu\n\x1b[31mretry\x1b[0m 1\nretry 2\n",
            "stderr": b"connection refused\n",
        }
        for run in _runs(now)
        if run["job_id"] == 5
    ]


def _claim(job_id: int, tick: datetime, state: State, **keys: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "job_id": job_id,
        "scheduled_at": tick,
        "revision": 1,
        "origin": int(Origin.SCHEDULE),
        "state": int(state),
        "queue": {6: "gpu", 9: "reports"}.get(job_id, "default"),
        "priority": 0,
        "overlap": int(Overlap.SKIP),
        "slot": job_id,
        "available_at": tick,
        "at_most_once": False,
        "term": 41,
        "written_at": tick - MINUTE,
        "attempt": 0,
        "token": None,
        "worker_id": None,
        "granted_at": None,
        "started_at": None,
        "finished_at": None,
        "lease_expires_at": None,
        "reason": None,
    }
    return {**row, **keys}


def _ended_claims(now: datetime) -> list[dict[str, Any]]:
    return [
        _claim(
            run["job_id"],
            run["scheduled_at"],
            State(run["outcome"]),
            attempt=1,
            token=run["token"],
            worker_id=run["worker_id"],
            granted_at=run["started_at"],
            started_at=run["started_at"],
            finished_at=run["finished_at"],
        )
        for run in _runs(now)
    ]


def _open_claims(now: datetime) -> list[dict[str, Any]]:
    minute = _minute(now)
    rows = [_claim(1, minute + (41 + ahead) * SECOND, State.READY) for ahead in range(1, 61, 10)]
    rows.append(_claim(2, minute + MINUTE, State.READY))
    rows += [_claim(6, minute - 10 * late * MINUTE, State.READY) for late in range(3)]
    for job_id, seconds, token in ((1, 2, 9001), (3, 90, 9002), (9, 700, 9003)):
        tick = (now - seconds * SECOND).replace(microsecond=250_000)  # beside the ticks of the runs
        held = {"attempt": 1, "token": token, "worker_id": 1 + token % 2, "granted_at": tick}
        rows.append(_claim(job_id, tick, State.RUNNING, started_at=tick, lease_expires_at=now + 20 * SECOND, **held))
    rows.append(_claim(3, now - 30 * SECOND, State.PARKED))
    return rows


# --- takeovers and events -------------------------------------------------------------------------


def _seed_takeovers(connection: Connection, now: datetime) -> None:
    taken = now - (NOW - TAKEOVER_AT)
    gap = timedelta(minutes=12, seconds=40)
    for term, node, at, ended, lost in (
        (39, "sched-3", taken - timedelta(hours=30), "resigned", timedelta(milliseconds=12)),
        (40, "sched-1", taken - timedelta(hours=9), "vanished", 7 * SECOND),
        (41, "sched-2", taken, "vanished", gap),
    ):
        connection.execute(
            insert(tables.takeovers).values(
                term=term,
                node=node,
                elected_by="zookeeper",
                taken_at=at,
                predecessor={39: "sched-2", 40: "sched-3", 41: "sched-1"}[term],
                predecessor_ended=ended,
                gap_from=at - lost,
                gap_until=at + timedelta(milliseconds=40),
                planning_ms=3.5,
                jobs=9,
            )
        )
    first = _minute(taken) - 12 * MINUTE
    for job_id, after, upto, policy, counts, reason in (
        (3, first - 2 * MINUTE, first - MINUTE, "latest", (1, 1, 0, 0), "latest: 02:00:00 fired 13m07s late"),
        (2, first - MINUTE, first + 12 * MINUTE, "latest", (13, 1, 12, 0), "latest: 02:13:00 fired, 12 merged into it"),
        (4, first, first + 9 * MINUTE, "hold", (2, 0, 0, 2), "hold: older than grace 60s, waits for an operator"),
    ):
        missed, fired, merged, held = counts
        common = {"job_id": job_id, "after": after, "upto": upto, "revision": 1, "term": 41, "decided_at": taken}
        connection.execute(
            insert(tables.decisions).values(
                cause="takeover",
                policy=policy,
                missed=missed,
                fired=fired,
                merged=merged,
                skipped=0,
                expired=0,
                held=held,
                reason=reason,
                **common,
            )
        )
        if merged or held:
            kind = "merged" if merged else "held"
            skipped = {**common, "upto": upto - MINUTE} if merged else common  # the newest fires
            connection.execute(insert(tables.skips).values(count=merged + held, reason=kind, detail=reason, **skipped))
        if held:
            proposal = {key: common[key] for key in ("job_id", "after", "upto", "revision", "term")}
            made = {"made_at": taken, "lapses_at": taken + timedelta(days=7), "within_from": after}
            connection.execute(insert(tables.proposals).values(proposal_id=1, count=held, **made, **proposal))


def _seed_events(connection: Connection, now: datetime) -> None:
    taken = now - (NOW - TAKEOVER_AT)
    for event_id, at, actor, action, job_id, detail in (
        (1, now - timedelta(days=2), "ana", "job.applied", 5, {"revision": 1}),
        (2, now - timedelta(hours=3), "ana", "job.paused", 7, {"why": "storage moves tonight"}),
        (3, now - timedelta(minutes=40), "sched-1", "job.quarantined", 8, {"reason": "next tick took longer than 2 s"}),
        (4, taken, "sched-2", "term.taken", None, {"term": 41, "predecessor": "sched-1"}),
    ):
        row = {"event_id": event_id, "at": at, "actor": actor, "action": action, "job_id": job_id}
        connection.execute(insert(tables.events).values(detail=json.dumps(detail), **row))


def _seed_hostile(connection: Connection, now: datetime) -> None:
    """A run, its output, a decision and an event made of the hostile text."""
    tick = _minute(now)
    run = {"token": 9999, "job_id": 10, "scheduled_at": tick, "attempt": 1, "revision": 1, "worker_id": 1}
    ended = {"started_at": tick, "finished_at": now - SECOND, "lateness_ms": 5, "exit_code": 1}
    connection.execute(insert(tables.runs).values(outcome=int(State.FAILED), error=HOSTILE_NAME, **run, **ended))
    data = HOSTILE_NAME.encode() + b"\xff\n\x1b]0;owned\x07"
    connection.execute(insert(tables.outputs).values(token=9999, stdout=data, stderr=data))
    claim = _claim(10, tick, State.FAILED, token=9999, reason=HOSTILE_NAME, worker_id=1, finished_at=now)
    connection.execute(insert(tables.claims).values(**claim))
    counts = {"missed": 1, "fired": 0, "merged": 0, "skipped": 1, "expired": 0, "held": 0}
    decided = {"job_id": 10, "after": tick - MINUTE, "upto": tick, "revision": 1, "term": 41, "decided_at": now}
    text = {"cause": "takeover", "policy": "skip", "reason": HOSTILE_NAME}
    connection.execute(insert(tables.decisions).values(**counts, **decided, **text))
    detail = json.dumps({HOSTILE_NAME: HOSTILE_NAME})
    event = {"event_id": 5, "at": now, "actor": HOSTILE_NAME, "action": HOSTILE_NAME, "job_id": 10}
    connection.execute(insert(tables.events).values(detail=detail, **event))
