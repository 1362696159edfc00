"""An asynchronous replica is promoted after its primary died with what it had not sent (invariants 2, 3 and 4).

What the replica never heard of happened: ticks were granted and ran. It is named, and of a job that must not run twice
nothing runs again by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime

import pytest

from sexton.claims import State
from sexton.store import open_store
from sexton.store.postgres.places import JUMP
from sexton.store.protocol import StoreOptions
from tests.support.leader_scene import rows
from tests.support.postgres import PostgresServer
from tests.support.processes import ProcessGroup
from tests.support.replica import Replica
from tests.support.trial import Trial, wait_until

WRITE = 'echo "$SEXTON_JOB $SEXTON_TICK $SEXTON_TOKEN" >>FOLDER/runs.log'
JOBS = f"""
version: 1
jobs:
  pay:
    schedule: {{every: 1s}}
    shell: {WRITE}
    on_worker_lost: fail
    overlap: queue
    missed: {{policy: all, grace: 1m, max: 1000}}
  sync:
    schedule: {{every: 1s}}
    shell: {WRITE}
    overlap: queue
    missed: {{policy: all, grace: 1m, max: 1000}}
"""


@pytest.fixture
def replica(own_postgres_server: PostgresServer) -> Iterator[Replica]:
    with Replica(own_postgres_server) as standby:
        yield standby


@pytest.fixture
def trial(processes: ProcessGroup, own_postgres_server: PostgresServer, replica: Replica) -> Iterator[Trial]:
    """A cluster that reaches whichever of the two servers accepts writes."""
    url = own_postgres_server.create_database()
    name = url.rpartition("/")[2]
    hosts = f"127.0.0.1:{own_postgres_server.port},127.0.0.1:{replica.port}"
    made = Trial(processes, f"postgresql://sexton@{hosts}/{name}?target_session_attrs=read-write")
    yield made
    made.close()


def test_what_a_promoted_replica_never_heard_of_is_named_and_not_run_twice(
    trial: Trial, own_postgres_server: PostgresServer, replica: Replica, horizon_of_promotion: str
) -> None:
    trial.apply(JOBS, {"horizon": horizon_of_promotion})
    trial.start(nodes=1, workers=1)
    name = trial.url.rpartition("/")[2].partition("?")[0]
    wait_until(lambda: len(logged(trial, "pay")) >= 3, "pay runs")
    replica.catch_up()
    replica.cut_off()
    known = len(logged(trial, "pay"))
    wait_until(lambda: len(logged(trial, "pay")) >= known + 3, "pay runs, unknown to the replica")
    old_term = trial.term()
    own_postgres_server.kill()
    ran = {tick for tick, _ in logged(trial, "pay")}
    replica.promote()
    trial.wait_for_database()
    wait_until(lambda: trial.term() > old_term + JUMP and trial.leader() is not None, "a leader beyond the jump")
    url = replica.url(name)
    since = trial.store.now()
    wait_until(lambda: [tick for tick, _ in logged(trial, "pay") if tick > since], "pay runs again")
    wait_until(lambda: not unsettled(url), "leases of before have ended")

    # Nothing of the job that must not run twice did, and each tick that ran behind the replica's back is accounted for.
    counts = Counter(tick for tick, _ in logged(trial, "pay"))
    assert [tick for tick, count in counts.items() if count > 1] == []
    pay = trial.store.edits.find_job("pay").job_id
    claims = {row.scheduled_at: row for row in rows(url, "claims", job_id=pay)}
    held = [(row.after, row.upto) for row in rows(url, "skips", job_id=pay) if row.reason == "held"]
    for tick in ran:
        claim = claims.get(tick)
        if claim is None:
            assert any(after < tick <= upto for after, upto in held), tick
        else:
            assert State(claim.state) in (State.SUCCEEDED, State.HELD, State.LOST), (tick, claim.state)
    lost = [tick for tick in ran if tick not in claims or State(claims[tick].state) is not State.SUCCEEDED]
    assert len(lost) >= 3
    with closing(open_store(StoreOptions(url))) as store:
        assert {hold.job for hold in store.reads.holds()} >= {"pay"}
        assert store.terms.cluster().term > JUMP
    (moved,) = [row for row in rows(url, "events") if row.action == "ledger.moved"]
    assert '"term": 1' in moved.detail
    # Every token given since lies beyond every one that was given before.
    tokens = [token for tick, token in logged(trial, "pay") if tick > since]
    assert min(tokens) > JUMP
    trial.audit()


def logged(trial: Trial, job: str) -> list[tuple[datetime, int]]:
    return [(datetime.fromisoformat(tick), token) for name, tick, token in trial.log() if name == job]


def unsettled(url: str) -> list[object]:
    """Claims of before the promotion that a worker seems to have still."""
    return [row for row in rows(url, "claims") if row.state == State.RUNNING and (row.token or 0) < JUMP]
