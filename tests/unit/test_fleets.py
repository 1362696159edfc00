"""`sexton compare`: a fleet led and racing, counted by the planner on virtual time."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sexton.decisions import PlannedJob
from sexton.jobfiles.load import load_job_text
from sexton.settings import ClusterSettings
from sexton_tui.simulation.filed_jobs import planned_jobs
from sexton_tui.simulation.fleet import Fleet, StrategyCost, compare
from tests.support.command_line import CommandLine

BEGIN = datetime(2026, 6, 1, tzinfo=UTC)
TEXTBOOK = Fleet(200, 10, 0, ClusterSettings(), BEGIN, BEGIN + timedelta(days=1))


def jobs(*schedules: str, count: int = 1) -> list[PlannedJob]:
    text = "version: 1\njobs:\n"
    text += "".join(
        f"  job{number}: {{schedule: '{cron}', command: ['true']}}\n" for number, cron in enumerate(schedules)
    )
    return planned_jobs([job.definition for job in load_job_text(text).jobs] * count, BEGIN)


def costs(fleet: Fleet, *schedules: str, count: int = 1) -> tuple[StrategyCost, StrategyCost]:
    return compare(fleet, jobs(*schedules, count=count))


def test_the_textbook_fleet_attempts_288000_times_for_1440_runs() -> None:
    led, raced = costs(TEXTBOOK, "* * * * *")
    assert (raced.ticks, raced.attempts, raced.conflicts) == (1_440, 288_000, 286_560)
    assert (led.ticks, led.attempts, led.conflicts) == (1_440, 1_440, 0)
    assert led.rows == raced.rows == 2 * 1_440  # the claim and the cursor, whoever wins


def test_jobs_alike_count_as_often_as_they_are_there() -> None:
    fleet = replace(TEXTBOOK, nodes=3, end=BEGIN + timedelta(hours=2))
    apart = [costs(fleet, cron) for cron in ("* * * * *", "*/7 * * * *")]
    for strategy, together in enumerate(costs(fleet, "* * * * *", "*/7 * * * *", count=5)):
        assert together.ticks == 5 * sum(cost[strategy].ticks for cost in apart)
        assert together.attempts == 5 * sum(cost[strategy].attempts for cost in apart)
        assert together.conflicts == 5 * sum(cost[strategy].conflicts for cost in apart)


def test_ticks_of_a_second_share_an_attempt() -> None:
    fleet = replace(TEXTBOOK, nodes=3, end=BEGIN + timedelta(hours=1))
    _, raced = costs(fleet, "* * * * * *")
    assert raced.ticks == 3_600
    assert raced.attempts < 3 * raced.ticks


def test_lost_leaders_delay_ticks_only_without_a_horizon_and_racers_none() -> None:
    led, raced = costs(replace(TEXTBOOK, nodes=2, failures=400, end=BEGIN + timedelta(hours=6)), "*/5 * * * * *")
    assert led.takeovers > 10
    assert (led.with_horizon.late, led.with_horizon.missed) == (0, 0)
    assert led.without_horizon.late > 0
    assert led.without_horizon.latest > timedelta(0)
    assert (raced.without_horizon.late, raced.without_horizon.missed, raced.takeovers) == (0, 0, 0)
    assert raced.attempts < 2 * led.attempts  # who is away does not race


def test_workers_poll_and_wake_for_starts_alike_under_both() -> None:
    led, raced = costs(replace(TEXTBOOK, workers=4, end=BEGIN + timedelta(hours=1)), "* * * * *")
    assert led.pulls == raced.pulls
    assert 4 * 720 <= led.pulls <= 4 * (720 + 60 + 1)


def test_the_command_says_it_side_by_side_and_what_stops(tmp_path: Path) -> None:
    command = CommandLine(tmp_path)
    done = command.run("compare", "--nodes", "200", "--minutely", "1")
    assert done.returncode == 0, done.stderr
    assert "288,000" in done.stdout
    assert "nothing: it is not used" in done.stdout
    told = json.loads(command.run("compare", "--minutely", "1", "--hours", "1", "--output", "json").stdout)
    assert [row["strategy"] for row in told["strategies"]] == ["leader", "race"]
    assert [row["attempts_a_tick"] for row in told["strategies"]] == [1.0, 3.0]
    assert command.run("compare").returncode == 2
    assert command.run("compare", "--minutely", "1", "--horizon", "5s").returncode == 1
