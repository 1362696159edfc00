"""A job that an older release would not understand is not left to it: docs/decisions/0018."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import bindparam, insert, select, update

from sexton.claims import Overlap
from sexton.errors import OldSchema, Refused, YoungerFormat
from sexton.job_formats import FORMAT, needed_format
from sexton.job_rules import ConcurrencyKey, Limits
from sexton.jobs import JobDefinition
from sexton.store.protocol import ChangeKind, JobChange, Store, WorkerChoice
from sexton.store.schema import check_job_format
from sexton.store.tables import Instant, cluster, events, nodes, workers
from sexton.targets import CommandTarget, HttpTarget
from sexton.terms import NodeReport
from tests.support.claim_rows import MINUTE, ClaimRows, now

SAID_SO = (sqlalchemy.exc.DBAPIError,)


@pytest.fixture
def rows(ledger_url: str) -> Iterator[ClaimRows]:
    scene = ClaimRows(ledger_url)
    yield scene
    scene.close()


def a_job(**keys: Any) -> JobDefinition:
    return JobDefinition(**{"name": "payroll", "schedule_parts": ({"cron": "@daily"},), "target": TRUE, **keys})


TRUE = CommandTarget(("true",))
YOUNG = (
    {"limits": Limits(memory=1 << 30)},
    {"concurrency_key": ConcurrencyKey("db"), "overlap": Overlap.QUEUE},
    {"queue_limit": 5},
    {"overlap": Overlap.REPLACE},
    {"target": HttpTarget("https://example.com")},
    {"env": {"PASSWORD": "${secret:db}"}},
)


def create(store: Store, **keys: Any) -> None:
    store.edits.edit([JobChange(ChangeKind.CREATE, definition=a_job(**keys))], "mary@vm")


def register_older(rows: ClaimRows, name: str = "old") -> None:
    """As a release does that has never heard of formats."""
    row = {"name": name, "address": "vm", "version": "0.0.9", "pid": 1, "queues": '["default"]', "slots": 1}
    with rows.engine.begin() as connection:
        connection.execute(insert(workers).values(**row, started_at=now(), seen_at=now()))


@pytest.mark.parametrize("keys", YOUNG, ids=lambda keys: next(iter(keys)))
def test_what_an_older_release_does_not_know_needs_the_younger_format(keys: dict[str, Any]) -> None:
    job = a_job(**keys)
    assert needed_format(job)[0] == 2
    assert JobDefinition.from_text(job.to_text()) == job
    assert needed_format(a_job()) == (1, "")


def test_a_younger_format_is_said_to_be_one() -> None:
    text = a_job().to_text().replace("{", f'{{"format":{FORMAT + 1},', 1)
    with pytest.raises(YoungerFormat, match=f"job 'payroll' has the format {FORMAT + 1}, and this Sexton knows"):
        JobDefinition.from_text(text)


@pytest.mark.parametrize("keys", YOUNG[:2], ids=lambda keys: next(iter(keys)))
def test_an_edit_that_older_processes_would_not_understand_is_refused_while_they_are_at_work(
    store: Store, rows: ClaimRows, keys: dict[str, Any]
) -> None:
    register_older(rows)
    store.grants.register("young", "vm", "0.1.0", 2, ["default"], 1)
    create(store, name="plain")
    with pytest.raises(Refused, match=r"job payroll \(.*\) needs a younger Sexton than old \(Sexton 0.0.9\), heard of"):
        create(store, **keys)
    with rows.engine.begin() as connection:
        connection.execute(update(workers).values(seen_at=now() - 11 * MINUTE))
    create(store, **keys)


def test_a_rule_of_a_queue_is_refused_where_an_older_worker_would_not_keep_it(store: Store, rows: ClaimRows) -> None:
    register_older(rows)
    with pytest.raises(Refused, match=r"a rule for queue gpu needs a younger Sexton than old"):
        store.edits.set_queue_rule("gpu", {"slots": "2"}, "mary@vm")


def test_an_older_worker_is_said_not_to_heed_a_drain_and_is_not_asked(store: Store, rows: ClaimRows) -> None:
    register_older(rows)
    store.grants.register("young", "vm", "0.1.0", 2, ["default"], 1)
    done = store.operations.drain(WorkerChoice(queue="default"), "mary@vm")
    assert [(one.name, one.heeds, one.changed) for one in done] == [("old", False, False), ("young", True, True)]
    assert store.operations.drain(WorkerChoice(name="old"), "mary@vm")[0].event is None
    with rows.engine.connect() as connection:
        asked = connection.execute(select(workers.c.name).where(workers.c.drain_requested)).scalars().all()
        told = connection.execute(select(events.c.action).where(events.c.action.like("workers.%"))).scalars().all()
    assert (asked, told) == (["young"], ["workers.asked_to_drain"])


def test_an_older_node_keeps_a_younger_job_out(store: Store, rows: ClaimRows) -> None:
    row = {"name": "n1", "address": "vm", "version": "0.0.9", "pid": 1, "role": "leader", "coordinator_status": ""}
    numbers = {"jobs_warm": 0, "behind_ms": 0, "clock_offset_ms": 0, "inputs_id": ""}
    with rows.engine.begin() as connection:
        connection.execute(insert(nodes).values(**row, **numbers, started_at=now(), seen_at=now()))
    with pytest.raises(Refused, match=r"than n1 \(Sexton 0.0.9\)"):
        create(store, **YOUNG[0])


OLDER_REPORT = """
INSERT INTO nodes (name, address, version, pid, role, coordinator_status, jobs_warm, behind_ms, clock_offset_ms,
  inputs_id, started_at, seen_at)
VALUES (:name, :address, :version, :pid, 'leader', '', 0, 0, 0, '', :now, :now)
ON CONFLICT (name) DO UPDATE SET address = excluded.address, version = excluded.version, pid = excluded.pid,
  role = excluded.role, seen_at = excluded.seen_at
"""


def test_an_older_node_that_took_the_name_of_a_younger_one_keeps_a_younger_job_out(
    store: Store, rows: ClaimRows
) -> None:
    young = NodeReport("n1", "vm", "0.1.0", 1, "leader", None, "", 0, 0, 0, None, "")
    store.terms.report(young)
    # In a container the process has the same number on the same machine.
    report = sqlalchemy.text(OLDER_REPORT).bindparams(bindparam("now", now(), type_=Instant))
    with rows.engine.begin() as connection:
        connection.execute(report, {"name": "n1", "address": "vm", "version": "0.1.0", "pid": 1})
    with pytest.raises(Refused, match="needs a younger Sexton than n1"):
        create(store, **YOUNG[0])
    store.terms.report(young)
    create(store, **YOUNG[0])


def test_an_older_worker_is_admitted_until_a_job_needs_a_younger_one(store: Store, rows: ClaimRows) -> None:
    register_older(rows)
    with rows.engine.begin() as connection:
        connection.execute(update(workers).values(stopped_at=now()))
    create(store, **YOUNG[0])
    with pytest.raises(SAID_SO, match="jobs of this cluster need a younger Sexton"):
        register_older(rows, "again")
    assert store.grants.register("young", "vm", "0.1.0", 2, ["default"], 1)


def test_a_release_that_knows_too_little_neither_decides_nor_runs(
    store: Store, rows: ClaimRows, ledger_url: str
) -> None:
    check_job_format(ledger_url)
    with rows.engine.begin() as connection:
        assert connection.execute(select(cluster.c.job_format)).scalar_one() == 1
        connection.execute(update(cluster).values(job_format=FORMAT + 1))
    with pytest.raises(OldSchema, match=f"have the format {FORMAT + 1}, and this Sexton knows {FORMAT}"):
        check_job_format(ledger_url)
