"""Pauses of all, what fell due in a pause, ticks named not to run; on both databases."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from sexton.claims import Origin, State
from sexton.decisions import SkipReason
from sexton.errors import NotFound, Refused
from sexton.holds import ALL
from sexton.job_rules import MissedPolicy, MissedRules, firing_rules
from sexton.store.protocol import ChangeDone, ChangeKind, JobChange, JobRow, Store
from sexton.store.protocol.holds import approval_of
from sexton.store.resuming import resume_missed, resume_together, skip_tick, unskip_tick
from tests.support.leader_scene import MINUTE, SECOND, create, definition, lead, read, rows, set_columns
from tests.support.past_jobs import claims_of, decide, differences, minutes_after, old_job, skip

HOUR = timedelta(hours=1)


def change(store: Store, kind: ChangeKind, job_id: int, **values: object) -> ChangeDone:
    (done,) = store.edits.edit([JobChange(kind, job_id, **values)], "ben")  # type: ignore[arg-type]  # the dataclass checks
    return done


def paused_job(
    store: Store, url: str, term: int, minutes: int = 60, since: timedelta = timedelta(0), **keys: Any
) -> JobRow:
    """A job that was paused all the time, its ticks recorded up to now."""
    job = old_job(store, url, minutes=minutes, **keys)
    change(store, ChangeKind.PAUSE, job.job_id, why="storage moves")
    set_columns(url, "pauses", {"job_id": job.job_id}, since=job.at + since)
    job = read(store, job.job_id)
    decide(store, term, job, minutes, [skip(job, 0, minutes, SkipReason.PAUSED, "ben: storage moves")])
    return job


def missed(policy: MissedPolicy, **keys: object) -> MissedRules:
    return MissedRules(policy=policy, **keys)  # type: ignore[arg-type]  # the dataclass checks


# --- what fell due in a pause ---------------------------------------------------------------------


def test_latest_fires_once_for_all_that_fell_due_in_a_pause(store: Store, ledger_url: str) -> None:
    """Invariant 2: the record of the pause is resolved, and counts with its claim as one decision."""
    term = lead(store)
    job = paused_job(store, ledger_url, term)
    done = resume_missed(store, job.job_id, "ana")
    assert (done.fired, done.held) == (1, 0)
    (claim,) = rows(ledger_url, "claims")
    assert (claim.scheduled_at, claim.origin) == (job.at + HOUR, Origin.BACKFILL)
    assert (claim.state, claim.blocked, claim.reason) == (State.READY, False, "fell due in a pause; run by ana")
    (record,) = rows(ledger_url, "skips")
    assert (record._mapping["count"], record.reason, record.resolved_by) == (60, "paused", "ana")
    assert record.detail.startswith("ben: storage moves; minutely, 60 missed: ")
    (decision,) = rows(ledger_url, "decisions")
    assert (decision.cause, decision.missed, decision.fired, decision.merged) == ("resumed", 60, 1, 59)
    assert not store.edits.current_jobs()[0].is_paused
    assert differences(store) == []


def test_all_fires_what_it_may_and_draws_on_the_budget(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = paused_job(store, ledger_url, term, missed=missed(MissedPolicy.ALL, max=10))
    assert resume_missed(store, job.job_id, "ana").fired == 10
    claims = rows(ledger_url, "claims")
    assert [row.scheduled_at for row in claims] == minutes_after(job, 51, 60)
    assert len({row.available_at for row in claims}) == 10
    assert differences(store) == []


def test_skip_runs_only_what_is_in_grace(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = paused_job(store, ledger_url, term, missed=missed(MissedPolicy.SKIP, grace=150 * SECOND))
    assert resume_missed(store, job.job_id, "ana").fired in (2, 3)
    assert differences(store) == []


def test_hold_makes_a_proposal_with_a_record_of_its_own(store: Store, ledger_url: str) -> None:
    """What is in grace fires, what is held waits for an answer, what is too old has expired."""
    term = lead(store)
    rules = missed(MissedPolicy.HOLD, grace=10 * MINUTE, within=HOUR - 10 * MINUTE)
    job = paused_job(store, ledger_url, term, missed=rules)
    done = resume_missed(store, job.job_id, "ana")
    (proposal,) = rows(ledger_url, "proposals")
    assert (proposal.state, proposal._mapping["count"]) == ("open", done.held)
    assert 38 <= done.held <= 41
    records = [(row.reason, row.resolved_by) for row in rows(ledger_url, "skips")]
    assert records == [("paused", "ana"), ("held", None), ("paused", "ana")]
    (held,) = [row for row in rows(ledger_url, "skips") if row.reason == "held"]
    assert (held.after, held.upto, held._mapping["count"]) == (proposal.after, proposal.upto, done.held)
    assert differences(store) == []


def test_what_is_held_of_a_pause_that_began_between_two_ticks_is_opened_and_approved(
    store: Store, ledger_url: str
) -> None:
    """Its record begins at the cursor, before the pause: so does the proposal, for nothing fell due between."""
    term = lead(store)
    job = paused_job(store, ledger_url, term, 6, 20 * SECOND, missed=missed(MissedPolicy.HOLD, grace=SECOND))
    assert resume_missed(store, job.job_id, "ana").held == 6
    (proposal,) = rows(ledger_url, "proposals")
    found = store.reads.hold(proposal.proposal_id)
    assert found.ticks is not None
    assert found.hold.first == job.at + MINUTE
    done = store.holds.approve(approval_of(found, found.ticks.chosen(ALL)), "ana")
    assert (done.is_done, done.approved) == (True, 6)
    assert differences(store) == []


def test_more_than_hold_above_is_held_whatever_the_policy(store: Store, ledger_url: str) -> None:
    term = lead(store)
    store.edits.set_setting("catch_up.hold_above", "5", "ana")
    job = paused_job(store, ledger_url, term, missed=missed(MissedPolicy.ALL))
    done = resume_missed(store, job.job_id, "ana")
    assert (done.fired, done.held, rows(ledger_url, "claims")) == (0, 60, [])
    assert differences(store) == []


@pytest.mark.parametrize("hold_above", [5, 6])
def test_what_one_request_would_fire_of_several_jobs_is_held_of_all_or_of_none(
    store: Store, ledger_url: str, hold_above: int
) -> None:
    term = lead(store)
    store.edits.set_setting("catch_up.hold_above", str(hold_above), "ana")
    rules = missed(MissedPolicy.ALL, max=3)
    jobs = [paused_job(store, ledger_url, term, name=name, missed=rules) for name in ("one", "two")]
    resumed = resume_together(store, [job.job_id for job in jobs], "ana")
    each = (0, 3) if hold_above == 5 else (3, 0)
    assert [(one.fired, one.held) for one in resumed] == [each, each]
    assert differences(store) == []


def test_where_one_of_several_is_not_paused_none_is_resumed(store: Store, ledger_url: str) -> None:
    job = paused_job(store, ledger_url, lead(store))
    with pytest.raises(Refused, match="is not paused"):
        resume_together(store, [job.job_id, job.job_id + 1], "ana")
    assert store.edits.current_jobs()[0].is_paused


def test_what_nobody_recorded_in_a_pause_is_left_to_the_leader(store: Store, ledger_url: str) -> None:
    """The pause ends at the cursor: the leader decides the rest by policy, and `latest` fires once in all."""
    term = lead(store)
    job = old_job(store, ledger_url)
    change(store, ChangeKind.PAUSE, job.job_id, why="storage moves")
    set_columns(ledger_url, "pauses", {"job_id": job.job_id}, since=job.at)
    job = read(store, job.job_id)
    decide(store, term, job, 40, [skip(job, 0, 40, SkipReason.PAUSED)])
    assert resume_missed(store, job.job_id, "ana").fired == 0
    (pause,) = rows(ledger_url, "pauses")
    assert (pause.since, pause.until) == (job.at, job.at + 40 * MINUTE)
    now = read(store, job.job_id)
    assert (now.at, now.pauses) == (job.at + 40 * MINUTE, ())
    assert rows(ledger_url, "decisions") == []


def test_a_resume_is_undone_where_the_pause_has_grown_meanwhile(store: Store, ledger_url: str) -> None:
    """Invariant 6: a lost compare-and-set, and it is planned again."""
    from sexton.pause_missed import plan_pause

    term = lead(store)
    job = old_job(store, ledger_url)
    change(store, ChangeKind.PAUSE, job.job_id, why="storage moves")
    set_columns(ledger_url, "pauses", {"job_id": job.job_id}, since=job.at)
    job = read(store, job.job_id)
    decide(store, term, job, 59, [skip(job, 0, 59, SkipReason.PAUSED)])
    stretch = store.backfills.stretch(job.job_id, job.at, store.now(), 100)
    now = read(store, job.job_id)
    decide(store, term, now, 1, [skip(job, 0, 60, SkipReason.PAUSED)])
    assert store.pauses.resume_missed(plan_pause(stretch, 1000).resolution, "ana") is None
    assert store.edits.current_jobs()[0].is_paused
    assert rows(ledger_url, "claims") == []
    assert resume_missed(store, job.job_id, "ana").fired == 1
    assert differences(store) == []


def test_what_was_backfilled_in_a_pause_does_not_run_again(store: Store, ledger_url: str) -> None:
    from sexton.store.backfilling import carry_out, read_backfill

    term = lead(store)
    job = paused_job(store, ledger_url, term, missed=missed(MissedPolicy.ALL))
    begin, end = job.at + 20 * MINUTE, job.at + 30 * MINUTE
    carry_out(store, read_backfill(store, job.job_id, begin, end), begin, end, "ana", "")
    assert resume_missed(store, job.job_id, "ana").fired == 50
    assert len(rows(ledger_url, "claims")) == 60
    assert {row.blocked for row in rows(ledger_url, "claims")} == {False}
    assert differences(store) == []


# --- the pause of all -----------------------------------------------------------------------------


def paused_names(store: Store) -> set[str]:
    return {job.name for job in store.edits.current_jobs() if job.is_paused}


def test_a_pause_of_all_ends_without_those_that_were_paused_on_their_own(store: Store, ledger_url: str) -> None:
    one, _, three = create(store, definition("one"), definition("two"), definition("three"))
    change(store, ChangeKind.PAUSE, one.job_id, why="its own")
    done = store.pauses.pause_all("ana", "storage moves")
    assert {job.name for job in done.jobs} == {"two", "three"}
    assert paused_names(store) == {"one", "two", "three"}
    change(store, ChangeKind.PAUSE, three.job_id, why="stays down")
    ended = store.pauses.resume_all("ana")
    assert {job.name for job in ended.jobs} == {"two"}
    assert paused_names(store) == {"one", "three"}
    (pause,) = rows(ledger_url, "pauses", job_id=three.job_id)
    assert (pause.who, pause.why, pause.until) == ("ben", "stays down", None)
    events = [(row.actor, row.action) for row in rows(ledger_url, "events") if row.action.startswith("cluster.")]
    assert events == [("ana", "cluster.paused"), ("ana", "cluster.resumed")]
    assert store.pauses.pause_of_all() is None


def test_a_second_pause_of_all_leaves_the_first_and_takes_what_runs_again(store: Store) -> None:
    one, _ = create(store, definition("one"), definition("two"))
    first = store.pauses.pause_all("ana", "storage moves")
    change(store, ChangeKind.RESUME, one.job_id)
    assert paused_names(store) == {"two"}
    again = store.pauses.pause_all("ben", "more")
    assert (again.pause, [job.name for job in again.jobs]) == (first.pause, ["one"])
    assert len(store.pauses.resume_all("ana").jobs) == 2
    assert paused_names(store) == set()


def test_what_is_applied_while_all_are_paused_is_paused_too(store: Store, ledger_url: str) -> None:
    """New jobs, and those whose file enables them again; a job that its file disables stays paused afterwards."""
    lead(store)
    off, on, run = create(store, definition("off", enabled=False), definition("on"), definition("run"))
    store.pauses.pause_all("ana", "storage moves")
    change(store, ChangeKind.RESUME, run.job_id)
    create(store, definition("new"), definition("new and off", enabled=False))
    assert paused_names(store) == {"off", "on", "new", "new and off"}
    change(store, ChangeKind.REVISE, off.job_id, definition=definition("off", MINUTE))
    change(store, ChangeKind.REVISE, on.job_id, definition=definition("on", MINUTE, enabled=False))
    change(store, ChangeKind.REVISE, run.job_id, definition=definition("run", MINUTE))
    assert paused_names(store) == {"off", "on", "new", "new and off"}
    (job,) = rows(ledger_url, "jobs", name="new")
    assert (job.paused_by, job.pause_reason, job.paused_with_all) == ("ana", "storage moves", True)
    store.pauses.resume_all("ana")
    assert paused_names(store) == {"on", "new and off"}


def test_the_end_of_the_pause_of_all_lifts_no_quarantine(store: Store) -> None:
    term = lead(store)
    (job,) = create(store, definition("one"))
    store.ticks.quarantine(term, job.job_id, "it hangs")
    store.pauses.pause_all("ana", "storage moves")
    store.pauses.resume_all("ana")
    (found,) = store.edits.current_jobs()
    assert (found.is_paused, found.is_quarantined) == (False, True)


def test_an_empty_cluster_can_be_paused(store: Store) -> None:
    assert store.pauses.pause_all("ana", "not yet").jobs == ()
    create(store, definition("one"))
    assert paused_names(store) == {"one"}
    assert len(store.pauses.resume_all("ana").jobs) == 1
    assert store.pauses.resume_all("ana").pause is None


# --- ticks named not to run -----------------------------------------------------------------------


def test_the_next_tick_is_named_not_to_run_and_no_other_moves(store: Store, ledger_url: str) -> None:
    """Invariant 2: its decision is made ahead of its time; the cursor moves over it."""
    term = lead(store)
    job = old_job(store, ledger_url)
    decide(store, term, job, 60, [skip(job, 0, 60)])
    now = read(store, job.job_id)
    decide(store, term, now, 3, claims=claims_of(now, minutes_after(now, 1, 3)))
    plan, done = skip_tick(store, job.job_id, None, "ana", "storage moves")
    tick = now.at + MINUTE
    assert (plan.changed, done.withdrawn) == (tick, 3)
    record = rows(ledger_url, "skips")[-1]
    assert (record.upto, record._mapping["count"], record.reason, record.named_by) == (tick, 1, "skipped", "ana")
    assert record.detail == "skip-next by ana: storage moves"
    (view,) = store.reads.jobs_page().jobs
    assert (view.skipped, view.next_ticks[0]) == ((tick,), tick + MINUTE)
    assert store.reads.job(view.name, 1).job.next_ticks == (tick + MINUTE,)
    after = read(store, job.job_id)
    assert (after.at, rows(ledger_url, "claims")) == (tick, [])
    decide(store, term, after, 2, claims=claims_of(after, minutes_after(after, 1, 2)))
    assert differences(store) == []
    (event,) = rows(ledger_url, "events", action="job.skips_named")
    assert json.loads(event.detail)["why"].endswith("is not to run: storage moves")


def test_a_later_tick_is_named_and_all_before_it_are_claimed(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = old_job(store, ledger_url, queue="nightly")
    decide(store, term, job, 60, [skip(job, 0, 60)])
    now = read(store, job.job_id)
    skip_tick(store, job.job_id, now.at + 5 * MINUTE, "ana", "")
    skip_tick(store, job.job_id, now.at + 3 * MINUTE, "ben", "")
    skip_tick(store, job.job_id, None, "eve", "")
    named = {row.upto: row.named_by for row in rows(ledger_url, "skips") if row.named_by}
    assert named == {now.at + MINUTE: "eve", now.at + 3 * MINUTE: "ben", now.at + 5 * MINUTE: "ana"}
    claims = rows(ledger_url, "claims")
    assert [row.scheduled_at for row in claims] == [now.at + 2 * MINUTE, now.at + 4 * MINUTE]
    assert {(row.queue, row.origin, row.state) for row in claims} == {("nightly", Origin.SCHEDULE, State.READY)}
    assert all(row.start_by == row.scheduled_at + MINUTE for row in claims)
    assert read(store, job.job_id).at == now.at + 5 * MINUTE
    assert differences(store) == []
    plan, _ = unskip_tick(store, job.job_id, now.at + 3 * MINUTE, "ana")
    assert not plan.is_named
    assert len(rows(ledger_url, "claims")) == 3
    unskip_tick(store, job.job_id, None, "ana")
    unskip_tick(store, job.job_id, None, "ana")
    with pytest.raises(NotFound, match="no tick to come of books is skipped"):
        unskip_tick(store, job.job_id, None, "ana")
    assert [row for row in rows(ledger_url, "skips") if row.named_by] == []
    assert differences(store) == []


@pytest.mark.parametrize("kind", [ChangeKind.REVISE, ChangeKind.PAUSE, ChangeKind.RETIRE])
def test_a_later_edit_takes_a_named_tick_back(store: Store, ledger_url: str, kind: ChangeKind) -> None:
    """The cursor moves back only in the transaction that deletes what it steps back over."""
    term = lead(store)
    job = old_job(store, ledger_url)
    decide(store, term, job, 60, [skip(job, 0, 60)])
    now = read(store, job.job_id)
    skip_tick(store, job.job_id, now.at + 5 * MINUTE, "ana", "")
    new = definition("books", 2 * MINUTE) if kind is ChangeKind.REVISE else None
    done = change(store, kind, job.job_id, definition=new)
    assert done.withdrawn == 4
    assert [row for row in rows(ledger_url, "skips") if row.named_by] == []
    (cursor,) = rows(ledger_url, "cursors", job_id=job.job_id)
    assert cursor.at <= done.effective_at
    assert differences(store) == []


def test_what_a_worker_has_is_not_skipped_any_more(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = old_job(store, ledger_url)
    decide(store, term, job, 60, [skip(job, 0, 60)])
    now = read(store, job.job_id)
    ticks = minutes_after(now, 1, 2)
    decide(store, term, now, 2, claims=claims_of(now, ticks))
    set_columns(ledger_url, "claims", {"scheduled_at": ticks[1]}, state=int(State.RUNNING), attempt=1, token=7)
    for tick in ticks:
        with pytest.raises(Refused, match="is with a worker, or a later tick was"):
            skip_tick(store, job.job_id, tick, "ana", "")
    plan, _ = skip_tick(store, job.job_id, now.at + 3 * MINUTE, "ana", "")
    assert plan.changed == now.at + 3 * MINUTE
    assert differences(store) == []


def test_only_a_tick_that_will_come_can_be_named(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = old_job(store, ledger_url)
    decide(store, term, job, 60, [skip(job, 0, 60)])
    at = read(store, job.job_id).at
    for tick, error in (
        (at, "is past"),
        (at + MINUTE + SECOND, "is no tick of books; the next one after it is"),
        (at + 2000 * MINUTE, "more than 1,000 ticks"),
    ):
        with pytest.raises(Refused, match=error):
            skip_tick(store, job.job_id, tick, "ana", "")
    skip_tick(store, job.job_id, at + MINUTE, "ana", "")
    with pytest.raises(Refused, match="is skipped already: skip-next by ana"):
        skip_tick(store, job.job_id, at + MINUTE, "ben", "")
    change(store, ChangeKind.PAUSE, job.job_id, why="x")
    with pytest.raises(Refused, match="books is paused"):
        skip_tick(store, job.job_id, None, "ana", "")


def test_nothing_is_named_over_ticks_that_are_undecided(store: Store, ledger_url: str) -> None:
    """Invariant 2: the cursor steps over no tick without a decision."""
    from sexton.skip_ahead import plan_naming
    from sexton.tick_view import END_OF_TIME

    lead(store)
    job = old_job(store, ledger_url)
    plan = plan_naming(store.backfills.stretch(job.job_id, store.now(), END_OF_TIME, 10), None, "ana", "")
    assert store.pauses.skip_ahead(plan, "ana", "") is None
    assert read(store, job.job_id).at == job.at
    assert rows(ledger_url, "skips") == []


def test_what_has_its_jitter_ahead_is_said_to_run_all_the_same(store: Store, ledger_url: str) -> None:
    term = lead(store)
    job = paused_job(store, ledger_url, term, minutes=4, jitter=300 * HOUR)
    ahead = [tick for tick in minutes_after(job, 1, 4) if tick + read_jitter(store, job, tick) > store.now()]
    done = resume_missed(store, job.job_id, "ana")
    assert done.fired == len(ahead) == 4
    assert done.reason == "4 with jitter still ahead run"
    (record,) = rows(ledger_url, "skips")
    assert record.detail == "ben: storage moves; 4 with jitter still ahead run"


def read_jitter(store: Store, job: JobRow, tick: datetime) -> timedelta:
    return firing_rules(read(store, job.job_id).revisions[-1].firing).jitter_of(tick)
