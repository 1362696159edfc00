"""`sexton next`: lists, notes, job files and the calendar."""

from __future__ import annotations

import contextlib
import io
import json
import os
from pathlib import Path
from unittest import mock

import pytest

from sexton_tui.cli.main import run
from tests.support.command_line import CommandLine

JOBS = """\
version: 1
defaults: {timezone: Europe/Berlin}
jobs:
  billing:
    schedule: ["0 3 * * *", "30 2 * * *"]
    jitter: 15m
    exclude: {weekdays: [SAT]}
    shell: x
  hashed: {schedule: "H H * * *", shell: x}
"""
BERLIN = ("--tz", "Europe/Berlin")
NIGHT = ("30 2 * * *", *BERLIN, "--after", "2026-03-27T12:00:00Z", "-n", "3")


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    (tmp_path / "jobs.yaml").write_text(JOBS)
    return CommandLine(tmp_path)


def lines_of(command: CommandLine, *arguments: str) -> list[str]:
    done = command.run("next", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_a_list_shows_utc_local_time_and_what_the_clock_does(command: CommandLine) -> None:
    assert lines_of(command, *NIGHT) == [
        "UTC                   Europe/Berlin                 offset  note",
        "2026-03-28T01:30:00Z  Sat 2026-03-28 02:30:00 CET   +0100",
        "2026-03-29T01:00:00Z  Sun 2026-03-29 03:00:00 CEST  +0200   instead of 02:30",
        "2026-03-30T00:30:00Z  Mon 2026-03-30 02:30:00 CEST  +0200",
    ]
    autumn = lines_of(command, "*/30 * * * *", *BERLIN, "--after", "2026-10-24T23:30:00Z", "-n", "4")
    assert [line[60:] for line in autumn] == ["note", "first of two", "first of two", "second of two", "second of two"]
    noon = lines_of(command, "0 12 * * *", *BERLIN, "--after", "2026-03-28T12:00:00Z", "-n", "2")
    assert [line[60:] for line in noon] == ["note", "clock +1h today", ""]


def test_without_anything_to_say_there_is_no_note(command: CommandLine) -> None:
    lines = lines_of(command, "0 12 * * *", *BERLIN, "--after", "2026-05-01T00:00:00Z", "-n", "1")
    assert lines == [
        "UTC                   Europe/Berlin                 offset",
        "2026-05-01T10:00:00Z  Fri 2026-05-01 12:00:00 CEST  +0200",
    ]


def test_json_is_a_list_of_instants(command: CommandLine) -> None:
    ticks = ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]
    assert json.loads(command.run("next", *NIGHT, "-o", "json").stdout) == ticks
    assert [json.loads(line) for line in lines_of(command, *NIGHT, "-o", "jsonl")] == ticks


def test_a_job_of_a_file_shows_its_excluded_days_and_its_jitter(command: CommandLine) -> None:
    arguments = ("--file", "jobs.yaml", "--job", "BILLING", "--after", "2026-03-27T02:30:00Z", "-n", "2")
    lines = lines_of(command, *arguments)
    assert lines[0].split() == ["UTC", "Europe/Berlin", "available", "note"]
    assert lines[1].startswith("2026-03-29T01:00:00Z  Sun 2026-03-29 03:00:00 CEST  03:")  # no Saturday
    assert lines[1].endswith("  also for 02:30")
    assert lines_of(command, *arguments)[1:] == lines[1:]
    delays = {line[52:60] for line in lines_of(command, *arguments[:-1], "30")[1:]}
    assert len(delays) > 20
    assert all("02:30:00" <= delay <= "03:15:00" for delay in delays)


def test_a_hashed_job_of_a_file_needs_no_seed(command: CommandLine) -> None:
    by_name = command.run("next", "--file", ".", "--job", "hashed", "-o", "json").stdout
    by_seed = command.run("next", "H H * * *", *BERLIN, "--hash-seed", "hashed", "-o", "json").stdout
    assert json.loads(by_name) == json.loads(by_seed)


def test_the_calendar_is_of_the_next_tick_s_month_or_of_the_one_asked_for(command: CommandLine) -> None:
    arguments = ("30 2 * * *", *BERLIN, "--calendar", "--after", "2026-03-31T12:00:00Z")
    assert lines_of(command, *arguments)[0] == "April 2026, Europe/Berlin  30 2 * * *"
    asked = lines_of(command, *arguments, "--month", "2026-10")
    assert asked[0] == "October 2026, Europe/Berlin  30 2 * * *"
    assert asked[2].split() == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    assert asked[-2:] == [
        "~ 25  the clock goes from 03:00 to 02:00 (+02:00 to +01:00)",
        "  25  02:30 comes twice: the first, CEST",
    ]
    leap = lines_of(command, "0 5 29 2 *", "--calendar", "--month", "2027-02")
    assert "0 ticks on 0 days" in leap


def test_the_calendar_as_json_has_every_day(command: CommandLine) -> None:
    arguments = ("--file", "jobs.yaml", "--job", "billing", "--calendar", "--month", "2026-03")
    days = json.loads(command.run("next", *arguments, "-o", "json").stdout)
    assert [day["day"] for day in days] == [f"2026-03-{number:02}" for number in range(1, 32)]
    assert [day["ticks"] for day in days[26:]] == [2, 0, 1, 2, 2]
    assert (days[27]["excluded"], days[28]["excluded"]) == ("a Saturday", None)
    assert days[28]["clock"] == ["the clock goes from 02:00 to 03:00 (+01:00 to +02:00)"]
    assert [json.loads(line) for line in lines_of(command, *arguments, "-o", "jsonl")] == days


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("0 5 * * *", "--file", "jobs.yaml"), "--file goes with --job"),
        (("0 5 * * *", "--month", "2026-03"), "--month goes with --calendar"),
        (("0 5 * * *", "--calendar", "--count", "3"), "--count goes with a list"),
        (("0 5 * * *", "--calendar", "--month", "March"), "'March' is not a month; write e.g. 2026-03"),
        (("0 5 * * *", "--calendar", "--month", "2026-00"), "is not a month"),
        (("0 5 * * *", "--calendar", "--month", "1066-10"), "outside the years 1900 to 2199"),
        (("--job", "billing", "--file", "jobs.yaml", *BERLIN), "a job has its own"),
    ],
)
def test_what_does_not_go_together_is_wrong_usage(command: CommandLine, arguments: tuple[str, ...], says: str) -> None:
    done = command.run("next", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_a_job_that_is_not_in_the_file_is_not_found(command: CommandLine) -> None:
    done = command.run("next", "--file", "jobs.yaml", "--job", "biling")
    assert done.returncode == 1
    assert "jobs.yaml has no job 'biling'" in done.stderr
    assert "billing, hashed" in done.stderr


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("environment", "has_colour"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_colour_unless_it_wants_none(environment: dict[str, str], has_colour: bool) -> None:
    screen = _Terminal()
    known = {"TERM": "xterm-256color", "COLUMNS": "80", "PATH": os.environ["PATH"], **environment}
    with mock.patch.dict(os.environ, known, clear=True), contextlib.redirect_stdout(screen):
        assert run(["next", "30 2 * * *", *BERLIN, "--calendar", "--month", "2026-10"]) == 0
    assert ("\x1b[36m×1" in screen.getvalue()) is has_colour
    assert "\x1b[35m" not in screen.getvalue() or has_colour
    assert "25 " in screen.getvalue()
