"""The leader's commit: per job all or nothing, and nothing at all from a stale leader; on both databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from sexton.claims import OnWorkerLost, Origin, Overlap, State
from sexton.clock import SystemClock
from sexton.decisions import (
    Cause,
    GrowingSkip,
    Interval,
    JobDecision,
    NewProposal,
    NewSkip,
    SkipReason,
    UnfinishedPass,
)
from sexton.job_rules import FiringRules
from sexton.store.protocol import ChangeKind, Channel, JobChange, JobRow, Store
from tests.support.claim_rows import ClaimRows
from tests.support.leader_scene import (
    MINUTE,
    SECOND,
    batch,
    claim,
    create,
    definition,
    lead,
    move,
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


def skip(job: JobRow, upto: timedelta, count: int, **values: object) -> NewSkip:
    new = NewSkip(job.job_id, job.at, job.at + upto, count, SkipReason.SKIPPED, "older than 1m", 1)
    return replace(new, **values)  # type: ignore[arg-type]  # checked by the dataclass


def decision(job: JobRow, **values: object) -> JobDecision:
    new = JobDecision(
        job.job_id, 1, Cause.TAKEOVER, job.at, job.at + MINUTE, "latest", 60, 1, 59, 0, 0, 0, "59 merged into the last"
    )
    return replace(new, **values)  # type: ignore[arg-type]  # checked by the dataclass


def test_several_ticks_of_a_job_are_one_move_and_a_claim_each(store: Store, ledger_url: str) -> None:
    term = lead(store)
    first, second = create(store, definition("a"), definition("b"))
    ticks = ticks_after(first, 10)
    result = store.ticks.commit(batch(store, term, [(second, ticks[:1]), (first, ticks)]))
    assert (result.is_current, result.is_fresh, result.moved, result.swallowed, result.not_moved) == (
        True,
        True,
        2,
        0,
        (),
    )
    written = rows(ledger_url, "claims", job_id=first.job_id)
    assert [row.scheduled_at for row in written] == ticks
    assert {(row.state, row.origin, row.attempt, row.term, row.slot, row.blocked) for row in written} == {
        (State.READY, Origin.SCHEDULE, 0, term, first.job_id, False)
    }
    assert len(rows(ledger_url, "claims", job_id=second.job_id)) == 1
    assert read(store, first.job_id).at == ticks[-1]
    assert read(store, second.job_id).at == ticks[0]


def test_a_claim_carries_what_its_job_says_of_firing(store: Store, ledger_url: str) -> None:
    term = lead(store)
    (job,) = create(store, definition("a"))
    (at,) = ticks_after(job, 1)
    firing = FiringRules("reports", 2, Overlap.QUEUE, on_worker_lost=OnWorkerLost.FAIL)
    new = claim(
        job,
        at,
        firing=firing,
        origin=Origin.CATCH_UP,
        available_at=at + MINUTE,
        start_by=None,
        jitter=timedelta(milliseconds=1500),
    )
    before = store.now()
    assert store.ticks.commit(batch(store, term, [(job, [at])], claims=(new,))).moved == 1
    (row,) = rows(ledger_url, "claims")
    assert (row.queue, row.priority, row.overlap, row.at_most_once) == ("reports", 2, Overlap.QUEUE, True)
    assert (row.origin, row.available_at, row.start_by, row.jitter_ms) == (Origin.CATCH_UP, at + MINUTE, None, 1500)
    assert before <= row.written_at <= store.now()


def test_a_stale_term_writes_nothing(store: Store, ledger_url: str) -> None:
    """Invariant 3."""
    stale = lead(store)
    (job,) = create(store, definition("a"))
    late = batch(
        store,
        stale,
        [(job, ticks_after(job, 3))],
        skips=(skip(job, MINUTE, 1),),
        decisions=(decision(job),),
    )
    lead(store, "n2")
    result = store.ticks.commit(late)
    assert (result.is_current, result.moved, result.not_moved) == (False, 0, (job.job_id,))
    assert read(store, job.job_id) == job
    assert [rows(ledger_url, table) for table in ("claims", "skips", "decisions")] == [[], [], []]
    assert [(row.name, row.value) for row in rows(ledger_url, "counters") if "stale" in row.name] == [
        ("stale_commits", 1)
    ]


def test_a_halted_cluster_decides_nothing(store: Store, ledger_url: str) -> None:
    term = lead(store)
    (job,) = create(store, definition("a"))
    set_columns(ledger_url, "cluster", {"id": 1}, halted=True)
    result = store.ticks.commit(batch(store, term, [(job, ticks_after(job, 1))]))
    assert (result.is_current, result.moved, result.not_moved) == (True, 0, (job.job_id,))
    assert rows(ledger_url, "claims") == []


def test_a_batch_planned_long_ago_writes_nothing(store: Store, ledger_url: str) -> None:
    term = lead(store)
    (job,) = create(store, definition("a"))
    old = batch(store, term, [(job, ticks_after(job, 1))], planned_at=store.now() - 6 * SECOND)
    result = store.ticks.commit(old)
    assert (result.is_current, result.is_fresh, result.moved) == (True, False, 0)
    assert rows(ledger_url, "claims") == []


def test_a_job_that_changed_meanwhile_keeps_nothing_and_the_others_all(store: Store, ledger_url: str) -> None:
    """Invariant 2: per job all or nothing. Invariant 6: a lost compare-and-set is an answer."""
    term = lead(store)
    edited, moved, kept = create(store, definition("a"), definition("b"), definition("c"))
    ticks = ticks_after(kept, 3)
    late = batch(
        store,
        term,
        [(job, ticks) for job in (edited, moved, kept)],
        skips=tuple(skip(job, SECOND, 1) for job in (edited, moved, kept)),
        decisions=tuple(decision(job) for job in (edited, moved, kept)),
        proposals=tuple(
            NewProposal(job.job_id, 1, job.at, job.at + SECOND, 1, job.at, job.at + MINUTE)
            for job in (edited, moved, kept)
        ),
    )
    store.edits.edit([JobChange(ChangeKind.REVISE, edited.job_id, definition("a", MINUTE))], "test")
    store.ticks.commit(batch(store, term, [(moved, ticks[:1])], claims=()))
    result = store.ticks.commit(late)
    assert (result.moved, result.swallowed) == (1, 0)
    assert result.not_moved == (edited.job_id, moved.job_id)
    for table in ("claims", "skips", "decisions", "proposals"):
        assert {row.job_id for row in rows(ledger_url, table)} == {kept.job_id}, table


def test_a_cursor_never_moves_backward(store: Store) -> None:
    """Invariant 2."""
    term = lead(store)
    (job,) = create(store, definition("a"))
    result = store.ticks.commit(batch(store, term, [], moves=(move(job, job.at - MINUTE),)))
    assert (result.moved, result.not_moved) == (0, (job.job_id,))


def test_a_claim_row_that_existed_is_counted_and_alarmed(store: Store, ledger_url: str) -> None:
    """Invariant 6: the cursor was won, so nobody may have written this claim."""
    term = lead(store)
    (job,) = create(store, definition("a"))
    ticks = ticks_after(job, 3)
    store.ticks.commit(batch(store, term, [(job, ticks[:2])]))
    set_columns(ledger_url, "cursors", {"job_id": job.job_id}, at=job.at)
    result = store.ticks.commit(batch(store, term, [(job, ticks)]))
    assert (result.moved, result.swallowed) == (1, 2)
    assert len(rows(ledger_url, "claims")) == 3
    (alarm,) = rows(ledger_url, "counters", name="swallowed")
    assert alarm.value == 2


def test_a_skip_record_grows(store: Store, ledger_url: str) -> None:
    term = lead(store)
    (job,) = create(store, definition("a"))
    paused = skip(job, SECOND, 1, reason=SkipReason.PAUSED, detail="alice")
    store.ticks.commit(batch(store, term, [(job, [paused.upto])], claims=(), skips=(paused,)))
    store.edits.edit([JobChange(ChangeKind.PAUSE, job.job_id)], "alice")
    now = read(store, job.job_id)
    assert now.growing == GrowingSkip(job.at, 1, SkipReason.PAUSED)
    grown = skip(job, MINUTE, 60, reason=SkipReason.PAUSED, detail="alice")
    store.ticks.commit(batch(store, term, [(now, [grown.upto])], claims=(), skips=(grown,)))
    (row,) = rows(ledger_url, "skips")
    assert (row.after, row.upto, row.count, row.reason, row.detail) == (job.at, job.at + MINUTE, 60, "paused", "alice")


def test_proposals_and_decisions_go_with_the_ticks_they_speak_of(store: Store, ledger_url: str) -> None:
    term = lead(store)
    (job,) = create(store, definition("a"))
    proposal = NewProposal(job.job_id, 1, job.at, job.at + MINUTE, 60, job.at - MINUTE, job.at + timedelta(days=7))
    held = decision(job, policy="hold", fired=0, merged=0, held=60, reason="60 held")
    store.ticks.commit(
        batch(
            store,
            term,
            [(job, [job.at + MINUTE])],
            claims=(),
            skips=(skip(job, MINUTE, 60, reason=SkipReason.HELD),),
            proposals=(proposal,),
            decisions=(held,),
        )
    )
    (row,) = rows(ledger_url, "proposals")
    assert (row.state, row.count, row.within_from, row.lapses_at) == (
        "open",
        60,
        proposal.within_from,
        proposal.lapses_at,
    )
    (row,) = rows(ledger_url, "decisions")
    assert (row.term, row.cause, row.policy, row.missed, row.held, row.reason) == (
        term,
        "takeover",
        "hold",
        60,
        60,
        "60 held",
    )


def test_a_late_tick_of_a_paused_job_is_written_blocked(store: Store, ledger_url: str) -> None:
    term = lead(store)
    (job,) = create(store, definition("a"))
    store.edits.edit([JobChange(ChangeKind.PAUSE, job.job_id)], "alice")
    job = read(store, job.job_id)
    store.ticks.commit(batch(store, term, [(job, [job.at + SECOND])]))
    (row,) = rows(ledger_url, "claims")
    assert row.blocked


def test_work_that_is_available_soon_is_notified(store: Store) -> None:
    term = lead(store)
    (job,) = create(store, definition("a"))
    clock = SystemClock()
    work = clock.wakeup()
    listener = store.listen([Channel.WORK], work)
    try:
        assert clock.wait(work, 20)  # the first look
        work.clear()
        assert store.ticks.commit(batch(store, term, [(job, [job.at + SECOND])])).moved == 1
        assert clock.wait(work, 20)
    finally:
        listener.close()


def test_jobs_are_loaded_whole_then_by_what_changed(store: Store) -> None:
    term = lead(store)
    first, second = create(store, definition("a"), definition("b"))
    loaded = store.ticks.load_jobs()
    assert loaded.jobs == (first, second)
    assert store.ticks.load_jobs(loaded.mark).jobs == ()
    (done,) = store.edits.edit([JobChange(ChangeKind.PAUSE, second.job_id, why="inventory")], "alice")
    changed = store.ticks.load_jobs(loaded.mark)
    (paused,) = changed.jobs
    assert (paused.job_id, paused.seq, paused.pause_detail) == (second.job_id, second.seq + 1, "alice: inventory")
    assert paused.pauses == (Interval(done.effective_at, None),)
    assert paused.pauses[0].detail == "alice: inventory"
    assert changed.mark > loaded.mark
    assert store.ticks.quarantine(term, first.job_id, "next tick took 10 s")
    (quarantined,) = store.ticks.load_jobs(changed.mark).jobs
    assert (quarantined.job_id, quarantined.is_quarantined) == (first.job_id, True)


def test_a_job_keeps_the_revisions_that_still_have_undecided_ticks(store: Store) -> None:
    (job,) = create(store, definition("a"))
    (done,) = store.edits.edit([JobChange(ChangeKind.REVISE, job.job_id, definition("a", MINUTE))], "test")
    both = read(store, job.job_id)
    assert [(one.revision, one.since, one.until) for one in both.revisions] == [
        (1, job.at, done.effective_at),
        (2, done.effective_at, None),
    ]
    term = lead(store)
    store.ticks.commit(batch(store, term, [(both, [done.effective_at])], claims=()))
    assert [one.revision for one in read(store, job.job_id).revisions] == [2]


def test_a_retired_job_is_gone_once_its_last_tick_is_decided(store: Store) -> None:
    term = lead(store)
    (job,) = create(store, definition("a"))
    mark = store.ticks.load_jobs().mark
    (done,) = store.edits.edit([JobChange(ChangeKind.RETIRE, job.job_id)], "test")
    changed = store.ticks.load_jobs(mark)
    assert [one.job_id for one in changed.jobs] == [job.job_id]
    assert changed.gone == ()
    store.ticks.commit(batch(store, term, [(changed.jobs[0], [done.effective_at])], claims=()))
    assert store.ticks.load_jobs(mark).gone == (job.job_id,)
    assert store.ticks.load_jobs().jobs == ()


def test_the_budget_paces_whoever_asks(store: Store) -> None:
    term = lead(store)
    first = store.ticks.reserve_budget(term, 10, 5.0)
    assert first is not None
    assert abs(first - store.now()) < 2 * SECOND
    assert store.ticks.reserve_budget(term, 1, 5.0) == first + 2 * SECOND
    assert store.ticks.reserve_budget(term, 1, 5.0) == first + 2.2 * SECOND


def test_neither_a_stale_leader_nor_a_halted_cluster_moves_the_budget(store: Store) -> None:
    """Invariant 3."""
    stale = lead(store)
    term = lead(store, "n2")
    first = store.ticks.reserve_budget(term, 500, 5.0)
    assert first is not None
    assert store.ticks.reserve_budget(stale, 10, 5.0) is None
    store.edits.halt("alice", "night")
    assert store.ticks.reserve_budget(term, 10, 5.0) is None
    store.edits.lift_halt("alice")
    assert store.ticks.reserve_budget(term, 1, 5.0) == first + 100 * SECOND


def test_a_successor_goes_on_with_the_count_of_an_unfinished_pass(store: Store, ledger_url: str) -> None:
    first, second = create(store, definition("a"), definition("b"))
    term = lead(store)
    store.ticks.commit(batch(store, term, [(first, ticks_after(first, 3))], decisions=(decision(first, fired=3),)))
    assert store.ticks.unfinished_pass() == UnfinishedPass(3)
    term = lead(store, "n2")
    store.ticks.commit(batch(store, term, [(second, ticks_after(second, 2))], decisions=(decision(second, fired=2),)))
    assert store.ticks.unfinished_pass() == UnfinishedPass(5)
    store.ticks.finish_pass(term - 1, timedelta(seconds=1), 1)  # a stale leader finishes nothing
    assert store.ticks.unfinished_pass() == UnfinishedPass(5)
    store.ticks.finish_pass(term, timedelta(milliseconds=250), 2)
    assert store.ticks.unfinished_pass() == UnfinishedPass()
    earlier, takeover = rows(ledger_url, "takeovers")
    assert (takeover.planning_ms, takeover.jobs) == (250.0, 2)
    assert takeover.gap_until is not None
    assert (earlier.planning_ms, earlier.gap_until) == (None, takeover.gap_until)


def test_a_successor_goes_on_with_what_a_pass_holds_and_with_what_a_late_leader_fired(store: Store) -> None:
    (first,) = create(store, definition("a"))
    term, ticks = lead(store), ticks_after(first, 4)
    late = {"cause": Cause.LATE_LEADER}

    def fire(number: int, under: int) -> None:
        told = decision(first, after=ticks[number], fired=2, **late)
        store.ticks.commit(batch(store, under, [(read(store, first.job_id), [ticks[number]])], decisions=(told,)))

    store.ticks.finish_pass(term, SECOND, 2)
    fire(0, term)  # a pass that was finished
    store.ticks.note_pass(term, holds=False)
    store.ticks.finish_pass(term, SECOND, 2)
    assert store.ticks.note_pass(term, holds=False)
    assert store.ticks.unfinished_pass() == UnfinishedPass()
    fire(1, term)
    stale, term = term, lead(store, "n2")
    assert store.ticks.unfinished_pass() == UnfinishedPass(2)
    assert not store.ticks.note_pass(stale, holds=True)
    assert store.ticks.note_pass(term, holds=True)
    assert store.ticks.unfinished_pass() == UnfinishedPass(2, holds=True)
    term = lead(store)
    store.edits.halt("alice", "night")
    assert not store.ticks.note_pass(term, holds=False)
    store.edits.lift_halt("alice")
    store.ticks.note_pass(term, holds=False)
    assert store.ticks.unfinished_pass() == UnfinishedPass(2, holds=True)
    store.ticks.finish_pass(term, SECOND, 2)
    assert store.ticks.unfinished_pass() == UnfinishedPass()


def test_quarantine_needs_the_current_term_and_is_an_event(store: Store, ledger_url: str) -> None:
    stale = lead(store)
    (job,) = create(store, definition("a"))
    term = lead(store, "n2")
    assert not store.ticks.quarantine(stale, job.job_id, "it raised")
    assert not read(store, job.job_id).is_quarantined
    assert store.ticks.quarantine(term, job.job_id, "it raised")
    assert not store.ticks.quarantine(term, job.job_id, "again")
    assert [event.job_id for event in rows(ledger_url, "events", action="job.quarantined")] == [job.job_id]


def test_a_racer_needs_no_lock_on_the_cluster_row(store: Store, ledger_url: str) -> None:
    (job,) = create(store, definition("a"))
    old = store.terms.cluster().term
    store.edits.set_setting("strategy", "race", "test")
    term = store.terms.cluster().term
    assert term == old + 1
    assert not store.ticks.commit(batch(store, old, [(job, ticks_after(job, 1))])).is_current
    assert store.ticks.commit(batch(store, term, [(job, ticks_after(job, 1))])).moved == 1
