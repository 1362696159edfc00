"""`sexton simulate JOBS`: decisions about a schedule with gaps, on virtual time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sexton.decisions import Cause, CommitResult, PlannedJob, SkipReason
from sexton.jobfiles.load import load_job_text
from sexton.missed_ticks import decide_missed
from sexton.settings import ClusterSettings
from sexton_scheduler.core.planner import Draft, Planner
from sexton_tui.simulation.filed_jobs import planned_jobs
from sexton_tui.simulation.rehearsal import Ending, Gap, JobOutcome, Rehearsal, fault_gaps, rehearse
from tests.support.command_line import CommandLine

BEGIN = datetime(2026, 3, 28, 1, 0, tzinfo=UTC)  # a day before the clocks of Berlin change
DAY, HOUR, MINUTE, SECOND = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
JOBS = """version: 1
defaults: {timezone: Europe/Berlin}
jobs:
  latest: {command: ["true"], schedule: "* * * * *"}
  skip: {command: ["true"], schedule: "* * * * *", missed: {policy: skip}}
  all: {command: ["true"], schedule: "* * * * *", missed: {policy: all}, jitter: 20s}
  hold: {command: ["true"], schedule: "* * * * *", missed: {policy: hold}}
  nightly: {command: ["true"], schedule: "30 2 * * *"}
  away: {command: ["true"], schedule: "0 * * * *", enabled: false}
"""


def jobs() -> list[PlannedJob]:
    return planned_jobs([job.definition for job in load_job_text(JOBS).jobs], BEGIN)


def killed_hourly(until: datetime, gap: timedelta) -> list[Gap]:
    found = fault_gaps(
        BEGIN, until, kill_every=HOUR, gap=gap, pause=timedelta(0), pause_every=HOUR, election=9 * SECOND
    )
    return list(found)


def rehearsed(gaps: Sequence[Gap], horizon: timedelta = MINUTE, until: datetime = BEGIN + 2 * DAY) -> Rehearsal:
    settings = ClusterSettings(horizon=horizon)
    return rehearse(jobs(), BEGIN, until, gaps, settings, inputs_id="here", skew=2 * SECOND)


def by_name(result: Rehearsal) -> dict[str, JobOutcome]:
    return {job.job: job for job in result.jobs}


def test_each_policy_decides_what_a_gap_left_and_the_audit_finds_nothing() -> None:
    result = rehearsed(killed_hourly(BEGIN + 2 * DAY, timedelta(seconds=225)))
    found = by_name(result)
    assert result.audit.is_clean, result.audit.differences
    # Of the gap's 3 min 45 s the first was claimed ahead: the ticks of minutes 2 and 3 fell due undecided, 47 times.
    assert (found["latest"].due, found["latest"].on_time, found["latest"].late) == (2880, 2880 - 2 * 47, 47)
    assert found["latest"].skips == {SkipReason.MERGED: 47}
    assert (found["skip"].late, found["skip"].skips) == (47, {SkipReason.SKIPPED: 47})
    assert (found["hold"].late, found["hold"].skips) == (47, {SkipReason.HELD: 47})
    assert found["all"].skips == {}
    assert found["all"].late + found["all"].caught_up > 47
    assert found["nightly"].due == found["nightly"].on_time == 3  # that of the left out hour at its end
    assert (found["away"].on_time, found["away"].skips) == (0, {SkipReason.PAUSED: 48})
    assert found["away"].reasons == {"enabled: false": 48}
    assert len([gap for gap in result.gaps if gap.decisions]) == 47


def test_claims_written_ahead_outlast_a_gap_and_a_skewed_clock_moves_nothing() -> None:
    gaps = killed_hourly(BEGIN + DAY, timedelta(seconds=8.7))
    assert {job.late + job.caught_up for job in rehearsed(gaps).jobs} == {0}
    assert rehearsed(gaps).clock_error == timedelta(0)
    bare = rehearsed([Gap(BEGIN + HOUR - SECOND, BEGIN + HOUR + 5 * SECOND, Ending.KILLED, Cause.TAKEOVER)], 0 * SECOND)
    assert by_name(bare)["latest"].late == 1
    assert by_name(bare)["latest"].latest == 5 * SECOND
    assert bare.audit.is_clean


def test_a_frozen_leader_goes_on_by_itself_unless_another_was_quicker() -> None:
    def cause(pause: timedelta) -> Cause:
        (gap,) = fault_gaps(
            BEGIN, BEGIN + HOUR, kill_every=None, gap=MINUTE, pause=pause, pause_every=HOUR, election=9 * SECOND
        )
        assert gap.end - gap.begin == min(pause, 9 * SECOND)
        return gap.cause

    assert cause(5 * SECOND) is Cause.LATE_LEADER
    assert cause(30 * SECOND) is Cause.TAKEOVER


def test_quiet_stretches_are_what_a_leader_that_writes_tick_by_tick_leaves() -> None:
    """The arithmetic between the gaps, against the planner in the turns of a leader's loop (invariant 5)."""
    horizon, until = MINUTE, BEGIN + 2 * HOUR
    death, successor = BEGIN + HOUR + 30 * SECOND, BEGIN + HOUR + timedelta(seconds=200)
    planner, ticks = Planner(), dict[str, int]()
    planner.put_all([job for job in jobs() if not job.pauses])
    now, missed_pass = BEGIN, None
    while now <= until:
        draft = planner.draft(now, min(now + horizon, until), missed_pass)
        for plan in draft.plans:
            fired = [claim.scheduled_at for claim in plan.claims] + [fire.scheduled_at for fire in plan.paced]
            ticks[plan.job.name] = ticks.get(plan.job.name, 0) + len(fired)
        planner.settle(draft, CommitResult(True, True, len(draft.plans), 0))
        if not draft.plans:
            due = planner.next_at(horizon)
            now = max(now + SECOND, until + SECOND if due is None else due)
            if death < now < successor:  # what fell due until the death was written before it
                last = planner.draft(death, death + horizon)
                planner.settle(last, CommitResult(True, True, len(last.plans), 0))
                for plan in last.plans:
                    ticks[plan.job.name] = ticks.get(plan.job.name, 0) + len(plan.claims)
                now = successor
                missed_pass = planner.begin_pass(Cause.TAKEOVER, now, 0, 1000)
    found = rehearsed([Gap(death, successor, Ending.KILLED, Cause.TAKEOVER)], horizon, until)
    assert ticks == {
        job.job: job.on_time + job.late + job.caught_up
        for job in found.jobs
        if job.due and not job.skips.get(SkipReason.PAUSED)
    }


def test_a_decision_that_is_lost_is_found_by_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Planner, "draft", lambda *_: Draft(()))
    result = rehearsed(killed_hourly(BEGIN + DAY, timedelta(seconds=225)))
    assert result.audit.counts()["missing"] > 0


def test_more_than_hold_above_is_held_whatever_the_policy() -> None:
    gap = Gap(BEGIN + HOUR, BEGIN + HOUR + timedelta(seconds=225), Ending.KILLED, Cause.TAKEOVER)
    settings = ClusterSettings(catch_up_hold_above=3)
    result = rehearse(jobs(), BEGIN, BEGIN + DAY, [gap], settings, inputs_id="here")
    assert result.gaps[0].holds_all
    assert by_name(result)["all"].late == 0
    assert SkipReason.HELD in by_name(result)["all"].skips
    assert result.audit.is_clean


def test_the_command_shows_the_stretch_around_a_clock_change(tmp_path: Path) -> None:
    (tmp_path / "jobs.yaml").write_text(JOBS)
    command = CommandLine(tmp_path)
    stretch = ("--dst", "--from", "2026-03-01T00:00:00Z", "--gap", "3m45s")
    done = command.run("simulate", "jobs.yaml", *stretch, "--pause", "30s", "--skew", "2s", "--kill-leader-every", "1h")
    assert done.returncode == 0, done.stderr
    assert "2026-03-29T01:00:00Z in Europe/Berlin, by +1h" in done.stdout
    assert "47 merged into the newest" in done.stdout
    assert "verdict: nothing found" in done.stdout
    told = json.loads(command.run("simulate", "jobs.yaml", *stretch, "--output", "json").stdout)
    assert {row["job"]: row["held"] for row in told["jobs"]}["hold"] == 47
    assert told["audit"]["clean"]
    lines = command.run("simulate", "jobs.yaml", *stretch, "--output", "jsonl").stdout.splitlines()
    assert {json.loads(line)["kind"] for line in lines} == {"job", "gap", "clock_change", "audit"}


@pytest.mark.parametrize(
    ("options", "said", "code"),
    [
        (("--seed", "3"), "does not go with JOBS", 2),
        (("--kill-leader-every", "1"), "is not a duration", 2),
        (("--gap", "40m"), "run into each other", 1),
        (("--gap", "0s"), "--gap: '0s' is too short; the least is 100ms", 2),
        (("--session", "0s"), "--session: '0s' is too short", 2),
        (("--from", "9999-01-01T00:00:00Z", "--to", "9999-02-01T00:00:00Z"), "in the years 1900 to 2199", 2),
        (("--dst", "--to", "2026-04-01T00:00:00Z"), "not with --to", 2),
        (("--from", "2026-04-01T00:00:00Z", "--to", "2026-03-01T00:00:00Z"), "not after --from", 2),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(
    tmp_path: Path, options: tuple[str, ...], said: str, code: int
) -> None:
    (tmp_path / "jobs.yaml").write_text(JOBS)
    done = CommandLine(tmp_path).run("simulate", "jobs.yaml", *options)
    assert (done.returncode, said in " ".join(done.stderr.split())) == (code, True), done.stderr


def test_more_ticks_than_a_person_waits_for_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no job alone has so many."""
    (tmp_path / "jobs.yaml").write_text(JOBS)
    monkeypatch.setattr("sexton_tui.cli.rehearse._MOST_TICKS_OF_ALL", 40_000)
    done = CommandLine(tmp_path).run("simulate", "jobs.yaml")
    assert (done.returncode, "these jobs have more than 40,000 ticks" in done.stderr) == (1, True)


def test_a_paused_job_is_one_record() -> None:
    (away,) = [job for job in jobs() if job.pauses]
    assert [skip.count for skip in decide_missed(away, BEGIN + DAY, cause=Cause.LATE_LEADER).skips] == [24]
