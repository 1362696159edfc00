"""Answers to proposals: who answers, what becomes of the ticks, and that the audit finds each decided once; on both
databases."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta

import psycopg
import pytest

from sexton.claims import Origin, State
from sexton.errors import NotFound, Refused
from sexton.holds import Part, ProposalState
from sexton.job_rules import CatchUpOrder
from sexton.store.ledger_snapshot import audit_ledger
from sexton.store.protocol import ChangeKind, HoldAnswer, JobChange, Store
from tests.support.claim_rows import ClaimRows
from tests.support.held_scene import HOLD, approval, approve, hold_claims, hold_gap, late_plan
from tests.support.leader_scene import MINUTE, SECOND, batch, claim, definition, lead, read, rows, set_columns
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def only_arrows(ledger_url: str) -> None:
    """Refuse every change of a claim's state that `sexton.claims.ARROWS` does not have."""
    scene = ClaimRows(ledger_url)
    scene.guard_arrows()
    scene.close()


def assert_decided_once(store: Store, since: datetime) -> None:
    """Invariant 2."""
    found = [one for one in audit_ledger(store, since).differences if one.verdict.fails and one.verdict != "overdue"]
    assert found == []


def test_a_proposal_is_listed_with_what_an_operator_needs_to_answer_it(store: Store, ledger_url: str) -> None:
    job = hold_gap(store, ledger_url, lead(store))
    (hold,) = store.reads.holds()
    assert (hold.job, hold.state, hold.count, hold.span) == ("held", ProposalState.OPEN, 5, 4 * SECOND)
    assert (hold.first, hold.last) == (job.at + SECOND, job.at + 5 * SECOND)
    assert (hold.order, hold.reason) == (CatchUpOrder.OLDEST, "policy hold: older than grace 0s")
    assert hold.drain is None  # no run tells
    assert store.reads.holds(job.job_id) == (hold,)
    assert store.reads.holds(job.job_id + 1) == ()
    opened = store.reads.hold(hold.proposal_id)
    assert opened.ticks is not None
    assert [one.scheduled_at for one in opened.ticks.oldest(2)] == [job.at + SECOND, job.at + 2 * SECOND]
    with pytest.raises(NotFound, match="there is no proposal 99"):
        store.reads.hold(99)


def test_approving_all_writes_the_claims_at_the_budgets_pace(store: Store, ledger_url: str) -> None:
    job = hold_gap(store, ledger_url, lead(store))
    done = approve(store, note="ledger is open again")
    assert (done.is_done, done.state, done.count, done.approved) == (True, ProposalState.APPROVED, 5, 5)
    claims = rows(ledger_url, "claims")
    assert [one.scheduled_at for one in claims] == [job.at + number * SECOND for number in range(1, 6)]
    assert {(one.origin, one.state, one.revision, one.start_by, one.blocked) for one in claims} == {
        (Origin.HELD, State.READY, 1, None, False)
    }
    starts = [one.available_at for one in claims]
    assert [later - starts[0] for later in starts] == [timedelta(milliseconds=20 * number) for number in range(5)]
    assert (done.first_start, done.last_start) == (starts[0], starts[-1])
    (budget,) = rows(ledger_url, "budget")
    assert budget.next_at == starts[-1] + timedelta(milliseconds=20)
    (skip,) = rows(ledger_url, "skips")
    assert (skip.count, skip.resolved_by, skip.resolved_at) == (5, "ana", done.answered_at)
    assert skip.detail.endswith("approved by ana: ledger is open again")
    assert_decided_once(store, job.at)


def test_what_has_grown_since_it_was_told_is_not_rejected(store: Store, ledger_url: str) -> None:
    hold_gap(store, ledger_url, lead(store))
    found = store.reads.hold(1)
    set_columns(ledger_url, "proposals", {"proposal_id": 1}, count=6)
    lost = store.holds.reject(1, "ana", mark=found.mark)
    assert (lost.is_done, lost.state, lost.count) == (False, ProposalState.OPEN, 6)
    set_columns(ledger_url, "proposals", {"proposal_id": 1}, count=5)
    assert store.holds.reject(1, "ana", mark=found.mark).is_done


def test_an_answer_is_in_the_audit_log_with_name_and_note(store: Store, ledger_url: str) -> None:
    job = hold_gap(store, ledger_url, lead(store))
    approve(store, Part(newest=2), note="only the last two")
    (event,) = store.reads.events_page(job="held", action="proposal.approved")
    assert event.actor == "ana"
    assert dict(event.detail) | {"first": "", "last": ""} == {
        "proposal": 1,
        "job": "held",
        "held": 5,
        "note": "only the last two",
        "approved": 2,
        "first": "",
        "last": "",
    }
    (hold,) = store.reads.holds(answered=True)
    assert (hold.answered_by, hold.note, hold.approved, hold.drain) == ("ana", "only the last two", 2, None)
    assert store.reads.hold(hold.proposal_id).ticks is None
    assert_decided_once(store, job.at)


@pytest.mark.parametrize(("part", "numbers"), [("newest", [4, 5]), ("range", [2, 3]), ("from", [3, 4, 5])])
def test_approving_a_part_rejects_the_rest(store: Store, ledger_url: str, part: str, numbers: list[int]) -> None:
    job = hold_gap(store, ledger_url, lead(store))
    parts = {
        "newest": Part(newest=2),
        "range": Part(begin=job.at + 2 * SECOND, end=job.at + 4 * SECOND),
        "from": Part(begin=job.at + 3 * SECOND),
    }
    done = approve(store, parts[part])
    assert [one.scheduled_at for one in rows(ledger_url, "claims")] == [job.at + number * SECOND for number in numbers]
    (proposal,) = rows(ledger_url, "proposals")
    ends = (job.at + numbers[0] * SECOND, job.at + numbers[-1] * SECOND)
    assert (proposal.approved, proposal.approved_from, proposal.approved_upto) == (len(numbers), *ends)
    skips = rows(ledger_url, "skips")
    assert (sum(one.count for one in skips), skips[0].after, skips[-1].upto) == (5, job.at, job.at + 5 * SECOND)
    assert [one.count for one in skips if one.resolved_by == "ana"] == [len(numbers)]
    rejected = [one.detail for one in skips if one.resolved_at is None]
    assert len(rejected) == len(skips) - 1
    assert all(one.endswith(f"; rejected by ana, who approved {len(numbers)} of 5") for one in rejected)
    assert store.reads.holds() == ()
    assert done.approved == len(numbers)
    assert_decided_once(store, job.at)


def test_a_part_without_ticks_is_refused(store: Store, ledger_url: str) -> None:
    job = hold_gap(store, ledger_url, lead(store))
    with pytest.raises(Refused, match="no tick of this proposal lies there"):
        approve(store, Part(begin=job.at + 9 * SECOND))
    assert len(store.reads.holds()) == 1


def test_the_jobs_order_says_which_starts_first(store: Store, ledger_url: str) -> None:
    missed = replace(HOLD, order=CatchUpOrder.NEWEST)
    hold_gap(store, ledger_url, lead(store), missed=missed)
    approve(store)
    claims = rows(ledger_url, "claims")
    assert sorted(claims, key=lambda one: one.available_at) == claims[::-1]


def test_rejecting_lets_the_skip_record_stand(store: Store, ledger_url: str) -> None:
    job = hold_gap(store, ledger_url, lead(store))
    done = store.holds.reject(1, "bob", "paid by hand")
    assert (done.is_done, done.state, done.approved) == (True, ProposalState.REJECTED, 0)
    (skip,) = rows(ledger_url, "skips")
    assert (skip.resolved_at, skip.detail) == (None, "policy hold: older than grace 0s; rejected by bob: paid by hand")
    assert rows(ledger_url, "claims") == []
    (event,) = store.reads.events_page(action="proposal.rejected")
    assert (event.actor, event.detail["note"]) == ("bob", "paid by hand")
    assert_decided_once(store, job.at)


def test_held_claims_are_opened_again_and_the_rest_of_them_closed(store: Store, ledger_url: str) -> None:
    job, ticks = hold_claims(store, lead(store))
    (hold,) = store.reads.holds()
    assert (hold.count, hold.first, hold.last) == (3, ticks[0], ticks[-1])
    assert hold.reason == "claimed but not started"
    done = approve(store, Part(newest=2))
    first, *others = rows(ledger_url, "claims")
    assert (first.state, first.reason) == (State.SKIPPED, "held, and rejected by ana, who approved 2 of 3")
    assert {(one.state, one.origin, one.start_by, one.finished_at) for one in others} == {
        (State.READY, Origin.HELD, None, None)
    }
    assert [one.available_at for one in others] == [done.first_start, done.last_start]
    assert store.ticks.late_jobs() == ()  # what was approved does not grow late again
    assert_decided_once(store, job.at)


def test_rejected_claims_end_as_skipped(store: Store, ledger_url: str) -> None:
    job, _ = hold_claims(store, lead(store))
    store.holds.reject(1, "bob")
    assert {(one.state, one.reason) for one in rows(ledger_url, "claims")} == {
        (State.SKIPPED, "held, and rejected by bob")
    }
    assert_decided_once(store, job.at)


def test_late_claims_never_extend_the_proposal_of_a_gap(store: Store, ledger_url: str) -> None:
    """Its ticks are those of its skip record; each can be answered without the other."""
    term = lead(store)
    job = hold_gap(store, ledger_url, term)
    _, ticks = hold_claims(store, term, job=read(store, job.job_id))
    gap, late = store.reads.holds()
    assert (gap.count, late.count, late.first) == (5, 3, ticks[0])
    store.holds.reject(gap.proposal_id, "bob")
    assert {one.state for one in rows(ledger_url, "claims")} == {State.HELD}
    approve(store)
    assert {one.state for one in rows(ledger_url, "claims")} == {State.READY}
    assert_decided_once(store, job.at)


def test_a_proposal_that_grew_since_it_was_read_is_left_as_it_is(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job, _ = hold_claims(store, term)
    read_before = approval(store, 1)
    hold_claims(store, term, job=read(store, job.job_id))
    done = store.holds.approve(read_before, "ana")
    assert (done.is_done, done.state, done.count) == (False, ProposalState.OPEN, 6)
    assert {one.state for one in rows(ledger_url, "claims")} == {State.HELD}
    (hold,) = store.reads.holds()
    assert hold.count == 6


def test_an_unanswered_proposal_lapses(store: Store, ledger_url: str) -> None:
    job = hold_gap(store, ledger_url, lead(store), lapses=-SECOND)
    (lapsed,) = store.holds.lapse()
    assert (lapsed.state, lapsed.answered_by, lapsed.count) == (ProposalState.LAPSED, "sexton", 5)
    assert store.holds.lapse() == ()
    (skip,) = rows(ledger_url, "skips")
    assert skip.detail.endswith("; lapsed: nobody answered its proposal within hold_for")
    (event,) = store.reads.events_page(action="proposal.lapsed")
    assert event.actor == "sexton"
    late = store.holds.reject(1, "bob")
    assert (late.is_done, late.state) == (False, ProposalState.LAPSED)
    assert_decided_once(store, job.at)


def test_held_claims_lapse_too_and_a_proposal_in_time_does_not(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job, _ = hold_claims(store, term)
    assert store.holds.lapse() == ()
    set_columns(ledger_url, "proposals", {"job_id": job.job_id}, lapses_at=store.now() - SECOND)
    assert len(store.holds.lapse()) == 1
    assert {one.state for one in rows(ledger_url, "claims")} == {State.SKIPPED}


def test_nothing_lapses_in_a_halted_cluster(store: Store, ledger_url: str) -> None:
    hold_gap(store, ledger_url, lead(store), lapses=-SECOND)
    store.edits.halt("ana", "restore")
    assert store.holds.lapse() == ()
    store.edits.lift_halt("ana")
    assert len(store.holds.lapse()) == 1


def test_what_is_approved_while_the_job_is_paused_waits_for_its_resume(store: Store, ledger_url: str) -> None:
    job = hold_gap(store, ledger_url, lead(store))
    store.edits.edit([JobChange(ChangeKind.PAUSE, job.job_id, why="ledger closed")], "ana")
    assert approve(store).is_paused
    assert {one.blocked for one in rows(ledger_url, "claims")} == {True}
    store.edits.edit([JobChange(ChangeKind.RESUME, job.job_id)], "ana")
    assert {one.blocked for one in rows(ledger_url, "claims")} == {False}
    assert_decided_once(store, job.at)


@pytest.mark.parametrize("what", ["edit", "rename"])
def test_an_edit_or_a_rename_keeps_the_proposal_with_its_own_revision(store: Store, ledger_url: str, what: str) -> None:
    job = hold_gap(store, ledger_url, lead(store))
    name = "renamed" if what == "rename" else "held"
    revised = definition(name, MINUTE, missed=HOLD, queue="other")
    store.edits.edit([JobChange(ChangeKind.REVISE, job.job_id, definition=revised)], "ana")
    (hold,) = store.reads.holds()
    assert (hold.job, hold.count, hold.revision) == (name, 5, 1)
    approve(store)
    claims = rows(ledger_url, "claims", origin=int(Origin.HELD))
    assert {(one.revision, one.queue) for one in claims} == {(1, "default")}
    assert len(claims) == 5
    assert_decided_once(store, job.at)


def test_retiring_the_job_rejects_its_proposals(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = hold_gap(store, ledger_url, term)
    hold_claims(store, term, job=read(store, job.job_id))
    before = approval(store, 1)
    store.edits.edit([JobChange(ChangeKind.RETIRE, job.job_id)], "ana")
    gap, late = sorted(store.reads.holds(answered=True), key=lambda one: one.proposal_id)
    assert {(one.state, one.answered_by, one.note) for one in (gap, late)} == {
        (ProposalState.REJECTED, "ana", "the job was retired")
    }
    done = store.holds.approve(before, "bob")
    assert (done.is_done, done.state, done.answered_by) == (False, ProposalState.REJECTED, "ana")
    assert {one.state for one in rows(ledger_url, "claims")} == {State.SKIPPED}
    (skip,) = rows(ledger_url, "skips", reason="held")
    assert skip.detail == "policy hold: older than grace 0s; rejected by ana: the job was retired"


def test_the_second_operator_learns_who_answered_when_and_how(store: Store, ledger_url: str) -> None:
    hold_gap(store, ledger_url, lead(store))
    store.edits.set_setting("catch_up.rate", "0.01", "ana")
    before = approval(store, 1)
    first = store.holds.approve(before, "ana")
    (budget,) = rows(ledger_url, "budget")
    second = store.holds.approve(before, "bob")
    assert (second.is_done, second.state, second.answered_by) == (False, ProposalState.APPROVED, "ana")
    assert (second.answered_at, second.approved) == (first.answered_at, 5)
    assert len(rows(ledger_url, "claims")) == 5
    assert rows(ledger_url, "budget")[0].next_at == budget.next_at  # it drew nothing
    third = store.holds.reject(1, "cyd")
    assert (third.is_done, third.state, third.answered_by) == (False, ProposalState.APPROVED, "ana")


def test_of_many_who_answer_at_once_one_wins_and_the_others_learn_of_it(
    store: Store, open_another: Callable[..., Store], ledger_url: str
) -> None:
    """Each answers by a thread and a connection of its own; approvals, rejections and the lapse."""
    job = hold_gap(store, ledger_url, lead(store), lapses=-SECOND)
    before, part, gate = approval(store, 1), approval(store, 1, Part(newest=2)), threading.Barrier(5)
    answers: list[HoldAnswer] = []

    def answer(call: Callable[[Store], HoldAnswer]) -> None:
        with closing(open_another()) as own:
            own.now()
            gate.wait(60)
            answers.append(call(own))

    calls: list[Callable[[Store], HoldAnswer]] = [
        lambda own: own.holds.approve(before, "ana"),
        lambda own: own.holds.approve(part, "bob"),
        lambda own: own.holds.reject(1, "cyd"),
        lambda own: own.holds.reject(1, "dan"),
        lambda own: next(iter(own.holds.lapse()), None) or own.holds.reject(1, "eve"),
    ]
    threads = [threading.Thread(target=answer, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(answers) == 5
    (won,) = (one for one in answers if one.is_done)
    assert {(one.state, one.answered_by, one.answered_at) for one in answers} == {
        (won.state, won.answered_by, won.answered_at)
    }
    assert len(rows(ledger_url, "claims")) == won.approved
    (proposal,) = rows(ledger_url, "proposals")
    assert (proposal.state, proposal.approved) == (won.state, won.approved)
    assert len(store.reads.events_page(job="held", action="proposal")) == 1
    assert_decided_once(store, job.at)


@pytest.mark.parametrize("ledger_url", ["postgresql"], indirect=True)  # on SQLite one writes after the other
def test_claims_that_are_held_while_the_proposal_is_answered_make_another(
    store: Store, open_another: Callable[..., Store], ledger_url: str
) -> None:
    """Housekeeping waits for the answer's lock; the proposal it meant to extend is open no more when it has it."""
    term = lead(store)
    job, _ = hold_claims(store, term)
    later = read(store, job.job_id)
    ticks = [later.at + number * SECOND for number in range(1, 3)]
    claims = tuple(claim(later, at, start_by=store.now() - MINUTE) for at in ticks)
    store.ticks.commit(batch(store, term, [(later, ticks)], claims=claims))
    with psycopg.connect(ledger_url.replace("+psycopg", "")) as answering, ThreadPoolExecutor(1) as pool:
        answering.execute("UPDATE proposals SET state = 'rejected', answered_by = 'ana' WHERE state = 'open'")
        answering.execute("UPDATE claims SET state = 8 WHERE state = 11")
        deciding = pool.submit(
            lambda: open_another(application="sexton decides").ticks.decide_late(late_plan(store, term, later, ticks))
        )
        waits = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'sexton decides' AND wait_event_type = 'Lock'"
        with psycopg.connect(ledger_url.replace("+psycopg", ""), autocommit=True) as watching:
            eventually(lambda: watching.execute(waits).fetchone(), 60, "housekeeping to wait for the proposal")
        answering.commit()
        assert deciding.result(60) == 2
    (hold,) = store.reads.holds()
    assert (hold.count, hold.first, hold.last) == (2, ticks[0], ticks[-1])
    assert_decided_once(store, job.at)


@pytest.mark.parametrize("ledger_url", ["postgresql"], indirect=True)  # on SQLite one writes after the other
def test_an_approval_that_meets_a_pause_waits_for_it_and_is_blocked(
    store: Store, open_another: Callable[..., Store], ledger_url: str
) -> None:
    """It locks the job's row as edits do: no approved tick slips past a pause that is being made."""
    job = hold_gap(store, ledger_url, lead(store))
    before = approval(store, 1)
    with psycopg.connect(ledger_url.replace("+psycopg", "")) as pausing, ThreadPoolExecutor(1) as pool:
        pausing.execute("UPDATE jobs SET paused_at = clock_timestamp() WHERE job_id = %s", [job.job_id])
        approving = pool.submit(lambda: open_another(application="sexton approves").holds.approve(before, "ana"))
        waits = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'sexton approves' AND wait_event_type = 'Lock'"
        with psycopg.connect(ledger_url.replace("+psycopg", ""), autocommit=True) as watching:
            eventually(lambda: watching.execute(waits).fetchone(), 60, "the approval to wait for the job")
        pausing.commit()
        assert approving.result(60).is_paused
    assert {one.blocked for one in rows(ledger_url, "claims")} == {True}
