"""What the ledger holds about one instant of a job, and what is told of it; on both databases."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import create_engine, insert

from sexton.claims import Origin, State
from sexton.decisions import Cause, JobDecision, NewProposal, NewSkip, SkipReason
from sexton.errors import NotFound
from sexton.job_rules import RetryRules
from sexton.store import tables
from sexton.store.protocol import ChangeKind, JobChange, JobRow, RunResult, StepRequest, Store
from sexton.tick_explanation import A_RACER, Answer, TickExplanation, explain
from tests.support.leader_scene import (
    MINUTE,
    SECOND,
    batch,
    create,
    definition,
    lead,
    move,
    read,
    rows,
    set_columns,
    ticks_after,
)


def explained(store: Store, job: str, tick: datetime) -> TickExplanation:
    return explain(store.reads.tick_facts(job, tick))


def past_job(store: Store, url: str, ago: timedelta = 30 * SECOND, **keys: Any) -> JobRow:
    """A job of every second that came a while ago, with nothing decided since."""
    (new,) = create(store, definition("bells", **keys))
    since = (new.at - ago).replace(microsecond=0)
    set_columns(url, "cursors", {"job_id": new.job_id}, at=since)
    set_columns(url, "revisions", {"job_id": new.job_id}, in_force_since=since)
    return read(store, new.job_id)


def work(
    store: Store, room: int = 1, results: tuple[RunResult, ...] = (), worker: int | None = None
) -> list[RunResult]:
    """One step of a worker; results that would end as failed what it granted."""
    worker = store.grants.register("w1", "here", "1", 1, ["default"], 4) if worker is None else worker
    done = store.grants.step(StepRequest(worker, ("default",), room, timedelta(seconds=30), 10, results))
    return [
        RunResult(one.job_id, one.scheduled_at, one.token, one.attempt, State.FAILED, done.now, done.now, 3, "no paper")
        for one in done.grants
    ]


def test_a_tick_to_come_tells_who_will_decide_it_and_when(store: Store) -> None:
    lead(store)
    create(store, definition("bells", timedelta(hours=1)))
    found = explained(store, "bells", store.reads.near_tick("bells", "next"))
    assert (found.is_due, found.answer, found.claim) == (True, Answer.TO_COME, None)
    assert found.next.startswith("the leader, n1 (term 1), writes its claim")
    assert found.revision is not None
    assert (found.revision.revision, found.revision.applied_by) == (1, "test")


def test_of_a_race_no_node_is_made_up(store: Store) -> None:
    store.edits.set_setting("strategy", "race", "ana")
    (job,) = create(store, definition("bells"))
    tick = ticks_after(job, 1)[0]
    assert store.ticks.commit(batch(store, store.terms.cluster().term, [(job, [tick])])).moved == 1
    found = explained(store, "bells", tick)
    assert found.node == A_RACER
    assert f"by {A_RACER} under term" in found.decided


def test_a_claim_tells_who_wrote_it_under_which_term_and_what_it_waits_for(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = past_job(store, ledger_url)
    (tick,) = ticks_after(job, 1)
    store.ticks.commit(batch(store, term, [(job, [tick])]))
    found = explained(store, "BELLS", tick)
    assert (found.answer, found.node, found.term) == (Answer.CLAIMED, "n1", term)
    assert "by n1 under term 1" in found.decided
    assert "after it fell due" in found.decided
    assert "which has none now" in found.next
    work(store, room=0)
    assert "the worker of queue default has room" in explained(store, "bells", tick).next


def test_each_try_is_told_with_worker_and_token_and_that_no_retry_is_left(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = past_job(store, ledger_url, retries=RetryRules(max=0))
    (tick,) = ticks_after(job, 1)
    store.ticks.commit(batch(store, term, [(job, [tick])]))
    (result,) = work(store)
    running = explained(store, "bells", tick)
    assert running.next.startswith("it runs on w1")
    work(store, 0, (result,), worker=rows(ledger_url, "workers")[0].worker_id)
    found = explained(store, "bells", tick)
    assert [(run.worker, run.token, run.exit_code, run.error) for run in found.runs] == [
        ("w1", result.token, 3, "no paper")
    ]
    assert "0 of 0 retries are used up; `sexton rerun bells" in found.next


def test_a_refused_result_is_told_with_its_worker_and_token(store: Store, ledger_url: str) -> None:
    """Invariant 4: nothing of it was written, and who asks learns of it."""
    term = lead(store)
    job = past_job(store, ledger_url)
    (tick,) = ticks_after(job, 1)
    store.ticks.commit(batch(store, term, [(job, [tick])]))
    (result,) = work(store)
    worker = rows(ledger_url, "workers")[0].worker_id
    set_columns(ledger_url, "claims", {"job_id": job.job_id}, token=result.token + 1)
    work(store, 0, (result,), worker=worker)
    assert store.operations.note_refused(worker, [result]) == 1
    found = explained(store, "bells", tick)
    assert [(one.worker, one.token, one.outcome) for one in found.refused] == [("w1", result.token, State.FAILED)]
    assert found.runs == ()
    assert found.acts == ()


def test_a_result_that_was_sent_twice_and_counted_is_no_refused_one(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = past_job(store, ledger_url)
    (tick,) = ticks_after(job, 1)
    store.ticks.commit(batch(store, term, [(job, [tick])]))
    (result,) = work(store)
    worker = rows(ledger_url, "workers")[0].worker_id
    for _ in range(2):
        work(store, 0, (result,), worker=worker)
    assert store.operations.note_refused(worker, [result]) == 0
    assert explained(store, "bells", tick).refused == ()


def test_a_skipped_tick_is_told_with_its_record_and_the_sentence_of_the_pass(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = past_job(store, ledger_url)
    ticks = ticks_after(job, 3)
    skip = NewSkip(job.job_id, job.at, ticks[-1], 3, SkipReason.SKIPPED, "older than 1s", 1)
    why = JobDecision(
        job.job_id, 1, Cause.TAKEOVER, job.at, ticks[-1], "skip", 3, 0, 0, 3, 0, 0, "every second, 3 missed"
    )
    moves = (move(job, ticks[-1]),)
    store.ticks.commit(batch(store, term, [], moves=moves, skips=(skip,), decisions=(why,)))
    found = explained(store, "bells", ticks[1])
    assert (found.answer, found.term, found.node, found.next) == (Answer.NOT_RUN, term, "n1", "")
    assert found.decided.startswith("skipped by n1 under term 1 at ")
    assert found.decided.endswith(": older than 1s")
    assert "one of 3 up to" in found.decided
    assert [(one.cause, one.reason) for one in found.decisions] == [(Cause.TAKEOVER, "every second, 3 missed")]
    assert explained(store, "bells", job.at).answer is not Answer.NOT_RUN  # a record begins after its `after`


def test_a_tick_that_somebody_named_not_to_run_is_told_as_his(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = past_job(store, ledger_url)
    (tick,) = ticks_after(job, 1)
    skip = NewSkip(job.job_id, job.at, tick, 1, SkipReason.SKIPPED, "the printer is away", 1)
    store.ticks.commit(batch(store, term, [], moves=(move(job, tick),), skips=(skip,)))
    set_columns(ledger_url, "skips", {"job_id": job.job_id}, named_by="ana")
    found = explained(store, "bells", tick)
    assert (found.answer, found.node) == (Answer.NOT_RUN, "ana")
    assert found.decided.startswith("skipped by ana under term 1 at ")


def test_what_operators_did_to_a_tick_is_told_also_where_they_named_a_stretch(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = past_job(store, ledger_url)
    first, second = ticks_after(job, 2)
    store.ticks.commit(batch(store, term, [(job, [first, second])]))
    store.operations.cancel(job.job_id, "ana", "paper jam", tick=first)
    store.operations.rerun(job.job_id, first, "bob", "again")
    details = [
        ("job.backfilled", {"first": first.isoformat(), "last": first.isoformat()}),
        ("cursor.set", {"from": job.at.isoformat(), "to": first.isoformat()}),
        ("job.paused", {"scheduled_at": first.isoformat()}),
        ("cursor.set", {"from": "nonsense", "to": 7}),
    ]
    engine = create_engine(ledger_url)
    with engine.begin() as connection:
        for action, detail in details:
            values = {"at": first, "actor": "eve", "action": action, "job_id": job.job_id, "detail": json.dumps(detail)}
            connection.execute(insert(tables.events).values(values))
    engine.dispose()
    acts = [(event.action, event.actor) for event in explained(store, "bells", first).acts]
    assert acts == [
        ("job.cancelled", "ana"),
        ("job.rerun", "bob"),
        ("job.backfilled", "eve"),
        ("cursor.set", "eve"),
    ]
    assert explained(store, "bells", second).acts == ()


def test_a_held_tick_names_its_proposal_and_what_came_of_it(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = past_job(store, ledger_url)
    ticks = ticks_after(job, 2)
    skip = NewSkip(job.job_id, job.at, ticks[-1], 2, SkipReason.HELD, "held: older than 1s", 1)
    held = NewProposal(job.job_id, 1, job.at, ticks[-1], 2, job.at, store.now() + MINUTE)
    store.ticks.commit(batch(store, term, [], moves=(move(job, ticks[-1]),), skips=(skip,), proposals=(held,)))
    found = explained(store, "bells", ticks[0])
    assert found.proposal is not None
    assert (found.answer, found.proposal.state, found.proposal.count) == (Answer.HELD, "open", 2)
    assert f"`sexton holds approve {found.proposal.proposal_id}`" in found.next
    set_columns(ledger_url, "proposals", {"job_id": job.job_id}, state="rejected", answered_by="ana", note="too late")
    set_columns(ledger_url, "skips", {"job_id": job.job_id}, resolved_at=store.now(), resolved_by="ana")
    found = explained(store, "bells", ticks[0])
    assert found.proposal is not None
    assert (found.answer, found.next, found.proposal.answered_by) == (Answer.NOT_RUN, "", "ana")
    assert "resolved by ana" in found.decided


def test_an_undecided_tick_is_overdue_after_its_grace_and_missing_behind_the_cursor(
    store: Store, ledger_url: str
) -> None:
    """As the audit has it: a dead cluster must not look well."""
    job = past_job(store, ledger_url, 10 * MINUTE)
    set_columns(ledger_url, "revisions", {"job_id": job.job_id}, in_force_since=job.at - MINUTE)
    old, new = job.at + SECOND, store.now().replace(microsecond=0)
    assert explained(store, "bells", old).answer is Answer.OVERDUE
    assert explained(store, "bells", new).answer is Answer.UNDECIDED
    assert "nobody leads now" in explained(store, "bells", new).next
    assert explained(store, "bells", job.at).answer is Answer.MISSING


def test_a_pause_a_halt_and_a_quarantine_are_told_as_what_keeps_a_tick_from_running(
    store: Store, ledger_url: str
) -> None:
    lead(store)
    (job,) = create(store, definition("bells", timedelta(hours=1)))
    tick = store.reads.near_tick("bells", "next")
    store.edits.halt("ana", "the ledger is moved")
    assert "halted by ana: the ledger is moved" in explained(store, "bells", tick).next
    store.edits.edit([JobChange(ChangeKind.PAUSE, job.job_id, why="storage")], "bob")
    found = explained(store, "bells", tick)
    assert found.pause is not None
    assert (found.pause.who, found.pause.why, found.pause.until) == ("bob", "storage", None)
    assert "if the pause by bob lasts" in found.next
    set_columns(ledger_url, "jobs", {"job_id": job.job_id}, quarantined_at=store.now(), quarantine_reason="too slow")
    assert "quarantined (too slow)" in explained(store, "bells", tick).next


def test_a_parked_claim_names_what_holds_its_slot(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = past_job(store, ledger_url)
    first, second = ticks_after(job, 2)
    store.ticks.commit(batch(store, term, [(job, [first, second])]))
    work(store)
    set_columns(ledger_url, "claims", {"scheduled_at": second}, state=int(State.PARKED))
    assert explained(store, "bells", second).next.startswith("it waits for its slot, held by bells ")


def test_a_triggered_run_is_told_as_the_operators_and_found_by_its_second(store: Store) -> None:
    lead(store)
    (job,) = create(store, definition("bells", timedelta(hours=1)))
    triggered = store.edits.trigger(job.job_id, "ana").scheduled_at
    found = explained(store, "bells", triggered)
    assert found.claim is not None
    assert (found.is_due, found.claim.origin, found.node) == (False, Origin.MANUAL, "ana")
    assert found.decided.startswith("triggered by ana at ")
    near = explained(store, "bells", triggered.replace(microsecond=0))
    assert triggered in near.near_claims
    assert (near.answer, near.next) == (Answer.NOT_DUE, "")


def test_what_is_no_tick_names_those_beside_it_also_across_revisions(store: Store, ledger_url: str) -> None:
    lead(store)
    job = past_job(store, ledger_url)
    changed = definition("bells", timedelta(hours=1))
    store.edits.edit([JobChange(ChangeKind.REVISE, job.job_id, changed)], "ana")
    edited = rows(ledger_url, "revisions")[1].in_force_since
    found = explained(store, "bells", edited + SECOND / 2)
    assert found.revision is not None
    assert (found.is_due, found.revision.revision, found.revision.applied_by) == (False, 2, "ana")
    assert found.before is not None
    assert found.before.tick == edited.replace(microsecond=0)
    assert found.after is not None
    assert found.after.tick == store.reads.near_tick("bells", "next")
    assert explained(store, "bells", edited.replace(microsecond=0)).revision != found.revision
    before = explained(store, "bells", job.at - MINUTE)
    assert "no tick of the past is invented" in before.why


def test_last_and_next_are_refused_where_there_is_none(store: Store) -> None:
    lead(store)
    create(store, definition("bells", timedelta(days=3000)))
    with pytest.raises(NotFound, match="no tick of it has fallen due"):
        store.reads.near_tick("bells", "last")
    with pytest.raises(NotFound, match="there is no job 'nope'"):
        store.reads.tick_facts("nope", store.now())


def test_of_a_retired_job_it_is_said_when_it_was_retired(store: Store, ledger_url: str) -> None:
    lead(store)
    job = past_job(store, ledger_url)
    store.edits.edit([JobChange(ChangeKind.RETIRE, job.job_id)], "ana")
    assert "the job was retired at" in explained(store, "bells", store.now() + MINUTE).why


def test_late_queues_of_a_term_are_counted_apart_from_its_takeover_and_ends_of_pauses_not_at_all(
    store: Store, ledger_url: str
) -> None:
    term = lead(store)
    job = past_job(store, ledger_url)
    (tick,) = ticks_after(job, 1)
    whys = [
        JobDecision(job.job_id, 1, cause, job.at, tick, "latest", missed, 1, missed - 1, 0, 0, 0, "why")
        for cause, missed in ((Cause.TAKEOVER, 3), (Cause.NOT_STARTED, 40), (Cause.RESUMED, 7))
    ]
    store.ticks.commit(batch(store, term, [(job, [tick])], decisions=tuple(whys)))
    (takeover,) = store.reads.takeovers()
    assert (takeover.totals.missed, takeover.totals.merged, takeover.totals.jobs) == (3, 2, 1)
    assert (takeover.not_started.missed, takeover.not_started.merged, takeover.not_started.jobs) == (40, 39, 1)
    decided = store.reads.takeover(term).decisions
    assert [one.cause for one in decided] == [Cause.NOT_STARTED, Cause.TAKEOVER]


def test_the_last_tick_is_found_behind_any_number_of_edits(store: Store, ledger_url: str) -> None:
    lead(store)
    job = past_job(store, ledger_url)
    for number in range(12):  # the first ends the job of every second, the others are in force for no tick
        later = definition("bells", timedelta(days=3000), description=f"edit {number}")
        store.edits.edit([JobChange(ChangeKind.REVISE, job.job_id, later)], "ana")
    first = rows(ledger_url, "revisions")[1].in_force_since
    assert store.reads.near_tick("bells", "last") == first.replace(microsecond=0)
    found = explained(store, "bells", store.now())
    assert found.before is not None
    assert found.before.tick == first.replace(microsecond=0)


def test_a_job_whose_name_another_has_now_is_named_and_reached_by_its_number(store: Store, ledger_url: str) -> None:
    term = lead(store)
    old = past_job(store, ledger_url)
    (tick,) = ticks_after(old, 1)
    store.ticks.commit(batch(store, term, [(old, [tick])]))
    store.edits.edit([JobChange(ChangeKind.RETIRE, old.job_id)], "ana")
    (new,) = create(store, definition("bells"))
    found = explained(store, "bells", tick)
    assert found.answer is Answer.NOT_DUE
    assert "an earlier job of this name was retired at" in found.why
    assert f"`sexton explain bells#{old.job_id} " in found.why
    assert explained(store, f"bells#{old.job_id}", tick).answer is Answer.CLAIMED
    earlier = store.reads.ticks_page("bells").earlier
    assert earlier is not None
    page = store.reads.ticks_page(earlier.address)
    assert [claim.scheduled_at for claim in page.claims] == [tick]
    assert page.earlier is None
    assert store.reads.job(f"Bells#{new.job_id}").job.job_id == new.job_id
    for wrong in ("bells#999", "bells#", "bells#x", "#1", f"bells#{10**40}"):
        with pytest.raises(NotFound):
            store.reads.job(wrong)


def test_what_only_reaches_around_a_tick_is_not_told_as_its_reason(store: Store, ledger_url: str) -> None:
    """Of late claims a decision and a proposal name the first and the last: between them there may be others."""
    term = lead(store)
    job = past_job(store, ledger_url)
    first, between, last = ticks_after(job, 3)
    why = JobDecision(job.job_id, 1, Cause.NOT_STARTED, job.at, last, "hold", 2, 0, 0, 0, 0, 2, "2 missed: 2 held")
    held = NewProposal(job.job_id, 1, job.at, last, 2, job.at, store.now() + MINUTE)
    ticks = [first, between, last]
    store.ticks.commit(batch(store, term, [(job, ticks)], decisions=(why,), proposals=(held,)))
    for tick in (first, last):
        set_columns(ledger_url, "claims", {"scheduled_at": tick}, state=int(State.HELD))
        found = explained(store, "bells", tick)
        assert found.proposal is not None
        assert len(found.decisions) == 1
    found = explained(store, "bells", between)
    assert (found.answer, found.proposal, found.decisions) == (Answer.CLAIMED, None, ())


def test_what_a_worker_did_not_start_in_time_is_said_to_be_missed(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = past_job(store, ledger_url)
    (tick,) = ticks_after(job, 1)
    store.ticks.commit(batch(store, term, [(job, [tick])]))
    set_columns(ledger_url, "claims", {"scheduled_at": tick}, start_by=tick)
    assert explained(store, "bells", tick).next.startswith("it is missed, for it was not started by ")
