"""What enter opens in the console, printed by commands: a worker, a queue, a node, an event, a setting, a revision, a
job's calendar and durations. Over the scene in a SQLite file at the host's time."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from sexton_tui.cli.output import instant_text
from tests.support import scene
from tests.support.command_line import CommandLine
from tests.support.ledgers import make_ledger


class Looking(CommandLine):
    """`sexton` on the scene, which was seeded at ``now``."""

    def __init__(self, folder: Path, *, hostile: bool = False) -> None:
        super().__init__(folder)
        self.now = datetime.now(UTC).replace(microsecond=0)
        self._database = f"sqlite:///{folder}/ledger.db"
        make_ledger(self._database)
        engine = create_engine(self._database)
        with engine.begin() as connection:
            scene.seed(connection, self.now, hostile=hostile)
        engine.dispose()

    def text(self, *arguments: str) -> str:
        done = self.run(*arguments, "--database", self._database)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def data(self, *arguments: str) -> Any:
        return json.loads(self.text(*arguments, "--output", "json"))

    def refusal(self, *arguments: str) -> tuple[int, str]:
        done = self.run(*arguments, "--database", self._database)
        assert done.stdout == ""
        return done.returncode, done.stderr


@pytest.fixture
def look(tmp_path: Path) -> Looking:
    return Looking(tmp_path)


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Looking:
    """The scene once, for what hangs on no age."""
    return Looking(tmp_path_factory.mktemp("still"))


def test_a_worker_is_told_with_what_it_runs_and_without_the_keys_of_the_console(look: Looking) -> None:
    told, data = look.text("workers", "show", "worker-1"), look.data("workers", "show", "worker-1")
    assert "is         serves" in told
    assert "drains it" not in told
    assert data["state"] == "serves"
    (claim,) = data["claims"]
    assert claim["job"] in told.split("Runs 1 claim")[1]
    assert claim["runs_for"] >= 0


def test_a_queue_is_told_by_priority_with_what_waits_longest(still: Looking) -> None:
    told, data = still.text("queues", "show", "gpu"), still.data("queues", "show", "gpu")
    assert "workers    none" in told
    assert told.count("train-model") == len(data["waiting"]) == 3
    assert [depth["due"] for depth in data["depths"]] == [3]
    assert data["waiting"][0]["waits_for"] >= data["waiting"][-1]["waits_for"]


def test_a_node_is_told_with_the_terms_it_led(look: Looking) -> None:
    told, data = look.text("cluster", "sched-2"), look.data("cluster", "sched-2")
    assert "sched-2  leader" in told
    assert "may lead   yes\n" in told
    assert [term["term"] for term in data["led"]] == [41]
    assert "\n  41  " in told


def test_an_event_is_told_whole_and_older_ones_follow_it(look: Looking) -> None:
    newest, *older = look.data("events")
    assert look.data("events", str(newest["event_id"])) == newest
    assert f"event {newest['event_id']}\n" in look.text("events", str(newest["event_id"]))
    assert look.data("events", "--before", str(newest["event_id"])) == older
    assert str(older[0]["event_id"]) in look.text("events").splitlines()[2].split()


def test_a_setting_is_told_with_its_meaning_and_its_changes(look: Looking) -> None:
    look.text("settings", "set", "horizon", "90s")
    told, data = look.text("settings", "show", "horizon"), look.data("settings", "show", "horizon")
    assert "How far ahead claims are written" in told
    assert data["value"] == "1m30s"
    assert [change["detail"]["key"] for change in data["changes"]] == ["horizon"]
    assert "1m to 1m30s" in told


def test_a_revision_is_told_with_who_made_it(still: Looking) -> None:
    told, data = (
        still.text("history", "sync-eu", "--revision", "1"),
        still.data("history", "sync-eu", "--revision", "1"),
    )
    assert "revision 1, the newest" in told
    assert (data["revision"], data["newest"], data["who"]) == (1, 1, "ana")


def test_a_calendar_counts_each_day_on_the_clock_that_is_asked_for(still: Looking) -> None:
    days = still.data("runs", "sync-eu", "--calendar")
    runs = still.data("runs", "sync-eu", "--limit", "1000")
    assert days[-1]["day"] == f"{still.now:%Y-%m-%d}"
    assert sum(day["runs"] for day in days) == len(runs)
    assert sum(day["failed"] for day in days) == sum(run["state"] == "failed" for run in runs) > 0
    (midnight,) = {day["start"][11:13] for day in still.data("runs", "sync-eu", "--calendar", "--tz", "Asia/Tokyo")}
    assert midnight == "15"
    told = still.text("runs", "sync-eu", "--calendar")
    assert "Runs a day" in told
    assert "Failures a day" in told
    assert "\nMon " in told


def test_runs_as_of_another_time_are_those_that_had_ended(look: Looking) -> None:
    then = look.now - timedelta(minutes=5)
    runs = look.data("runs", "--before", instant_text(then), "--limit", "1000")
    assert runs
    assert all(datetime.fromisoformat(run["finished_at"]) < then for run in runs)
    assert len(runs) < len(look.data("runs", "--limit", "1000"))


def test_ticks_between_two_instants(look: Looking) -> None:
    first, last = look.now - timedelta(minutes=10), look.now - timedelta(minutes=5)
    ticks = look.data("ticks", "minutely-sync", "--after", instant_text(first), "--before", instant_text(last))
    assert len(ticks) == 5 - (first.second == 0)
    assert all(first < datetime.fromisoformat(tick["tick"]) < last for tick in ticks)


def test_a_job_is_told_with_how_long_its_runs_took(still: Looking) -> None:
    assert "How long the newest runs took" in still.text("jobs", "minutely-sync")
    durations = still.data("jobs", "minutely-sync")["durations"]
    assert [one["tick"] for one in durations] == sorted(one["tick"] for one in durations)
    assert all(one["took"] > 0 for one in durations)


def test_jobs_go_by_name_by_state_or_the_newest_failure_first(still: Looking) -> None:
    names = [job["job"] for job in still.data("jobs")]
    assert names == sorted(names)
    by_state = [job["state"] for job in still.data("jobs", "--sort", "state")]
    assert by_state[:2] == ["quarantined", "paused"]
    assert still.data("jobs", "--sort", "failure")[0]["job"] == "sync-eu"
    assert still.data("jobs", "--find", "sync-eu")[0]["success_rate"] == 0
    assert "X" * 6 in still.text("jobs", "--find", "sync-eu")  # as ASCII, for what takes this output has no encoding


def test_status_tells_its_pace_as_data(look: Looking) -> None:
    done = look.run("status", "-o", "json", "--database", f"sqlite:///{look.folder}/ledger.db")
    told = json.loads(done.stdout)
    started = told["lateness"]["count"] / told["lateness"]["within"]
    assert started > 0
    assert told["pace"] == {"ticks_a_second": started, "lost_races": 0, "stale_writes_refused": 1}


def test_no_stored_text_acts_on_the_terminal_where_a_thing_is_opened(tmp_path: Path) -> None:
    look, name = Looking(tmp_path, hostile=True), scene.HOSTILE_NAME
    event = next(event for event in look.data("events") if event["job"] == name)
    assert "\x1b" in name
    for opened in (
        ("jobs", name),
        ("runs", name, "--calendar"),
        ("history", name, "--revision", "1"),
        ("events", str(event["event_id"])),
        ("queues", "show", "default"),
        ("workers", "show", "worker-2"),
        ("jobs", "--sort", "failure"),
    ):
        told = look.text(*opened)
        assert told
        assert not set(told) & set("\x1b\x07\u202e\x9b"), opened


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("workers", "show", "nobody"), 1, "`sexton workers` lists those that were"),
        (("queues", "show", "nothing"), 1, "`sexton queues` lists those that have"),
        (("cluster", "nobody"), 1, "`sexton cluster` lists those that were"),
        (("events", "4711"), 1, "there is no event 4711"),
        (("settings", "show", "horizont"), 1, "the settings are strategy, horizon"),
        (("history", "--revision", "1"), 2, "--revision is one of a JOB"),
        (("history", "sync-eu", "--revision", "9"), 1, "its revisions are 1 to 1"),
        (("runs", "--calendar"), 2, "--calendar is of all runs of one JOB"),
        (("runs", "sync-eu", "--calendar", "--state", "failed"), 2, "leave other filters out"),
        (("runs", "sync-eu", "--calendar", "--tz", "Nowhere"), 2, "'Nowhere' is not in the zone database"),
        (("runs", "sync-eu", "--tz", "UTC"), 2, "--tz goes with --calendar"),
        (("runs", "sync-eu", "--before", "soon"), 2, "--before: 'soon'"),
        (("runs", "sync-eu", "2026-03-29T01:00:00Z", "--before", "2026-03-29T01:00:00Z"), 2, "goes without a TICK"),
    ],
)
def test_what_is_not_there_and_what_makes_no_sense_is_said(
    still: Looking, arguments: tuple[str, ...], code: int, said: str
) -> None:
    found, sentence = still.refusal(*arguments)
    assert found == code
    assert said in sentence
