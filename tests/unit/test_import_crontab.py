"""Crontabs to jobs: the case files with their counts, then one fact a test."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from sexton.jobfiles.importers.choices import ImportChoices
from sexton.jobfiles.importers.crontab import import_crontab
from sexton.jobfiles.importers.findings import Verdict
from sexton.jobfiles.importers.job_file import written
from sexton.jobfiles.load import load_job_text
from tests.support.crontabs import found, imported, the_error, the_job

CASES = Path(__file__).parent.parent / "cases" / "crontabs.txt"
COUNTED = ("jobs", "env", "reboot", "disabled", "errors")


def case_files() -> list[tuple[str, bytes]]:
    """Each file of the cases with the line that opens it."""
    parts = re.split(rb"^(#= FILE .*\n)", CASES.read_bytes(), flags=re.MULTILINE)[1:]
    return [(head.decode().strip(), body) for head, body in zip(parts[::2], parts[1::2], strict=True)]


# --------------------------------------------------------------------------------------------------- the case files


@pytest.mark.parametrize(("head", "body"), case_files(), ids=[head[3:9].strip() for head, _ in case_files()])
def test_a_case_file_gives_the_counts_of_its_header(head: str, body: bytes) -> None:
    wanted = {what: int(number) for what, number in re.findall(r"(\w+)=(\d+)", head)}
    choices = ImportChoices(has_user_column="user_column=yes" in head)
    done = import_crontab(body, "crontab", choices)
    assert {what: done.counts[what] for what in COUNTED} == {what: wanted[what] for what in COUNTED}
    text, kept = written(done, ("imported",))
    loaded = load_job_text(text)
    assert [job.name for job in loaded.jobs] == [job.name for job in kept.jobs]
    assert len(loaded.jobs) == wanted["jobs"]


@pytest.mark.parametrize(("head", "body"), case_files(), ids=[head[3:9].strip() for head, _ in case_files()])
def test_the_user_column_of_a_case_file_is_seen_without_being_told(head: str, body: bytes) -> None:
    guessed = import_crontab(body, "crontab", ImportChoices())
    told = import_crontab(body, "crontab", ImportChoices(has_user_column="user_column=yes" in head))
    assert guessed.counts == told.counts


@pytest.mark.parametrize(("head", "body"), case_files(), ids=[head[3:9].strip() for head, _ in case_files()])
def test_every_line_of_a_case_file_is_counted_once(head: str, body: bytes) -> None:
    done = import_crontab(body, "crontab", ImportChoices(has_user_column="user_column=yes" in head))
    assert sum(done.counts.values()) == body.count(b"\n")


# ------------------------------------------------------------------------------------------------------- the command


@pytest.mark.parametrize(
    ("line", "command", "stdin"),
    [
        ("0 3 * * * tar x-$(date +\\%F).tgz", "tar x-$(date +%F).tgz", None),
        ("0 3 * * * mail me%Hello%there", "mail me", "Hello\nthere\n"),
        ("0 3 * * * mail me%100\\% sure", "mail me", "100% sure\n"),
        ("0 3 * * * cat%", "cat", None),
        ("0 3 * * * cat%a\\b", "cat", "a\\b\n"),
        ("0 3 * * * echo a\\\\%b", "echo a\\\\", "b\n"),
        ("0 3 * * *\techo  a   b", "echo  a   b", None),
        ("@daily x # no comment to crond", "x # no comment to crond", None),
    ],
)
def test_a_percent_ends_the_command_unless_it_is_escaped(line: str, command: str, stdin: str | None) -> None:
    job = the_job(line + "\n")
    assert job.keys["shell"] == command
    assert job.keys.get("stdin") == stdin


def test_another_shell_becomes_a_command_for_it() -> None:
    job = the_job("SHELL=/bin/bash\n0 3 * * * [[ -e x ]] && y\n")
    assert job.keys["command"] == ["/bin/bash", "-c", "[[ -e x ]] && y"]
    assert "shell" not in job.keys


def test_a_shell_that_is_no_path_is_an_error_and_its_jobs_do_not_run() -> None:
    text = "SHELL=/bin/bash # mine\n0 3 * * * x\n"
    assert "no path of a shell" in the_error(text)
    assert the_job(text).keys["enabled"] is False


def test_a_command_that_ends_in_a_percent_has_no_input() -> None:
    (finding,) = found("0 3 * * * cat%\n", Verdict.NOTE)
    assert "input is empty" in finding.message
    assert found("0 3 * * * date +\\%\n", Verdict.NOTE) == []


def test_a_date_format_that_crond_cuts_off_is_told() -> None:
    (finding,) = found("0 3 * * * tar czf /b-$(date +%F).tgz /x\n", Verdict.DIFFERS)
    assert "date format" in finding.message


# ------------------------------------------------------------------------------------------------------- assignments


def test_assignments_hold_for_the_lines_below_them() -> None:
    first, second = imported("A=1\n0 3 * * * x\nA='two words'\nB = b \n0 4 * * * y\n").jobs
    assert first.keys["env"] == {"A": "1", "PATH": "/usr/bin:/bin"}
    assert second.keys["env"] == {"A": "two words", "B": "b", "PATH": "/usr/bin:/bin"}


def test_an_assignment_that_no_job_has_is_told() -> None:
    (finding,) = found("0 3 * * * x\nLATE=1\n", Verdict.LEFT_OUT)
    assert (finding.line, "LATE" in finding.message) == (2, True)


def test_home_is_the_working_folder() -> None:
    assert the_job("HOME=/var/lib/build\n@daily x\n").keys["cwd"] == "/var/lib/build"
    assert the_job("@daily x\n", homes={"": "/home/deploy"}).keys["cwd"] == "/home/deploy"
    assert "cwd" not in the_job("@daily x\n").keys


def test_mailto_is_told_and_names_the_owner() -> None:
    text = 'MAILTO="ops@shop.example"\n@daily x\n'
    job = the_job(text)
    assert job.keys["owner"] == "ops@shop.example"
    assert job.keys["env"] == {"PATH": "/usr/bin:/bin"}
    assert [finding.line for finding in found(text, Verdict.LEFT_OUT)] == [1]


def test_mailto_stays_in_the_environment_of_a_command_that_reads_it() -> None:
    job = the_job('MAILTO=a@b.example\n@daily report | mail "$MAILTO"\n')
    assert job.keys["env"] == {"MAILTO": "a@b.example", "PATH": "/usr/bin:/bin"}


def test_cron_tz_holds_until_the_next_one_and_an_empty_one_ends_it() -> None:
    text = "CRON_TZ=Europe/Berlin\n@daily a\nCRON_TZ='Asia/Kathmandu'\n@daily b\nCRON_TZ=\n@daily c\n"
    zones = [job.keys["timezone"] for job in imported(text, timezone="America/New_York").jobs]
    assert zones == ["Europe/Berlin", "Asia/Kathmandu", "America/New_York"]


def test_an_unknown_zone_is_an_error_and_its_jobs_do_not_run() -> None:
    text = "CRON_TZ=Mars/Olympus\n@daily a\nCRON_TZ=UTC\n@daily b\n"
    assert "CRON_TZ" in the_error(text)
    assert [job.keys.get("enabled", True) for job in imported(text).jobs] == [False, True]


@pytest.mark.parametrize(
    ("broken", "mended"),
    [
        ('CRON_TZ="Europe/Berlin', "CRON_TZ=Europe/Berlin"),
        ("CRON_TZ Europe/Berlin", "CRON_TZ=Europe/Berlin"),
        ("CRON_TZ: Europe/Berlin", "CRON_TZ=Europe/Berlin"),
        ('PATH="/opt/bin:/bin', "PATH=/opt/bin"),
        ("PATH='/opt/bin' # mine", "PATH=/opt/bin"),
        ("PATH+=/opt/bin", "PATH=/opt/bin"),
        ("$PATH=/opt/bin", "PATH=/opt/bin"),
        ('"PATH=/opt/bin', "PATH=/opt/bin"),
        ("export HOME=/srv", "HOME=/srv"),
        ("setenv SHELL /bin/bash", "SHELL=/bin/bash"),
        ("SHELL=bash -e", "SHELL=/bin/bash"),
        ("RANDOM_DELAY 5", "RANDOM_DELAY=5"),
    ],
)
def test_what_stands_below_an_assignment_in_error_does_not_run(broken: str, mended: str) -> None:
    done = imported(f"@daily above\n{broken}\n@daily below\n{mended}\n@daily good\n")
    assert [job.keys.get("enabled", True) for job in done.jobs] == [True, False, True]
    assert [f.line for f in done.findings if f.verdict is Verdict.ERROR and "enabled: false" in f.message] == [2]
    assert any(f.job == "below" and "(line 2)" in f.message for f in done.findings)


@pytest.mark.parametrize("line", ["hello world", "MAILTO='open", "0 3 * * x", "just=one=two words", "MAILFROM me"])
def test_other_lines_in_error_pause_nothing(line: str) -> None:
    assert [job.keys.get("enabled", True) for job in imported(f"{line}\n@daily good\n").jobs] == [True]


def test_a_command_that_reads_an_address_in_error_does_not_run() -> None:
    assert the_job("MAILTO='open\n@daily report | mail $MAILTO\n").keys["enabled"] is False


def test_the_two_sides_of_a_merge_conflict_do_not_run() -> None:
    done = imported("@daily a\n<<<<<<< HEAD\n@daily b\n=======\n@daily c\n>>>>>>> main\n")
    assert [job.keys.get("enabled", True) for job in done.jobs] == [True, False, False]


def test_random_delay_is_jitter() -> None:
    assert the_job("RANDOM_DELAY=10\n@daily x\n").keys["jitter"] == "10m"
    assert "jitter" not in the_job("RANDOM_DELAY=soon\n@daily x\n").keys


def test_variables_are_not_expanded() -> None:
    job = the_job("PATH=$HOME/bin:$PATH\n@daily x\n")
    assert job.keys["env"] == {"PATH": "$HOME/bin:$PATH"}


# ----------------------------------------------------------------------------------------------------------- meaning


def test_a_job_keeps_what_crond_does() -> None:
    keys = the_job("*/5 * * * * x\n", timezone="Europe/Berlin").keys
    assert keys["overlap"] == "allow"
    assert keys["missed"] == {"policy": "skip", "start_within": "10m"}
    assert keys["on_worker_lost"] == "fail"
    assert keys["timezone"] == "Europe/Berlin"


@pytest.mark.parametrize("command", ["flock -n /l x", "flock -xn /l x", "/usr/bin/flock -w 0 -n /l x", "run-one x"])
def test_a_lock_that_leaves_is_overlap_skip(command: str) -> None:
    assert the_job(f"* * * * * {command}\n").keys["overlap"] == "skip"


def test_a_lock_that_waits_is_not() -> None:
    assert the_job("* * * * * flock /l x\n").keys["overlap"] == "allow"


@pytest.mark.parametrize(
    ("command", "question"),
    [
        ('[ "$(date -d tomorrow +\\%d)" = 01 ] && month-end', "["),
        ("[ -x /bin/a ] && [ -d /b ] && /bin/a > /dev/null 2>&1", "["),
        ("test -f x && y && z", "test"),
        ("cd /srv; grep -q a b && mail me", "grep"),
        ("ps aux | grep -v root", "grep"),
        ("(cd / && [[ -e x ]] && y)", "[["),
        ("{ test -e x && y; }", "test"),
        ("! pgrep x && y", "pgrep"),
        ("command -v sa1 > /dev/null && sa1 1 1", "command"),
        ("systemctl is-active --quiet x && y", "systemctl"),
        ("/bin/sh -c 'test -f x && y'", "test"),
        ("nice -n 19 flock /l -c 'diff a b'", "diff"),
    ],
)
def test_a_command_that_exits_1_for_a_no_is_told(command: str, question: str) -> None:
    told = [f.message for f in found(f"@daily {command}\n", Verdict.DIFFERS) if "success_codes" in f.message]
    assert [message.split()[1] for message in told] == [question]


@pytest.mark.parametrize(
    "command",
    [
        "[ -f x ] && y || true",
        "test -x /usr/sbin/anacron || ( cd / && run-parts /x )",
        "grep -q a b && c; exit 0",
        "if [ -f x ]; then y; fi",
        "grep a b | mail me",
        "a && b",
        "x '&& [ a ]' \"$(grep a b)\" # && grep",
        "x $(a | grep b)",
        "test -f x && y &",
        "for f in *; do test -f x && y; done",
    ],
)
def test_a_command_that_exits_as_its_work_does_is_not(command: str) -> None:
    assert not [f for f in found(f"@daily {command}\n", Verdict.DIFFERS) if "success_codes" in f.message]


def test_a_lock_that_leaves_says_how_it_exits() -> None:
    assert ["exits 1" in f.message for f in found("* * * * * flock -n /l x\n", Verdict.DIFFERS)] == [True]
    assert ["exits 1" in f.message for f in found("* * * * * flock -n -E 0 /l x\n", Verdict.DIFFERS)] == [False]


def test_reboot_is_left_out_with_its_line() -> None:
    text = "@daily x\n@reboot start\n"
    assert [finding.line for finding in found(text, Verdict.LEFT_OUT)] == [2]
    assert len(imported(text).jobs) == 1


def test_a_job_that_is_commented_out_is_listed_and_written_when_asked() -> None:
    text = "#0 5 * * * old\n# 0 5 * * * is a time\n#@daily older\n# @daily is an alias\n# m h dom mon dow command\n"
    done = imported(text)
    assert (done.jobs, [job.line for job in done.disabled]) == ((), [1, 2, 3])
    asked = imported(text, with_disabled=True)
    assert [job.keys["enabled"] for job in asked.jobs] == [False, False, False]


def test_what_templates_show_is_no_job() -> None:
    text = "# *  *  *  *  * user-name command to be executed\n# 0 5 * * 1 tar -zcf /var/backups/home.tgz /home/\n"
    assert imported(text).counts["disabled"] == 0
    assert imported(text, has_user_column=True).counts["disabled"] == 0


def test_the_file_tells_line_and_place_of_each_job_and_what_differs() -> None:
    text, _ = written(imported("* * * * * flock -n /l x\n"), ("By me",))
    keys: Mapping[str, object] = dict(part.split(": ", 1) for part in text.splitlines() if ": " in part)
    assert "# By me" in text
    assert "# crontab:1\n  #   * * * * * flock -n /l x\n  # differs: its lock" in text
    assert keys["    overlap"] == "skip"
