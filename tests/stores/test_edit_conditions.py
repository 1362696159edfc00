"""An edit stands on what its plan was made against, and asks for it in its own transaction; on both databases."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import psycopg
import pytest

from sexton.errors import MovedOn
from sexton.store.postgres import edits
from sexton.store.postgres.connection import PostgresConnection
from sexton.store.postgres.edit_routine import EditRoutine
from sexton.store.postgres.store import PostgresStore
from sexton.store.protocol import ChangeKind, EditConditions, JobChange, Store, StoreOptions
from tests.support.leader_scene import MINUTE, create, definition, rows
from tests.support.waiting import eventually


def revise(store: Store, job_id: int, name: str, **keys: object) -> None:
    new = definition(name, MINUTE, **keys)
    store.edits.edit([JobChange(ChangeKind.REVISE, job_id, definition=new)], "bob@desk")


def creation(name: str) -> JobChange:
    return JobChange(ChangeKind.CREATE, definition=definition(name))


def names(store: Store) -> list[str]:
    return [job.name for job in store.edits.current_jobs()]


def test_an_edit_whose_unchanged_jobs_are_what_they_were_is_made(store: Store) -> None:
    a, b = create(store, definition("a"), definition("b"))
    conditions = EditConditions({a.job_id: 1, b.job_id: 1}, store.terms.cluster().cluster_id, "any/1/2")
    store.edits.edit([creation("c")], "alice", conditions)
    assert names(store) == ["a", "b", "c"]


def test_a_job_revised_meanwhile_is_named_with_who_and_when_and_nothing_is_changed(store: Store) -> None:
    a, b = create(store, definition("a"), definition("b"))
    revise(store, b.job_id, "b")
    for change, conditions in (
        (creation("c"), EditConditions({a.job_id: 1, b.job_id: 1})),
        (JobChange(ChangeKind.REVISE, b.job_id, definition("x"), expected_revision=1), EditConditions()),
        (JobChange(ChangeKind.RETIRE, b.job_id, expected_revision=1), EditConditions()),
    ):
        with pytest.raises(MovedOn, match=r"job 'b' is at revision 2, not 1: bob@desk revised it at 20\S+Z; .*plan ag"):
            store.edits.edit([change], "alice", conditions)
    assert names(store) == ["a", "b"]


def test_a_job_retired_meanwhile_is_named(store: Store) -> None:
    a, b = create(store, definition("a"), definition("b"))
    store.edits.edit([JobChange(ChangeKind.RETIRE, b.job_id)], "bob@desk")
    for change, conditions in (
        (JobChange(ChangeKind.REVISE, a.job_id, definition("a", MINUTE)), EditConditions({b.job_id: 1})),
        (JobChange(ChangeKind.REVISE, b.job_id, definition("x"), expected_revision=1), EditConditions()),
    ):
        with pytest.raises(MovedOn, match="job 'b' is retired: bob@desk retired it at 20"):
            store.edits.edit([change], "alice", conditions)
    (job,) = store.edits.current_jobs()
    assert job.revision == 1


def test_a_name_taken_meanwhile_is_told_with_who_took_it(store: Store) -> None:
    create(store, definition("a"))
    with pytest.raises(MovedOn, match=r"named 'A' already.*: test created it at 20"):
        store.edits.edit([creation("b"), creation("A")], "alice")
    assert names(store) == ["a"]


def test_a_pause_by_an_operator_moves_no_job_on(store: Store) -> None:
    (a,) = create(store, definition("a"))
    store.edits.edit([JobChange(ChangeKind.PAUSE, a.job_id, why="tests")], "bob@desk")
    store.edits.edit([creation("b")], "alice", EditConditions({a.job_id: 1}))
    assert names(store) == ["a", "b"]


def test_another_cluster_is_refused(store: Store) -> None:
    with pytest.raises(MovedOn, match="made for the cluster abc, and this is the cluster"):
        store.edits.edit([creation("a")], "alice", EditConditions(cluster_id="abc"))
    assert names(store) == []


def test_other_inputs_are_refused_once_the_cluster_has_its_own(store: Store) -> None:
    """Invariant 8: the ticks that a plan showed are not those that would be."""
    others = EditConditions(inputs_id="2001a/1/0.1")
    store.edits.edit([creation("a")], "alice", others)
    store.terms.enroll("database:", "2026b/1/0.109", "2026b", 1)
    with pytest.raises(MovedOn, match=r"shows the ticks of the inputs 2001a/1/0\.1 .* cluster's are 2026b/1/0\.109"):
        store.edits.edit([creation("b")], "alice", others)
    store.edits.edit([creation("c")], "alice", EditConditions(inputs_id="2026b/1/0.109"))
    assert names(store) == ["a", "c"]


def test_an_edit_of_nothing_asks_its_conditions_and_leaves_no_trace(store: Store, ledger_url: str) -> None:
    (a,) = create(store, definition("a"))
    before = len(rows(ledger_url, "events"))
    assert store.edits.edit([], "alice", EditConditions({a.job_id: 1})) == ()
    with pytest.raises(MovedOn):
        store.edits.edit([], "alice", EditConditions({a.job_id: 2}))
    assert len(rows(ledger_url, "events")) == before


def test_an_edit_that_commits_while_this_one_is_under_way_is_seen(postgres_ledger: str) -> None:
    """A check before the edit's transaction, or at its beginning, would not see it."""
    stores = [PostgresStore(PostgresConnection(StoreOptions(postgres_ledger))) for _ in range(2)]
    mine, other = stores
    a, b = create(mine, definition("a"), definition("b"))

    class Overtaken(EditRoutine):
        def withdraw(self, effective_at: Mapping[int, datetime]) -> dict[int, int]:
            revise(other, b.job_id, "b")
            return super().withdraw(effective_at)

    mine.edits.routine = Overtaken
    change = JobChange(ChangeKind.REVISE, a.job_id, definition("a", MINUTE), expected_revision=1)
    with pytest.raises(MovedOn, match="'b' is at revision 2, not 1"):
        mine.edits.edit([change], "alice", EditConditions({b.job_id: 1}))
    assert [job.revision for job in other.edits.current_jobs()] == [1, 2]
    for store in stores:
        store.close()


def test_of_two_edits_that_stand_on_each_other_s_jobs_one_is_refused(
    postgres_ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would see the other's job unchanged, if it looked before it holds the lock under which edits commit."""
    stores = [PostgresStore(PostgresConnection(StoreOptions(postgres_ledger))) for _ in range(2)]
    mine, other = stores
    a, b = create(mine, definition("a"), definition("b"))
    refused: list[MovedOn] = []

    def overtake() -> None:
        try:
            other.edits.edit([JobChange(ChangeKind.RETIRE, b.job_id)], "bob@desk", EditConditions({a.job_id: 1}))
        except MovedOn as error:
            refused.append(error)

    second = threading.Thread(target=overtake)
    check = edits._check_unchanged

    def checked_and_overtaken(*arguments: Any) -> None:
        check(*arguments)
        if not second.ident:
            second.start()
            waits = (
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            with psycopg.connect(postgres_ledger.replace("+psycopg", ""), autocommit=True) as onlooker:
                eventually(
                    lambda: not second.is_alive() or onlooker.execute(waits).fetchone() != (0,),
                    60,
                    "it waits, or ended",
                )

    monkeypatch.setattr(edits, "_check_unchanged", checked_and_overtaken)
    mine.edits.edit([JobChange(ChangeKind.RETIRE, a.job_id)], "alice", EditConditions({b.job_id: 1}))
    second.join(60)
    assert names(mine) == ["b"]
    assert [error.job_id for error in refused] == [a.job_id]
    for store in stores:
        store.close()
