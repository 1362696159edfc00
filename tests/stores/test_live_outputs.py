"""Output that is followed, on both databases: who may write it, when it is told of, and that none of it stays."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from sexton.claims import State
from sexton.clock import SystemClock
from sexton.output_views import LiveOutput
from sexton.store.protocol import Channel, Grant, RunResult, StepRequest, Store
from sexton.store.tables import live_outputs, runs, watches
from tests.support.claim_rows import MINUTE, ClaimRows, now

SOON = timedelta(minutes=5)


@pytest.fixture
def rows(ledger_url: str) -> Iterator[ClaimRows]:
    scene = ClaimRows(ledger_url)
    yield scene
    scene.close()


def granted(store: Store, rows: ClaimRows, worker_id: int = 1) -> Grant:
    rows.add(1)
    (grant,) = store.grants.step(StepRequest(worker_id, ("default",), 1, MINUTE, 10)).grants
    return grant


def output(token: int, text: bytes = b"out") -> LiveOutput:
    return LiveOutput(token, text, b"", len(text), 0)


def test_output_is_written_down_while_somebody_follows_and_for_whoever_holds_the_token(
    store: Store, rows: ClaimRows
) -> None:
    """Invariant 4."""
    grant = granted(store, rows)
    outputs = store.outputs
    assert outputs.write_live(1, [output(grant.token)]) == frozenset()  # nobody asked
    outputs.watch(grant.token, SOON)
    assert outputs.watched() == {grant.token}
    assert outputs.write_live(2, [output(grant.token)]) == frozenset()
    assert store.reads.live_output(grant.token) is None
    assert outputs.write_live(1, [output(grant.token), output(grant.token + 1)]) == {grant.token}
    assert outputs.write_live(1, [output(grant.token, b"out\0\xff")]) == {grant.token}
    found = store.reads.live_output(grant.token)
    assert found is not None
    assert (found.stdout, found.stderr, found.stdout_bytes) == (b"out\0\xff", b"", 5)
    rows.expire_leases([grant.token])
    store.grants.requeue_expired()
    assert outputs.write_live(1, [output(grant.token, b"late")]) == frozenset()
    found = store.reads.live_output(grant.token)
    assert found is not None
    assert found.stdout == b"out\0\xff"


def test_a_run_that_has_ended_is_written_down_no_more(store: Store, rows: ClaimRows) -> None:
    grant = granted(store, rows)
    store.outputs.watch(grant.token, SOON)
    result = RunResult(grant.job_id, grant.scheduled_at, grant.token, grant.attempt, State.LOST, now())
    store.grants.step(StepRequest(1, (), 0, MINUTE, 10, (result,)))
    assert store.outputs.write_live(1, [output(grant.token)]) == frozenset()


def test_a_watch_ends_by_itself_and_what_was_written_for_it_is_cleaned_up(store: Store, rows: ClaimRows) -> None:
    grant = granted(store, rows)
    store.outputs.watch(grant.token, SOON)
    store.outputs.write_live(1, [output(grant.token)])
    store.outputs.watch(grant.token, timedelta(0))  # never takes anything from another follower
    assert store.outputs.clean_live() == 0
    with rows.engine.begin() as connection:
        connection.execute(update(watches).values(until=now() - MINUTE))
    assert store.outputs.watched() == frozenset()
    assert store.outputs.write_live(1, [output(grant.token)]) == frozenset()
    assert store.outputs.clean_live() == 2
    assert store.reads.live_output(grant.token) is None
    with rows.engine.begin() as connection:
        assert connection.execute(select(live_outputs)).all() == []
        assert connection.execute(select(watches)).all() == []


def test_workers_are_told_of_a_new_follower_and_of_reminders(store: Store, rows: ClaimRows) -> None:
    clock = SystemClock()
    work, told = clock.wakeup(), clock.wakeup()
    listener = store.listen([Channel.WORK], work, {Channel.WATCHES: told})
    try:
        for remind in (False, False, True):
            is_new = remind or store.outputs.watched() == frozenset()
            assert clock.wait(told, 60)  # it listens, or has heard of the last one
            told.clear()
            store.outputs.watch(7, SOON, remind=remind)
            assert clock.wait(told, 60 if is_new else 0.5) is is_new
            told.set()
    finally:
        listener.close()


def test_a_run_says_where_its_whole_output_is_once_its_result_counts(store: Store, rows: ClaimRows) -> None:
    grant = granted(store, rows)
    assert not store.outputs.note_whole(grant.token, "s3://logs/a")
    result = RunResult(grant.job_id, grant.scheduled_at, grant.token, grant.attempt, State.SUCCEEDED, now())
    store.grants.step(StepRequest(1, (), 0, MINUTE, 10, (result,)))
    assert store.outputs.note_whole(grant.token, "s3://logs/a")
    with rows.engine.begin() as connection:
        assert connection.execute(select(runs.c.output_at)).scalar_one() == "s3://logs/a"
