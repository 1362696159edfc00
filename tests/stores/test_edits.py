"""What operators and job files change, and from when on it counts; on both databases."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from sexton.claims import Origin, State
from sexton.decisions import Interval, NewProposal
from sexton.errors import InvalidSetting, NotFound, Refused
from sexton.job_rules import MissedRules
from sexton.store.protocol import ChangeDone, ChangeKind, JobChange, Store
from sexton.terms import Strategy
from tests.support.claim_rows import ClaimRows
from tests.support.leader_scene import (
    MINUTE,
    SECOND,
    batch,
    create,
    definition,
    lead,
    read,
    rows,
    set_columns,
    ticks_after,
)


@pytest.fixture(autouse=True)
def only_arrows(ledger_url: str) -> None:
    """Refuse every change of a claim's state that `sexton.claims.ARROWS` does not have."""
    scene = ClaimRows(ledger_url)
    scene.guard_arrows()
    scene.close()


def edit(store: Store, kind: ChangeKind, job_id: int, **values: object) -> ChangeDone:
    (done,) = store.edits.edit([JobChange(kind, job_id, **values)], "alice")  # type: ignore[arg-type]  # the dataclass checks
    return done


def test_a_new_jobs_cursor_and_revision_begin_at_its_cut(store: Store, ledger_url: str) -> None:
    """No tick of the past is invented."""
    before = store.now()
    (done,) = store.edits.edit([JobChange(ChangeKind.CREATE, definition=definition("Backup"))], "alice")
    assert before <= done.effective_at <= store.now()
    assert (done.name, done.revision, done.withdrawn) == ("Backup", 1, 0)
    job = read(store, done.job_id)
    assert (job.at, job.seq) == (done.effective_at, 0)
    (revision,) = rows(ledger_url, "revisions")
    assert (revision.in_force_since, revision.in_force_until, revision.applied_by) == (job.at, None, "alice")
    (row,) = rows(ledger_url, "jobs")
    assert (row.hash_seed, row.name_key) == ("Backup", "backup")
    (slot,) = rows(ledger_url, "slots")
    assert (slot.slot, slot.number, slot.token) == (done.job_id, 1, None)


def test_a_revision_withdraws_what_was_written_ahead_and_takes_over_at_once(store: Store, ledger_url: str) -> None:
    """Invariant 2: the cursor moves back only where its claims are deleted."""
    term = lead(store)
    (job,) = create(store, definition("a"))
    store.ticks.commit(batch(store, term, [(job, ticks_after(job, 30, step=MINUTE))]))
    done = edit(store, ChangeKind.REVISE, job.job_id, definition=definition("a", MINUTE))
    assert done.revision == 2
    left = rows(ledger_url, "claims")
    assert done.withdrawn == 30 - len(left) >= 29
    assert all(row.scheduled_at <= done.effective_at for row in left)
    now = read(store, job.job_id)
    assert (now.seq, now.at) == (job.seq + 1, done.effective_at)
    old, new = rows(ledger_url, "revisions")
    assert (old.in_force_until, new.in_force_since, new.in_force_until) == (done.effective_at, done.effective_at, None)


@pytest.mark.parametrize("state", [State.RUNNING, State.SUCCEEDED, State.READY])
def test_an_edit_counts_after_the_newest_tick_that_a_worker_had(store: Store, ledger_url: str, state: State) -> None:
    """No decided tick is repeated."""
    term = lead(store)
    (job,) = create(store, definition("a"))
    ticks = ticks_after(job, 5, step=MINUTE)
    store.ticks.commit(batch(store, term, [(job, ticks)]))
    set_columns(ledger_url, "claims", {"scheduled_at": ticks[2]}, state=int(State.RUNNING), token=1, attempt=1)
    token = None if state is State.READY else 1
    set_columns(ledger_url, "claims", {"scheduled_at": ticks[2]}, state=int(state), token=token)
    done = edit(store, ChangeKind.REVISE, job.job_id, definition=definition("a", MINUTE))
    assert (done.effective_at, done.withdrawn) == (ticks[2], 2)
    assert [row.scheduled_at for row in rows(ledger_url, "claims")] == ticks[:3]
    assert read(store, job.job_id).at == ticks[2]


def test_claims_of_other_origin_are_not_withdrawn(store: Store, ledger_url: str) -> None:
    term = lead(store)
    (job,) = create(store, definition("a"))
    ticks = ticks_after(job, 2, step=MINUTE)
    store.ticks.commit(batch(store, term, [(job, ticks)]))
    set_columns(ledger_url, "claims", {"scheduled_at": ticks[1]}, origin=int(Origin.HELD))
    edit(store, ChangeKind.REVISE, job.job_id, definition=definition("a", MINUTE))
    assert ticks[1] in {row.scheduled_at for row in rows(ledger_url, "claims")}


def test_a_rename_keeps_cursor_history_and_seed(store: Store, ledger_url: str) -> None:
    (job,) = create(store, definition("old"))
    edit(store, ChangeKind.REVISE, job.job_id, definition=definition("new"))
    found = store.edits.find_job("NEW")
    assert (found.job_id, found.name, found.revision, found.hash_seed) == (job.job_id, "new", 2, "old")
    with pytest.raises(NotFound, match="did you mean new"):
        store.edits.find_job("news")
    assert len(rows(ledger_url, "revisions")) == 2


def test_two_jobs_can_swap_their_names_in_one_edit(store: Store) -> None:
    first, second = create(store, definition("a"), definition("b"))
    store.edits.edit(
        [
            JobChange(ChangeKind.REVISE, first.job_id, definition("b")),
            JobChange(ChangeKind.REVISE, second.job_id, definition("a")),
        ],
        "alice",
    )
    assert store.edits.find_job("a").job_id == second.job_id


def test_one_refused_change_undoes_them_all(store: Store) -> None:
    first, second = create(store, definition("a"), definition("b"))
    changes = [
        JobChange(ChangeKind.REVISE, first.job_id, definition("c")),
        JobChange(ChangeKind.REVISE, second.job_id, definition("b"), expected_revision=7),
    ]
    with pytest.raises(Refused, match="'b' is at revision 1, not 7"):
        store.edits.edit(changes, "alice")
    with pytest.raises(Refused, match="named 'A' already"):
        store.edits.edit(
            [
                JobChange(ChangeKind.PAUSE, first.job_id),
                JobChange(ChangeKind.CREATE, definition=definition("A")),
            ],
            "alice",
        )
    assert [(job.name, job.revision, job.is_paused) for job in store.edits.current_jobs()] == [
        ("a", 1, False),
        ("b", 1, False),
    ]
    assert read(store, first.job_id) == first


def test_a_pause_blocks_what_waits_but_for_manual_claims(store: Store, ledger_url: str) -> None:
    term = lead(store)
    (job,) = create(store, definition("a"))
    due = [job.at - 2 * MINUTE, job.at - MINUTE]
    set_columns(ledger_url, "cursors", {"job_id": job.job_id}, at=job.at - 3 * MINUTE)
    job = read(store, job.job_id)
    store.ticks.commit(batch(store, term, [(job, [*due, job.at + timedelta(hours=1)])]))
    manual = store.edits.trigger(job.job_id, "alice")
    set_columns(ledger_url, "claims", {"scheduled_at": due[0]}, state=int(State.PARKED))
    done = edit(store, ChangeKind.PAUSE, job.job_id, why="inventory")
    assert done.withdrawn == 1
    blocked = {row.scheduled_at: row.blocked for row in rows(ledger_url, "claims")}
    assert blocked == {due[0]: True, due[1]: True, manual.scheduled_at: False}
    (row,) = rows(ledger_url, "jobs")
    assert (row.paused_at, row.paused_by, row.pause_reason) == (done.effective_at, "alice", "inventory")
    assert read(store, job.job_id).pauses == (Interval(done.effective_at, None),)
    again = edit(store, ChangeKind.PAUSE, job.job_id, why="twice")
    (pause,) = rows(ledger_url, "pauses")
    assert (pause.since, pause.until, pause.why) == (done.effective_at, None, "inventory")
    assert again.withdrawn == 0


def test_a_resume_gives_never_granted_claims_their_allowance_anew(store: Store, ledger_url: str) -> None:
    term = lead(store)
    (job,) = create(store, definition("a", missed=MissedRules(start_within=timedelta(seconds=90))))
    set_columns(ledger_url, "cursors", {"job_id": job.job_id}, at=job.at - MINUTE)
    job = read(store, job.job_id)
    fresh, granted = job.at + SECOND, job.at + 2 * SECOND
    store.ticks.commit(batch(store, term, [(job, [fresh, granted])]))
    set_columns(ledger_url, "claims", {"scheduled_at": granted}, attempt=1, start_by=None)
    paused = edit(store, ChangeKind.PAUSE, job.job_id)
    before = store.now()
    resumed = edit(store, ChangeKind.RESUME, job.job_id)
    first, second = rows(ledger_url, "claims")
    assert not first.blocked
    assert before + 90 * SECOND <= first.start_by <= store.now() + 90 * SECOND
    assert (second.blocked, second.start_by) == (False, None)
    (pause,) = rows(ledger_url, "pauses")
    assert (pause.since, pause.until) == (paused.effective_at, resumed.effective_at)
    (row,) = rows(ledger_url, "jobs")
    assert (row.paused_at, row.paused_by, row.pause_reason) == (None, None, None)


@pytest.mark.parametrize("kind", [ChangeKind.RESUME, ChangeKind.REVISE])
def test_a_quarantine_ends_by_resume_or_a_new_revision(store: Store, kind: ChangeKind) -> None:
    (job,) = create(store, definition("a"))
    assert store.ticks.quarantine(lead(store), job.job_id, "it raised")
    edit(store, kind, job.job_id, definition=definition("a", MINUTE))
    assert not read(store, job.job_id).is_quarantined


def test_enabled_false_is_a_pause_by_file(store: Store) -> None:
    created, revised = create(store, definition("a", enabled=False), definition("b"))
    assert created.pauses == (Interval(created.at, None),)
    assert created.pause_detail == "test: enabled: false"
    done = edit(store, ChangeKind.REVISE, revised.job_id, definition=definition("b", enabled=False))
    assert read(store, revised.job_id).pauses == (Interval(done.effective_at, None),)
    edit(store, ChangeKind.REVISE, created.job_id, definition=definition("a"))
    assert not store.edits.find_job("a").is_paused


def test_a_file_does_not_end_an_operators_pause(store: Store) -> None:
    (job,) = create(store, definition("a"))
    edit(store, ChangeKind.PAUSE, job.job_id, why="incident 12")
    edit(store, ChangeKind.REVISE, job.job_id, definition=definition("a", enabled=False))
    edit(store, ChangeKind.REVISE, job.job_id, definition=definition("a"))
    assert store.edits.find_job("a").is_paused


def test_retiring_ends_the_job_and_rejects_its_proposals(store: Store, ledger_url: str) -> None:
    term = lead(store)
    (job,) = create(store, definition("a"))
    ticks = ticks_after(job, 3, step=MINUTE)
    proposal = NewProposal(job.job_id, 1, job.at - MINUTE, job.at, 60, job.at, job.at + MINUTE)
    store.ticks.commit(batch(store, term, [(job, ticks)], proposals=(proposal,)))
    set_columns(ledger_url, "claims", {"scheduled_at": ticks[0]}, state=int(State.RUNNING), token=1, attempt=1)
    set_columns(ledger_url, "claims", {"scheduled_at": ticks[1]}, state=int(State.HELD))
    done = edit(store, ChangeKind.RETIRE, job.job_id, expected_revision=1)
    assert (done.effective_at, done.withdrawn) == (ticks[1], 1)
    assert [row.state for row in rows(ledger_url, "claims")] == [State.RUNNING, State.SKIPPED]
    assert [row.in_force_until for row in rows(ledger_url, "revisions")] == [ticks[1]]
    (row,) = rows(ledger_url, "proposals")
    assert (row.state, row.answered_by) == ("rejected", "alice")
    assert store.edits.current_jobs() == ()
    with pytest.raises(NotFound):
        edit(store, ChangeKind.PAUSE, job.job_id)
    create(store, definition("a"))  # the name is free again


def test_what_a_pause_held_back_is_cancelled_when_the_job_retires(store: Store, ledger_url: str) -> None:
    term = lead(store)
    (job,) = create(store, definition("a"))
    set_columns(ledger_url, "cursors", {"job_id": job.job_id}, at=job.at - MINUTE)
    job = read(store, job.job_id)
    store.ticks.commit(batch(store, term, [(job, [job.at + SECOND])]))
    edit(store, ChangeKind.PAUSE, job.job_id)
    done = edit(store, ChangeKind.RETIRE, job.job_id)
    (row,) = rows(ledger_url, "claims")
    assert (row.state, row.blocked, row.reason) == (State.CANCELLED, False, "paused when the job was retired")
    (pause,) = rows(ledger_url, "pauses")
    assert pause.until == done.effective_at


def test_every_edit_is_an_event_with_its_actor(store: Store, ledger_url: str) -> None:
    (job,) = create(store, definition("a"))
    edit(store, ChangeKind.PAUSE, job.job_id, why="inventory")
    store.edits.record("bob", "console.opened", {"from": "10.0.0.1"})
    created, paused, recorded = rows(ledger_url, "events")
    assert (created.actor, created.action, created.job_id) == ("test", "job.created", job.job_id)
    assert (paused.actor, paused.action) == ("alice", "job.paused")
    detail = json.loads(paused.detail)
    assert (detail["job"], detail["why"]) == ("a", "inventory")
    assert (recorded.action, json.loads(recorded.detail)) == ("console.opened", {"from": "10.0.0.1"})


def test_a_trigger_lies_between_the_instants_of_schedules(store: Store, ledger_url: str) -> None:
    (job,) = create(store, definition("a", queue="reports", priority=1))
    edit(store, ChangeKind.PAUSE, job.job_id)
    triggered = {store.edits.trigger(job.job_id, "alice").scheduled_at for _ in range(50)}
    assert len(triggered) == 50
    assert all(at.microsecond % 1000 for at in triggered)
    claims = rows(ledger_url, "claims")
    assert {(row.origin, row.queue, row.priority, row.blocked, row.start_by) for row in claims} == {
        (Origin.MANUAL, "reports", 1, False, None)
    }


def test_a_request_id_triggers_once(store: Store, ledger_url: str) -> None:
    first, second = create(store, definition("a"), definition("b"))
    triggered = store.edits.trigger(first.job_id, "alice", "deploy-7")
    again = store.edits.trigger(first.job_id, "alice", "deploy-7")
    assert (triggered.existed, again.existed, again.scheduled_at) == (False, True, triggered.scheduled_at)
    assert len(rows(ledger_url, "claims")) == 1
    with pytest.raises(Refused, match="used for job 'a'"):
        store.edits.trigger(second.job_id, "alice", "deploy-7")


def test_settings_are_checked_against_each_other(store: Store) -> None:
    assert store.edits.set_setting("horizon", "30s", "alice").horizon == 30 * SECOND
    assert store.edits.settings().horizon == 30 * SECOND
    with pytest.raises(InvalidSetting, match="session"):
        store.edits.set_setting("session", "28s", "alice")
    with pytest.raises(InvalidSetting, match="no setting 'colour'"):
        store.edits.set_setting("colour", "red", "alice")
    assert store.edits.settings().session == 6 * SECOND


def test_another_strategy_raises_the_term_and_ends_the_leadership(store: Store) -> None:
    term = lead(store)
    store.edits.set_setting("strategy", "leader", "alice")
    assert store.terms.cluster().term == term
    store.edits.set_setting("strategy", "race", "alice")
    state = store.terms.cluster()
    assert (state.strategy, state.term, state.leader) == (Strategy.RACE, term + 1, None)
