"""An edit of many jobs: what takes long is done before anybody waits for it, and before the server waits for it."""

from __future__ import annotations

import pytest
from psycopg.types.array import ListDumper
from sqlalchemy import create_engine, text

from sexton.errors import DatabaseUnreachable
from sexton.jobs import JobDefinition
from sexton.store import open_store
from sexton.store.postgres.store import PostgresStore
from sexton.store.protocol import ChangeKind, JobChange, Store, StoreOptions
from tests.stores.conftest import OpenAnother
from tests.support.leader_scene import create, definition, read, rows
from tests.support.waiting import eventually


def test_nobody_waits_while_definitions_are_written(
    store: Store, open_another: OpenAnother, monkeypatch: pytest.MonkeyPatch, ledger_url: str
) -> None:
    """PostgreSQL ends a transaction whose client computes for two seconds; on SQLite it would hold the one lock."""
    (job,) = create(store, definition("a"))
    other, to_text = open_another(answer_within=2), JobDefinition.to_text

    def slow(self: JobDefinition) -> str:
        other.edits.trigger(job.job_id, "bob")
        return to_text(self)

    monkeypatch.setattr(JobDefinition, "to_text", slow)
    changes = [
        JobChange(ChangeKind.REVISE, job.job_id, definition("a")),
        JobChange(ChangeKind.CREATE, None, definition("b")),
    ]
    store.edits.edit(changes, "alice")
    assert len(rows(ledger_url, "claims")) == 2


def test_a_seed_that_changed_while_definitions_were_written_is_the_one_that_counts(
    store: Store, open_another: OpenAnother, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job,) = create(store, definition("a", hash_seed="one"))
    other, to_text, others = open_another(), JobDefinition.to_text, [definition("a", hash_seed="two")]

    def slow(self: JobDefinition) -> str:
        if others:
            other.edits.edit([JobChange(ChangeKind.REVISE, job.job_id, others.pop())], "bob")
        return to_text(self)

    monkeypatch.setattr(JobDefinition, "to_text", slow)
    hashed = JobDefinition("a", ({"cron": "H * * * *"},), definition("a").target)
    store.edits.edit([JobChange(ChangeKind.REVISE, job.job_id, hashed)], "alice")
    assert '"hash_seed":"two"' in read(store, job.job_id).revisions[-1].schedule


def test_an_edit_sends_no_text_the_slow_way(postgres_ledger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """psycopg escapes the items of a list one by one, in the middle of the transaction: a second for 5,000 jobs."""
    slow, dump = list[object](), ListDumper.dump

    def watched(self: ListDumper, obj: list[object]) -> object:
        slow.extend(item for item in obj if isinstance(item, str))
        return dump(self, obj)

    monkeypatch.setattr(ListDumper, "dump", watched)
    store = open_store(StoreOptions(postgres_ledger))
    store.edits.edit([JobChange(ChangeKind.CREATE, definition=definition(name)) for name in ("a", "b")], "alice")
    store.close()
    assert slow == []


def test_a_step_that_stood_still_for_too_long_does_not_blame_the_server(postgres_ledger: str) -> None:
    store = open_store(StoreOptions(postgres_ledger, application="sexton still"))
    assert isinstance(store, PostgresStore)
    connection = store.connection
    engine = create_engine(postgres_ledger.replace("postgresql://", "postgresql+psycopg://", 1))
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sexton still'"

    def is_gone() -> bool:
        with engine.begin() as connection:
            return connection.execute(text(query)).scalar() == 0

    def stand_still_and_go_on() -> None:
        eventually(is_gone, within=60, what="the server has ended the transaction")
        with connection.autocommit() as session:
            session.execute("SELECT 1")

    said = r"in whose middle this process stood still.*; nothing of the step"
    with (
        pytest.raises(DatabaseUnreachable, match=said),
        store.connection.transaction("SET LOCAL idle_in_transaction_session_timeout = '10ms'"),
    ):
        stand_still_and_go_on()
    engine.dispose()
    store.close()
