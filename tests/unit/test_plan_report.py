"""What a plan says of each job: which seed counts, what a pause does, what becomes of claims and runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sexton.job_standing import JobStanding, RunsInFlight
from sexton.jobfiles import plan_report
from sexton.jobfiles.plan_report import PlannedKind
from sexton.jobfiles.plan_ticks import TickChange, change_of_schedules
from tests.support.plans import NOW, cluster, only_job, report_of

MINUTE = timedelta(minutes=1)


def job(name: str, more: str = "", schedule: str = "0 5 * * *") -> str:
    return f"{name}: {{schedule: '{schedule}', command: [x]{', ' + more if more else ''}}}"


def test_every_job_of_a_plan_is_told_in_the_order_of_its_signs() -> None:
    report = report_of(
        [job("new"), job("changed", "queue: q"), job("bee", "renamed_from: b"), job("same")],
        cluster(job("changed"), job("b"), job("gone"), job("same")),
        prune=True,
    )
    assert [(one.kind, one.name, one.old_name, one.revision) for one in report.jobs] == [
        (PlannedKind.ADD, "new", None, 0),
        (PlannedKind.CHANGE, "changed", None, 3),
        (PlannedKind.RENAME, "bee", "b", 3),
        (PlannedKind.RETIRE, "gone", None, 3),
    ]
    totals = report.totals
    assert (totals.jobs, totals.appear, totals.vanish, totals.move, totals.keep) == (2, 7, 7, 0, 14)


def test_a_job_that_stays_without_a_file_is_no_part_of_the_plan() -> None:
    report = report_of([job("a")], cluster(job("a"), job("other")))
    assert (report.is_empty, report.jobs) == (True, ())


class TestSeeds:
    def test_a_renamed_job_hashes_its_first_name_and_keeps_its_ticks(self) -> None:
        old = cluster(job("old", schedule="H H * * *"), seeds=["first"])
        renamed = only_job(report_of([job("new", "renamed_from: old", "H H * * *")], old))
        assert (renamed.seed, renamed.ticks.is_none, renamed.ticks.keep) == ("first", True, 7)

    def test_another_seed_moves_the_ticks(self) -> None:
        old = cluster(job("a", schedule="H 5 * * *"))
        moved = only_job(report_of([job("a", "hash_seed: b", "H 5 * * *")], old))
        assert (moved.seed, moved.ticks.move, moved.ticks.keep) == ("b", 7, 0)

    def test_to_take_the_key_away_keeps_the_seed(self) -> None:
        old = cluster(job("a", "hash_seed: b", "H 5 * * *"), seeds=["b"])
        kept = only_job(report_of([job("a", "queue: q", "H 5 * * *")], old))
        assert (kept.seed, kept.ticks.is_none) == ("b", True)


class TestPauses:
    def test_enabled_false_pauses_and_its_ticks_vanish(self) -> None:
        paused = only_job(report_of([job("a", "enabled: false")], cluster(job("a"))))
        assert (paused.fires.silent, paused.ticks.vanish, paused.ticks.appear) == ("enabled: false", 7, 0)

    def test_a_new_job_that_is_not_enabled_fires_nothing(self) -> None:
        assert only_job(report_of([job("a", "enabled: false")])).ticks.is_none

    def test_enabled_true_ends_a_pause_by_file(self) -> None:
        current = cluster(job("a", "enabled: false"), paused=["a"])
        again = only_job(report_of([job("a")], current, JobStanding(1, pause_reason="enabled: false")))
        assert (again.fired.silent, again.fires.silent, again.ticks.appear) == ("enabled: false", "", 7)

    def test_an_operators_pause_stays(self) -> None:
        current = cluster(job("a"), paused=["a"])
        still = only_job(report_of([job("a", schedule="0 6 * * *")], current, JobStanding(1, pause_reason="storage")))
        assert (still.fires.silent, still.ticks.is_none) == ("paused", True)

    def test_a_new_revision_ends_a_quarantine(self) -> None:
        current = [replace(one, is_quarantined=True) for one in cluster(job("a"))]
        again = only_job(report_of([job("a", "queue: q")], current))
        assert (again.fired.silent, again.ticks.appear, again.is_quarantined) == ("quarantined", 7, True)


class TestClaimsAndRuns:
    def test_claims_ahead_are_withdrawn_and_written_again(self) -> None:
        standing = JobStanding(1, ahead=1, ahead_upto=NOW + MINUTE, in_flight=(RunsInFlight(3, 2, NOW - MINUTE),))
        changed = only_job(report_of([job("a", schedule="* * * * *")], cluster(job("a")), standing))
        assert (changed.withdrawn, changed.rewritten) == (1, 1)
        assert changed.standing.in_flight == (RunsInFlight(3, 2, NOW - MINUTE),)

    def test_a_retired_job_writes_none_again(self) -> None:
        gone = only_job(report_of([], cluster(job("a")), JobStanding(1, ahead=2), prune=True))
        assert (gone.withdrawn, gone.rewritten) == (2, 0)

    def test_it_counts_from_the_last_tick_that_is_decided(self) -> None:
        """Invariant 2: no decided tick is repeated, and none is told to vanish."""
        upto = NOW + 3 * MINUTE
        changed = only_job(
            report_of(
                [job("a", schedule="*/2 * * * *")],
                cluster(job("a", schedule="* * * * *")),
                JobStanding(1, decided_upto=upto),
                window=timedelta(minutes=10),
            )
        )
        assert changed.ticks.since == upto
        assert changed.ticks.vanishing == (NOW + 5 * MINUTE, NOW + 7 * MINUTE, NOW + 9 * MINUTE)


def test_jobs_whose_schedules_change_alike_share_the_work_and_keep_their_own_jitter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[object] = []

    def comparing(*arguments: Any, **named: Any) -> TickChange:
        compared.append(arguments)
        return change_of_schedules(*arguments, **named)

    monkeypatch.setattr(plan_report, "change_of_schedules", comparing)
    files = [job(f"j{n}", more="timezone: Europe/Berlin, jitter: 10m") for n in range(20)]
    report = report_of(files, cluster(*(job(f"j{n}", more="jitter: 5m") for n in range(20))))
    assert len(report.jobs) == 20
    assert len(compared) == 1
    same = report_of([job(f"j{n}", more="jitter: 10m") for n in range(20)], cluster(*(job(f"j{n}") for n in range(20))))
    assert len(compared) == 2
    assert len({one.ticks.delays[0].after for one in same.jobs}) > 15
