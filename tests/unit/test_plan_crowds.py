"""Minutes in which too many jobs fall due, and proposals that take them apart."""

from __future__ import annotations

from datetime import timedelta

from sexton.jobfiles.plan_crowds import Crowds, FutureJob, find_crowds
from sexton.jobfiles.plan_schedules import ScheduleBook
from tests.support.plans import NOW, WEEK, cluster, definitions, report_of


def jobs(count: int, schedule: str = "0 2 * * *", name: str = "n", more: str = "") -> list[str]:
    return [
        f"{name}{number:03}: {{schedule: '{schedule}', command: [x]{', ' + more if more else ''}}}"
        for number in range(count)
    ]


def crowds_of(*lines: str, limit: int = 20, touched: bool = True, window: timedelta = WEEK) -> Crowds | None:
    future = [FutureJob(one, one.name, touched) for one in definitions(*lines)]
    return find_crowds(future, NOW, NOW + window, limit, ScheduleBook())


def found(*lines: str, limit: int = 20) -> Crowds:
    crowds = crowds_of(*lines, limit=limit)
    assert crowds is not None
    return crowds


def spread(*lines: str, limit: int = 20) -> tuple[dict[str, str], int]:
    (crowd,) = found(*lines, limit=limit).crowds
    assert crowd.spread is not None
    return dict(crowd.spread.schedules), crowd.spread.most


def test_as_many_as_allowed_are_no_crowd() -> None:
    assert crowds_of(*jobs(20)) is None
    (crowd,) = found(*jobs(21)).crowds
    assert (crowd.clocks, crowd.jobs, crowd.minutes, len(crowd.touched)) == (("02:00",), 21, 7, 21)


def test_a_crowd_that_the_plan_has_no_part_in_is_only_counted() -> None:
    assert crowds_of(*jobs(30), touched=False) is None
    others = [FutureJob(one, one.name, False) for one in definitions(*jobs(30, "0 4 * * *", "o"))]
    mine = [FutureJob(one, one.name, True) for one in definitions(*jobs(30))]
    crowds = find_crowds([*others, *mine], NOW, NOW + WEEK, 20, ScheduleBook())
    assert crowds is not None
    assert (len(crowds.crowds), crowds.others) == (1, 1)
    assert crowds.heat[4][0] == 30


def test_the_whole_cluster_counts_as_it_would_be_afterwards() -> None:
    twenty = jobs(20, name="c")
    report = report_of([*twenty, *jobs(1)], cluster(*twenty))
    assert report.crowds is not None
    assert (report.crowds.crowds[0].jobs, report.crowds.crowds[0].touched) == (21, ("n000",))
    moved = report_of([*jobs(20, "0 3 * * *", "c"), *jobs(1)], cluster(*twenty))
    assert moved.crowds is None


def test_a_paused_job_is_in_no_crowd() -> None:
    assert report_of(jobs(30, more="enabled: false")).crowds is None
    assert report_of(jobs(1), cluster(*jobs(20, name="c"), paused=[f"c{n:03}" for n in range(20)])).crowds is None


def test_jobs_of_several_zones_meet_in_one_minute_of_the_world() -> None:
    berlin = jobs(11, "0 3 * * *", "b", "timezone: Europe/Berlin")
    crowds = found(*berlin, *jobs(10, "0 2 * * *", "u"))
    assert (crowds.zone, crowds.crowds[0].clocks, crowds.crowds[0].jobs) == ("Europe/Berlin", ("03:00",), 21)
    assert crowds.heat[3][0] == 21


def test_jitter_takes_a_crowd_apart() -> None:
    assert crowds_of(*jobs(60, more="jitter: 10m")) is None
    assert found(*jobs(60)).crowds[0].jitter == "5m"
    assert found(*jobs(600)).crowds[0].jitter == "1h"
    assert found(*jobs(900)).crowds[0].jitter is None


def test_a_second_after_second_job_counts_once_a_minute() -> None:
    crowds = found(*jobs(21, "* * * * * *"))
    assert {count for hour in crowds.heat for count in hour} == {21}


class TestSpread:
    def test_a_fixed_minute_becomes_a_hash_in_its_hour(self) -> None:
        written, most = spread(*jobs(200))
        assert set(written.values()) == {"H 2 * * *"}
        assert len(written) == 200
        assert most <= 20

    def test_what_is_proposed_takes_the_crowd_apart(self) -> None:
        written, _ = spread(*jobs(200))
        lines = [f"{name}: {{schedule: '{text}', command: [x]}}" for name, text in written.items()]
        assert crowds_of(*lines) is None

    def test_where_an_hour_is_too_short_it_takes_several(self) -> None:
        written, most = spread(*jobs(150), limit=3)
        assert written["n000"].startswith("H H(2-")
        assert most <= 7

    def test_the_last_hours_of_a_day_go_backwards(self) -> None:
        written, _ = spread(*jobs(150, "0 23 * * *"), limit=3)
        assert written["n000"].split()[1].endswith("-23)")

    def test_steps_keep_their_period_and_seconds_their_place(self) -> None:
        assert spread(*jobs(30, "*/15 * * * *"))[0]["n000"] == "H/15 * * * *"
        assert spread(*jobs(30, "30 0 2 * * *"))[0]["n000"] == "30 H 2 * * *"
        assert spread(*jobs(30, "@daily"))[0]["n000"] == "H 0 * * *"

    def test_what_has_no_single_minute_is_left_to_jitter(self) -> None:
        (crowd,) = found(*jobs(30, "0,1 2 1 * *")).crowds
        assert (crowd.spread, crowd.jitter) == (None, "5m")

    def test_what_spreads_a_fuller_crowd_is_not_proposed_twice(self) -> None:
        crowds = found(*jobs(100), *jobs(30, "*/15 * * * *", "q"))
        full, other = crowds.crowds
        assert (full.jobs, other.jobs, other.spread, other.is_spread_by_another) == (130, 30, None, True)


def test_more_work_than_allowed_is_a_shorter_window() -> None:
    lines = [
        f"m{number}: {{schedule: {{every: 59s, anchor: '2026-01-01T00:00:0{number}Z'}}, command: [x]}}"
        for number in range(10)
    ]
    whole = crowds_of(*lines, limit=1)
    assert whole is not None
    assert whole.until == NOW + WEEK
    much = crowds_of(*lines, limit=1, window=timedelta(days=60))
    assert much is not None
    assert NOW < much.until < NOW + timedelta(days=60)
