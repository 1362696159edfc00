"""PostgreSQL's clock jumps under a real cluster, and one of its nodes has a wrong clock of its own (libfaketime)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from sexton.claims import Origin
from sexton.store.tables import claims, cursors, events
from tests.support.faketime import SEXTON_UNDER_IT, FakedClock
from tests.support.postgres import PostgresServer, fresh_database
from tests.support.processes import ProcessGroup
from tests.support.trial import LONG, Trial
from tests.support.waiting import eventually, stays

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
HORIZON = 10 * SECOND
OFF = 90 * SECOND
JOBS = """\
version: 1
jobs:
  latest:
    schedule: "* * * * * *"
    missed: {policy: latest, grace: 20s}
    command: ["true"]
  all:
    schedule: "*/20 * * * * *"
    missed: {policy: all, grace: 20s, within: 2h, max: 1000}
    command: ["true"]
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer(faked_clock=True) as made:
        yield made


@pytest.fixture
def trial(server: PostgresServer, processes: ProcessGroup) -> Iterator[Trial]:
    server.set_clock(timedelta())
    with fresh_database(server) as url:
        made = Trial(processes, url)
        made.apply(JOBS, {"horizon": f"{HORIZON.seconds}s", "catch_up.hold_above": "1000"})
        yield made
        processes.end()
        made.close()


def rows(trial: Trial, query: Any) -> list[Any]:
    with trial.store.reads.snapshot() as connection:
        return list(connection.execute(query).all())


def cursors_of(trial: Trial) -> list[datetime]:
    return [row.at for row in rows(trial, select(cursors).order_by(cursors.c.job_id))]


def doubts(trial: Trial) -> set[str]:
    """The nodes that doubt the clock, as they reported it within 10 s."""
    nodes = trial.store.reads.nodes()
    return {node.name for node in nodes if node.clock_jump is not None and node.age < timedelta(seconds=10)}


def accepted(trial: Trial) -> list[str]:
    """Why jumps were accepted, oldest first."""
    found = select(events.c.detail).where(events.c.action == "clock.accepted").order_by(events.c.event_id)
    return [row.detail for row in rows(trial, found)]


def is_written_on_time(trial: Trial, since: datetime) -> bool:
    """Whether a tick after this instant has a claim that was written before the tick."""
    query = select(claims.c.scheduled_at).where(
        claims.c.scheduled_at > since,
        claims.c.written_at < claims.c.scheduled_at,
        claims.c.origin == int(Origin.SCHEDULE),
    )
    return bool(rows(trial, query.limit(1)))


def goes_on(trial: Trial, server: PostgresServer) -> None:
    """Wait until claims are written for ticks that lie ahead of a moment that is now; then the audit is clean."""
    now = trial.store.now()
    eventually(lambda: is_written_on_time(trial, now), within=LONG, what=f"claims written before ticks after {now}")
    trial.audit()


def test_a_lone_node_waits_for_the_operator_and_then_decides_the_lost_hour(
    trial: Trial, server: PostgresServer
) -> None:
    trial.start_node("one")
    trial.wait_for_node("one", role="leader")
    goes_on(trial, server)
    server.set_clock(HOUR)
    eventually(lambda: doubts(trial) == {"one"}, within=LONG, what="the node doubts the clock")
    before = cursors_of(trial)
    if not accepted(trial):  # it accepts alone after 60 s: on a very slow machine that has happened by now
        stays(lambda: cursors_of(trial) == before or accepted(trial), during=3, what="nothing is decided")
        done = trial.processes.run("clock", env=trial.environment, within=LONG)
        assert done.returncode == 1 or accepted(trial)
        status = trial.processes.run("status", env=trial.environment, within=LONG)
        assert "clock" in status.stdout or accepted(trial)
        accept = trial.processes.run("clock", "accept", env=trial.environment, within=LONG)
        assert accept.returncode == 0 or accepted(trial), accept.stderr
    eventually(lambda: accepted(trial), within=LONG, what="the jump is accepted")
    goes_on(trial, server)
    assert trial.term() == 1
    every = trial.store.edits.find_job("all")
    caught_up = select(claims).where(claims.c.job_id == every.job_id, claims.c.origin == int(Origin.CATCH_UP))
    assert 170 <= len(rows(trial, caught_up)) <= 200  # three a minute, for an hour and what the doubt took


def test_two_nodes_agree_about_a_jump_ahead_and_back_and_take_small_steps_as_they_come(
    trial: Trial, server: PostgresServer
) -> None:
    for name in ("one", "two"):
        trial.start_node(name)
        trial.wait_for_node(name)
    trial.wait_for_leader()
    goes_on(trial, server)

    server.set_clock(1.5 * SECOND)
    goes_on(trial, server)
    server.set_clock(timedelta(0))
    goes_on(trial, server)
    assert accepted(trial) == []

    jumps = 0
    for offset in (HOUR, timedelta(0)):
        before = cursors_of(trial)
        server.set_clock(offset)
        jumps += 2
        eventually(lambda: len(accepted(trial)) >= jumps, within=LONG, what="both nodes accept the jump")  # noqa: B023  asked within this turn of the loop
        assert all("a second node agrees" in why for why in accepted(trial))
        if offset:
            goes_on(trial, server)
        else:
            # Decided is decided: for the hour to come there is nothing to do, and nothing is undone.
            ahead = cursors_of(trial)
            assert all(is_ >= was for is_, was in zip(ahead, before, strict=True))
            stays(lambda: cursors_of(trial) == ahead, during=3, what="no cursor moves")  # noqa: B023  asked within this turn of the loop
            trial.audit()
    server.set_clock(HOUR)
    goes_on(trial, server)
    assert trial.term() == 1


def test_a_leader_whose_own_clock_is_wrong_decides_on_time_and_trusts_the_databases_clock_like_the_others(
    trial: Trial, server: PostgresServer, record_property: Callable[[str, object], None]
) -> None:
    clock = FakedClock(trial.folder / "wrong-clock", threads=True)
    clock.set(OFF)
    command = [sys.executable, "-c", SEXTON_UNDER_IT, "scheduler", "--name", "wrong"]
    trial.nodes["wrong"] = trial.processes.start(command, env=trial.environment | clock.environment(), name="wrong")
    trial.wait_for_node("wrong", role="leader")
    trial.start_node("right")
    trial.wait_for_node("right", role="follower")

    for offset in (OFF, -OFF):
        clock.set(offset)
        eventually(lambda: is_off(trial, "wrong", offset), within=LONG, what=f"its clock is off by {offset}")  # noqa: B023  asked within this turn of the loop
        goes_on(trial, server)
    check_not_too_early(trial)

    server.set_clock(HOUR)
    eventually(lambda: len(accepted(trial)) >= 2, within=LONG, what="both nodes accept the jump")
    assert all("a second node agrees" in why for why in accepted(trial))
    goes_on(trial, server)
    assert (trial.leader(), trial.term()) == ("wrong", 1)

    trial.nodes["wrong"].kill()
    trial.finished(trial.takeover_after(1).term)
    assert trial.leader() == "right"
    goes_on(trial, server)
    check_not_too_early(trial)
    report = trial.audit()
    record_property(
        "told",
        f"the leader's clock 90 s ahead, then 90 s behind, the database's an hour ahead: {written_late(trial)} of "
        f"{len(rows(trial, select(claims)))} claims on schedule were written after their tick; "
        f"audit: {report['due']} due, {report['decided']} decided, {len(report['differences'])} differences",
    )


def is_off(trial: Trial, name: str, offset: timedelta) -> bool:
    """Whether the node reports that its host's clock is this much ahead of the database's."""
    return any(abs(node.clock_offset + offset) < 5 * SECOND for node in trial.store.reads.nodes() if node.name == name)


def check_not_too_early(trial: Trial) -> None:
    """No claim is written longer before its tick than the horizon goes (a batch may reach a second beyond it)."""
    early = rows(trial, select(claims).where(claims.c.origin == int(Origin.SCHEDULE)))
    assert max(claim.scheduled_at - claim.written_at for claim in early) <= HORIZON + 2 * SECOND


def written_late(trial: Trial) -> int:
    query = select(claims.c.scheduled_at).where(
        claims.c.written_at > claims.c.scheduled_at, claims.c.origin == int(Origin.SCHEDULE)
    )
    return len(rows(trial, query))
