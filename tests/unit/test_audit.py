"""Every verdict of the audit has a damaged ledger here; an undamaged one is clean (invariant 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sexton.audit import audit_job
from sexton.audit_findings import AuditReport, Verdict, Window
from sexton.audited_ledger import (
    AuditedClaim,
    AuditedRevision,
    AuditedSkip,
    ClaimColumns,
    JobLedger,
    SkipColumns,
)
from sexton.claims import Origin
from sexton.schedule_specs import schedule_from_spec
from sexton.schedules import EverySchedule

MINUTE = timedelta(minutes=1)
START = datetime(2026, 3, 1, tzinfo=UTC)
NOW = START + 10 * MINUTE + timedelta(seconds=30)
MINUTELY = EverySchedule(MINUTE, datetime(1970, 1, 1, tzinfo=UTC))
IN_BERLIN = schedule_from_spec(
    {
        "parts": [{"cron": "* * * * *"}],
        "timezone": "Europe/Berlin",
        "exclude": {"dates": [], "weekdays": [], "holidays": ["DE-BE"]},
    }
)
GRACE = timedelta(seconds=60)


def at(minute: float) -> datetime:
    return START + minute * MINUTE


def revision(number: int = 1, since: datetime = START, until: datetime | None = None) -> AuditedRevision:
    return AuditedRevision(number, MINUTELY, since, until, GRACE, "2026b/1")


def claim(minute: float, origin: Origin = Origin.SCHEDULE, number: int = 1) -> AuditedClaim:
    return AuditedClaim(at(minute), origin, number)


def ledger(
    claims: Sequence[AuditedClaim] = (),
    skips: Sequence[AuditedSkip] = (),
    cursor: float = 10,
    revisions: Sequence[AuditedRevision] = (revision(),),
    paused: datetime | None = None,
) -> JobLedger:
    columns = ClaimColumns.of(claims), SkipColumns.of(skips)
    return JobLedger(1, "bells", at(cursor), tuple(revisions), paused, *columns)


WINDOW = Window(after=START, upto=NOW, now=NOW, pruned_before=None, inputs_id="2026b/1")
WHOLE = [claim(minute) for minute in range(1, 11)]


def verdicts(job: JobLedger, window: Window = WINDOW) -> dict[Verdict, int]:
    counted: dict[Verdict, int] = {}
    for difference in audit_job(job, window).differences:
        counted[difference.verdict] = counted.get(difference.verdict, 0) + difference.count
    return counted


def test_a_whole_ledger_is_clean() -> None:
    audit = audit_job(ledger(WHOLE), WINDOW)
    assert (audit.due, audit.decided, audit.differences) == (10, 10, ())


def test_claims_and_skip_records_together_make_a_whole_ledger() -> None:
    skips = [AuditedSkip(at(2), at(5), 3, "merged")]
    assert verdicts(ledger([c for c in WHOLE if not at(2) < c.scheduled_at <= at(5)], skips)) == {}


def test_a_removed_claim_is_missing() -> None:
    assert verdicts(ledger(WHOLE[:4] + WHOLE[5:])) == {Verdict.MISSING: 1}


def test_a_removed_skip_record_is_missing() -> None:
    assert verdicts(ledger(WHOLE[:2] + WHOLE[5:])) == {Verdict.MISSING: 3}


def test_a_claim_inside_a_skip_record_is_double() -> None:
    skips = [AuditedSkip(at(2), at(5), 3, "skipped")]
    assert verdicts(ledger(WHOLE[:3] + WHOLE[5:], skips)) == {Verdict.DOUBLE: 1}


def test_two_skip_records_over_one_tick_are_double() -> None:
    skips = [AuditedSkip(at(2), at(5), 3, "skipped"), AuditedSkip(at(4), at(6), 2, "expired")]
    assert verdicts(ledger(WHOLE[:2] + WHOLE[6:], skips)) == {Verdict.DOUBLE: 1}


@pytest.mark.parametrize("origin", [Origin.HELD, Origin.BACKFILL])
def test_a_resolved_skip_record_counts_with_its_claims_as_one_decision(origin: Origin) -> None:
    skips = [AuditedSkip(at(2), at(5), 3, "held")]
    claims = [*WHOLE[:2], claim(4, origin), *WHOLE[5:]]
    assert verdicts(ledger(claims, skips)) == {}


def test_a_resolved_record_counts_with_its_claims_and_not_without() -> None:
    """But for that of a pause, whose policy may have run none of them."""
    whole = [claim(minute) for minute in (1, 2, *range(6, 11))]
    skips = [AuditedSkip(at(2), at(5), 3, "held", is_resolved=True)]
    run = [claim(minute, Origin.HELD) for minute in (3, 4, 5)]
    assert verdicts(ledger([*whole, *run], skips)) == {}
    assert verdicts(ledger([*whole, *run[:1]], skips)) == {Verdict.MISSING: 2}
    assert verdicts(ledger(whole, [AuditedSkip(at(2), at(5), 3, "paused", is_resolved=True)])) == {}


def test_a_manual_claim_decides_no_tick() -> None:
    assert verdicts(ledger([*WHOLE[:-1], claim(10, Origin.MANUAL)])) == {Verdict.MISSING: 1}


def test_an_undecided_tick_is_pending_within_its_grace_and_overdue_after() -> None:
    """A dead cluster must not pass: its cursor stands still."""
    assert verdicts(ledger(WHOLE[:9], cursor=9)) == {Verdict.PENDING: 1}
    assert verdicts(ledger(WHOLE[:3], cursor=3)) == {Verdict.OVERDUE: 6, Verdict.PENDING: 1}


def test_no_grace_at_all_still_leaves_a_moment_to_decide() -> None:
    hasty = replace(revision(), grace=timedelta(0))
    just_due = replace(WINDOW, upto=at(10), now=at(10) + timedelta(seconds=1))
    assert verdicts(ledger(WHOLE[:9], cursor=9, revisions=[hasty]), just_due) == {Verdict.PENDING: 1}
    assert verdicts(ledger(WHOLE[:9], cursor=9, revisions=[hasty])) == {Verdict.OVERDUE: 1}


def test_undecided_ticks_of_an_open_pause_are_pending() -> None:
    assert verdicts(ledger(WHOLE[:3], cursor=3, paused=at(3.5))) == {Verdict.PENDING: 7}


def test_a_pause_does_not_excuse_what_was_undecided_before_it() -> None:
    assert verdicts(ledger(WHOLE[:3], cursor=3, paused=at(5.5))) == {Verdict.OVERDUE: 2, Verdict.PENDING: 5}


def test_a_claim_that_no_revision_says_is_unexpected() -> None:
    assert verdicts(ledger([*WHOLE, claim(4.5)])) == {Verdict.UNEXPECTED: 1}


def test_a_claim_of_the_old_revision_after_the_edit_is_unexpected() -> None:
    revisions = [revision(1, START, at(4)), revision(2, at(4))]
    claims = [claim(m, number=1 if m <= 5 else 2) for m in range(1, 11)]
    assert verdicts(ledger(claims, revisions=revisions)) == {Verdict.UNEXPECTED: 1}


def test_a_claim_beyond_the_cursor_is_unexpected() -> None:
    assert verdicts(ledger([*WHOLE, claim(11)])) == {Verdict.UNEXPECTED: 1}


def test_claims_written_ahead_up_to_the_cursor_are_no_difference() -> None:
    assert verdicts(ledger([*WHOLE, claim(11)], cursor=11)) == {}


def test_a_skip_record_with_a_wrong_count_is_miscounted() -> None:
    skips = [AuditedSkip(at(2), at(5), 4, "merged")]
    assert verdicts(ledger(WHOLE[:2] + WHOLE[5:], skips)) == {Verdict.MISCOUNTED: 1}


def test_a_revision_of_other_inputs_is_not_judged() -> None:
    changed = replace(revision(), schedule=IN_BERLIN, inputs_id="2025a/1")
    assert verdicts(ledger(revisions=[changed])) == {Verdict.INPUTS_CHANGED: 1}
    later = replace(revision(2, at(6)), schedule=IN_BERLIN)
    mixed = [replace(changed, until=at(6)), later]
    claims = [claim(3), claim(4, number=7), *(claim(m, number=2) for m in (7, 8, 10))]
    skips = [AuditedSkip(at(1), at(7), 99, "paused")]
    found = verdicts(ledger(claims[2:], skips, revisions=mixed))
    assert found == {Verdict.INPUTS_CHANGED: 1, Verdict.DOUBLE: 1, Verdict.MISSING: 1}
    assert verdicts(ledger(claims, revisions=mixed)) == {Verdict.INPUTS_CHANGED: 1, Verdict.MISSING: 1}
    assert verdicts(ledger(claims[2:], revisions=mixed), replace(WINDOW, after=at(6))) == {Verdict.MISSING: 1}


def test_other_inputs_are_none_for_a_schedule_that_does_not_depend_on_them() -> None:
    for other in ("2026a/1", "2026a/1/0.1"):
        assert verdicts(ledger(WHOLE, revisions=[replace(revision(), inputs_id=other)])) == {}, other
    engine = replace(revision(), inputs_id="2026b/2")
    assert verdicts(ledger(WHOLE, revisions=[engine])) == {Verdict.INPUTS_CHANGED: 1}


def test_a_revision_that_this_release_cannot_read_is_not_judged() -> None:
    assert verdicts(ledger(revisions=[replace(revision(), schedule=None)])) == {Verdict.INPUTS_CHANGED: 1}


def test_inputs_without_holidays_are_those_of_before_they_were_among_them() -> None:
    complete = replace(WINDOW, inputs_id="2026b/1/0.109")
    assert verdicts(ledger(WHOLE), complete) == {}
    for other in ("2026b/2", "2026a/1", "2026b/1/0.108", "2026b/1/0.10"):
        changed = replace(revision(), schedule=IN_BERLIN, inputs_id=other)
        assert verdicts(ledger(revisions=[changed]), complete) == {Verdict.INPUTS_CHANGED: 1}, other


def test_pruned_ticks_are_said_and_not_judged() -> None:
    window = replace(WINDOW, pruned_before=at(4))
    assert verdicts(ledger(WHOLE[4:]), window) == {Verdict.PRUNED: 4}


def test_ticks_between_two_intervals_in_force_are_not_due() -> None:
    revisions = [revision(1, START, at(3)), revision(2, at(6))]
    claims = [claim(m, number=1 if m <= 3 else 2) for m in (1, 2, 3, 7, 8, 9, 10)]
    assert verdicts(ledger(claims, revisions=revisions)) == {}


def test_a_report_is_clean_unless_a_verdict_fails() -> None:
    report = AuditReport(WINDOW)
    report.add(audit_job(ledger(WHOLE[:9], cursor=9), WINDOW))
    assert report.is_clean
    assert report.count(Verdict.PENDING) == 1
    report.add(audit_job(ledger(WHOLE[1:]), WINDOW))
    assert not report.is_clean


@given(st.sets(st.integers(1, 10)), st.lists(st.integers(0, 9), min_size=0, max_size=4, unique=True))
def test_missing_is_what_neither_claims_nor_skip_records_hold(claimed: set[int], skipped: list[int]) -> None:
    """Any ledger of one-tick skip records and claims is judged tick by tick."""
    job = ledger(
        [claim(m) for m in sorted(claimed)],
        [AuditedSkip(at(m), at(m + 1), 1, "skipped") for m in sorted(skipped)],
    )
    covered = {m + 1 for m in skipped}
    found = verdicts(job)
    assert found.get(Verdict.MISSING, 0) == len(set(range(1, 11)) - claimed - covered)
    assert found.get(Verdict.DOUBLE, 0) == len(claimed & covered)


def test_what_was_lost_together_is_one_difference_with_its_count() -> None:
    (found,) = audit_job(ledger(WHOLE[:2] + WHOLE[7:]), WINDOW).differences
    assert (found.at, found.count) == (at(3), 5)
    assert found.detail.endswith("; the last of them 2026-03-01T00:07:00Z")


def test_more_findings_than_a_person_reads_are_counted_and_not_listed() -> None:
    every_second = [claim(1 + second / 60) for second in range(1, 400) if second % 60]
    by_turns = [replace(one, origin=(Origin.SCHEDULE, Origin.CATCH_UP)[n % 2]) for n, one in enumerate(every_second)]
    found = audit_job(ledger([*WHOLE, *by_turns]), WINDOW).differences
    assert len(found) == 100
    assert sum(one.count for one in found) == len(by_turns)


def test_a_large_skip_record_is_counted_without_being_walked() -> None:
    """A job of every second that slept for fifty years is one record."""
    since = datetime(1980, 1, 1, tzinfo=UTC)
    schedule = EverySchedule(timedelta(seconds=1))
    job = replace(
        ledger(skips=[AuditedSkip(since, START, round((START - since).total_seconds()), "merged")]),
        cursor=START,
        revisions=(replace(revision(), schedule=schedule, since=since),),
    )
    window = replace(WINDOW, after=since, upto=START)
    assert verdicts(job, window) == {}
    short = replace(job, skips=SkipColumns.of([AuditedSkip(since, START, 10_000_000, "merged")]))
    assert Verdict.MISCOUNTED in verdicts(short, window)


def test_what_keeps_a_job_from_being_decided_is_told_with_what_is_overdue() -> None:
    job = replace(ledger(WHOLE[:3], cursor=3), standing="the job is quarantined")
    (overdue, _) = audit_job(job, WINDOW).differences
    assert overdue.detail == "undecided for longer than the grace of 60 s; the job is quarantined"


def test_a_claim_at_another_instant_than_its_tick_is_no_decision_of_it() -> None:
    moved = [*WHOLE[:4], claim(5.25), *WHOLE[5:]]
    assert verdicts(ledger(moved)) == {Verdict.MISSING: 1, Verdict.UNEXPECTED: 1}


def test_claims_where_no_revision_was_in_force_are_unexpected() -> None:
    revisions = [revision(1, START, at(3)), revision(2, at(6), at(9))]
    claims = [claim(m, number=1 if m <= 3 else 2) for m in (1, 2, 3, 5, 7, 8, 9, 10)]
    assert verdicts(ledger(claims, revisions=revisions)) == {Verdict.UNEXPECTED: 2}
