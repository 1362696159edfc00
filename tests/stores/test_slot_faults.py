"""What the races of slots would find now and then, planted and found every time: one step at a time, on PostgreSQL."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta

import pytest

from sexton.claims import Overlap, State
from sexton.job_rules import ConcurrencyKey
from sexton.store import open_store
from sexton.store.postgres import edits, pull, slot_groups
from sexton.store.postgres.edit_writes import EditWrites
from sexton.store.postgres.pull import grants_of, plan_by_index
from sexton.store.postgres.store import PostgresStore
from sexton.store.protocol import ChangeKind, JobChange, RunResult, StepRequest, Store, StoreOptions
from tests.support import leader_scene
from tests.support.claim_rows import ClaimRows, now
from tests.support.leader_scene import create, definition
from tests.support.waiting import eventually

LEASE = timedelta(minutes=10)
REQUEST = StepRequest(2, ("default",), 10, LEASE, 10)

UNLOCKED = (b"FOR UPDATE OF slots SKIP LOCKED", b"")
NO_SLOT_ROWS = (
    b"SELECT slot, number, token FROM slots WHERE slot = ANY (ARRAY(SELECT slot FROM pick WHERE overlap <> 0))\n"
    b"  FOR UPDATE OF slots SKIP LOCKED",
    b"SELECT DISTINCT slot, 1::smallint AS number,"
    b" (SELECT max(c.token) FROM claims c WHERE c.state = 1 AND c.slot = pick.slot) AS token"
    b" FROM pick WHERE overlap <> 0",
)
NO_EXCESS = (pull._EXCESS.encode(), b"0")


@pytest.fixture
def rows(postgres_ledger: str) -> Iterator[ClaimRows]:
    scene = ClaimRows(postgres_ledger)
    yield scene
    scene.close()


def plant(monkeypatch: pytest.MonkeyPatch, fault: tuple[bytes, bytes]) -> None:
    """Have the pull's statement say something else."""
    right = pull.pull_statement

    def wrong(*arguments: int, **keywords: bool) -> bytes:
        statement = right(*arguments, **keywords)
        assert fault[0] in statement
        return statement.replace(*fault)

    monkeypatch.setattr(pull, "pull_statement", wrong)


def granted_beside_a_pull(url: str, rows: ClaimRows) -> int:
    """Two due claims of one slot: a pull takes the first and has not committed when a worker steps. How many run."""
    rows.add(1)
    rows.add(1)
    first, second = (
        open_store(StoreOptions(url, answer_within=60)),
        open_store(StoreOptions(url, application="sexton second", answer_within=60)),
    )
    assert isinstance(first, PostgresStore)
    with contextlib.closing(first), contextlib.closing(second), ThreadPoolExecutor(1) as aside:
        with first.connection.transaction() as connection:
            plan_by_index(connection)
            assert len(grants_of(pull.pull(connection, 1, LEASE, 1, ("default",))).grants) == 1
            stepping = aside.submit(second.grants.step, REQUEST)
            eventually(lambda: stepping.done() or waits(rows), within=60, what="the second has decided")
        stepping.result(60)
    return rows.states()[State.RUNNING]


def waits(rows: ClaimRows) -> bool:
    """Whether the second worker waits for a lock."""
    with rows.engine.begin() as connection:
        query = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'sexton second'"
        return connection.exec_driver_sql(f"{query} AND datname = current_database()").first() is not None


def test_a_slot_that_is_being_taken_is_not_taken_again(postgres_ledger: str, rows: ClaimRows) -> None:
    assert granted_beside_a_pull(postgres_ledger, rows) == 1


@pytest.mark.parametrize("fault", [UNLOCKED, NO_SLOT_ROWS], ids=["slots not locked", "not exists (running)"])
def test_a_pull_that_trusts_what_it_did_not_lock_is_found(
    postgres_ledger: str, rows: ClaimRows, monkeypatch: pytest.MonkeyPatch, fault: tuple[bytes, bytes]
) -> None:
    plant(monkeypatch, fault)
    assert granted_beside_a_pull(postgres_ledger, rows) == 2


# --- a manual claim on its way -------------------------------------------------------------------------


def slot_of_a_claim_that_is_triggered_during_an_edit(store: Store, url: str, rows: ClaimRows) -> int:
    """A job gets a key; once the edit has moved its claims, and before it commits, somebody triggers the job."""
    (job,) = create(store, definition("a", overlap=Overlap.QUEUE))
    editor, second = (
        open_store(StoreOptions(url, answer_within=60)),
        open_store(StoreOptions(url, application="sexton second", answer_within=60)),
    )
    assert isinstance(editor, PostgresStore)
    aside: list[Future[object]] = []
    with contextlib.closing(editor), contextlib.closing(second), ThreadPoolExecutor(1) as pool:

        class Watched(EditWrites):
            def write(self, withdrawn: Mapping[int, int]) -> None:
                super().write(withdrawn)
                self._connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # however slow this is
                aside.append(pool.submit(second.edits.trigger, job.job_id, "bob"))
                eventually(lambda: aside[0].done() or waits(rows), within=60, what="the trigger has decided")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(edits, "EditWrites", Watched)
            keyed = definition("a", overlap=Overlap.QUEUE, concurrency_key=ConcurrencyKey("warehouse", 1))
            editor.edits.edit([JobChange(ChangeKind.REVISE, job.job_id, keyed)], "alice")
        aside[0].result(60)
    (claim,) = leader_scene.rows(url, "claims")
    return int(claim.slot)


def test_a_manual_claim_and_an_edit_that_moves_claims_see_each_other(
    postgres_store: Store, postgres_ledger: str, rows: ClaimRows
) -> None:
    assert slot_of_a_claim_that_is_triggered_during_an_edit(postgres_store, postgres_ledger, rows) == -1


def test_a_trigger_that_does_not_lock_its_job_is_found(
    postgres_store: Store, postgres_ledger: str, rows: ClaimRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "FOR SHARE OF j" in edits._TRIGGER
    monkeypatch.setattr(edits, "_TRIGGER", edits._TRIGGER.replace("FOR SHARE OF j", ""))
    assert slot_of_a_claim_that_is_triggered_during_an_edit(postgres_store, postgres_ledger, rows) > 0


# --- limits -------------------------------------------------------------------------------------------


def running_under_a_lowered_limit(store: Store, rows: ClaimRows) -> int:
    """Of three runs of a key whose limit is 1 now one has ended, and a fourth waits. How many run."""
    rows.add_group(1, "warehouse", 3)
    for number in range(3):
        rows.add(1 + number, slot=-1)
    (grant, *_) = store.grants.step(REQUEST).grants
    with rows.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE slot_groups SET size = 1")
    rows.add(4, slot=-1)
    key = (grant.job_id, grant.scheduled_at, grant.token, grant.attempt)
    store.grants.step(StepRequest(2, ("default",), 10, LEASE, 10, (RunResult(*key, State.SUCCEEDED, now()),)))
    return rows.states()[State.RUNNING]


@pytest.fixture
def postgres_store(postgres_ledger: str) -> Iterator[Store]:
    with contextlib.closing(open_store(StoreOptions(postgres_ledger, answer_within=60))) as one:
        yield one


def test_a_row_that_a_lowered_limit_leaves_over_is_not_taken(postgres_store: Store, rows: ClaimRows) -> None:
    assert running_under_a_lowered_limit(postgres_store, rows) == 2


def test_a_pull_that_does_not_count_rows_left_over_is_found(
    postgres_store: Store, rows: ClaimRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch, NO_EXCESS)
    assert running_under_a_lowered_limit(postgres_store, rows) == 3


def rows_after_two_trims(url: str, rows: ClaimRows) -> int:
    """Two nodes trim a group of four free rows to two, the second while the first has not committed."""
    rows.add_group(1, "warehouse", 4)
    with rows.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE slot_groups SET size = 2")
    first, second = open_store(StoreOptions(url, answer_within=60)), open_store(StoreOptions(url, answer_within=60))
    assert isinstance(first, PostgresStore)
    with contextlib.closing(first), contextlib.closing(second), first.connection.transaction() as connection:
        slot_groups.trim(connection)
        second.grants.sweep()
    return len(rows.slot_tokens(-1))


def test_two_nodes_that_trim_a_group_leave_it_its_limit(postgres_ledger: str, rows: ClaimRows) -> None:
    assert rows_after_two_trims(postgres_ledger, rows) == 2


def test_a_trim_that_does_not_lock_the_group_is_found(
    postgres_ledger: str, rows: ClaimRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlocked = slot_groups._LOCK_SIZES.replace("FOR UPDATE SKIP LOCKED", "")
    monkeypatch.setattr(slot_groups, "_LOCK_SIZES", unlocked)
    assert rows_after_two_trims(postgres_ledger, rows) == 0
