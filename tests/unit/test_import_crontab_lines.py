"""Lines of a crontab: users, what is no job, how a file is written."""

from __future__ import annotations

import pytest

from sexton.jobfiles.importers.choices import ImportChoices, UserRule
from sexton.jobfiles.importers.crontab import import_crontab
from sexton.jobfiles.importers.findings import Verdict
from sexton.jobfiles.importers.job_file import written
from tests.support.crontabs import found, imported, the_error, the_job

SYSTEM = "17 * * * * root cd / && run-parts --report /etc/cron.hourly\n@daily www-data php /srv/artisan prune\n"


def test_a_user_has_a_queue() -> None:
    done = imported(SYSTEM)
    assert [job.keys["queue"] for job in done.jobs] == ["root", "www-data"]
    assert [job.name for job in done.jobs] == ["run-parts-cron.hourly", "artisan-prune"]
    assert [job.keys["queue"] for job in imported(SYSTEM, queue="web01").jobs] == ["web01-root", "web01-www-data"]


def test_a_user_can_be_left_to_sudo() -> None:
    job = imported(SYSTEM, users=UserRule.SUDO).jobs[1]
    assert job.keys["command"] == [
        *("sudo", "-n", "-H", "-u", "www-data", "--", "env", "PATH=/usr/bin:/bin"),
        *("/bin/sh", "-c", "php /srv/artisan prune"),
    ]
    assert job.keys["queue"] == "default"


def test_a_system_crontab_is_known_by_its_path() -> None:
    done = import_crontab(b"0 1 * * * backup /usr/bin/x\n", "/etc/cron.d/backup", ImportChoices())
    assert done.jobs[0].keys["shell"] == "/usr/bin/x"


@pytest.mark.parametrize("folder", ["/var/spool/cron/crontabs", "/var/spool/cron", "/var/cron/tabs"])
def test_a_crontab_in_its_spool_belongs_to_the_user_of_its_name(folder: str) -> None:
    done = import_crontab(b"@daily x\n", f"{folder}/deploy", ImportChoices(homes={"": "/home/deploy"}))
    assert (done.jobs[0].keys["queue"], done.jobs[0].keys["cwd"]) == ("deploy", "/home/deploy")
    assert any("start a worker as deploy" in finding.message for finding in done.findings)


def test_what_stands_after_a_user_is_told() -> None:
    (finding,) = found("@daily operator:wheel/staff x\n", Verdict.LEFT_OUT, has_user_column=True)
    assert ":wheel/staff" in finding.message
    assert the_job("@daily operator:wheel x\n", has_user_column=True).keys["queue"] == "operator"


# ------------------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("0~59 3 * * * x", "H(0-59)"),
        ("@every_minute x", "'* * * * *'"),
        ("@600 x", "every: 600s"),
        ("@every 5m x", "every: 5m"),
        ("@dayly x", "@daily"),
        ("@ daily x", "@daily"),
        ("-*/15 * * * * x", "remove it"),
        ("*/30 * * * * -ns x", "OpenBSD"),
        ("1\t5\tcron.daily\tnice run-parts /etc/cron.daily", "anacrontab"),
        ("60 * * * * x", "0-59"),
        ("* 24 * * * x", "midnight is hour 0"),
        ("22-4 * * * * x", "22-59,0-4"),
        ("*/90 * * * * x", "every: 90m"),
        ("5/15 * * * * x", "5-59/15"),
        ("1, 2 * * * * x", "comma"),
        ("0 0 31 2 * x", "never fires"),
        ("0 3 * * /usr/bin/x --y", "4 time fields"),
        ("0 3 * * tar czf x y", "4 time fields before 'tar'"),
        ("0 */5 * * * * x", "neither seconds nor years"),
        ("0 3 * * *", "no command"),
        ("0 3 * * * %x", "before its first '%'"),
        ("H 3 * * * x", "means nothing to crond"),
        ("*/5 * * * MONDAY x", "MONDAY"),
        ("A='open", "quote"),
        ("A='a' b", "after its closing quote"),
        ("=b", "no name"),
        ("export A=b", "write A=b"),
        ("SHELL /bin/bash", "write SHELL=/bin/bash"),
        ("hello world", "neither a job"),
        ("0 3 * * * x\0", "NUL"),
        ("1–3 * * * * x", "EN DASH"),
        ("0 3 * * mon–fri x", "'mon–fri', which is no weekday (it holds U+2013, EN DASH"),
        ("0 3 * * Montag /x", "'Montag', which is no weekday; write SUN to SAT, 0 to 7 or *, such as MON"),
        ("* * * * mno x", "such as MON"),
        ("0 3 * Sept * /x", "such as SEP"),
        ("3:00 x", "write 0 3 * * * and the command"),
        ("at 15.30 x", "write 30 15 * * * and the command"),
        ("-n x", "neither a job"),
        ("* * * * 8 x", "0 and 7 are Sunday"),
        ("<<<<<<< HEAD", "merge conflict"),
        ("=======", "merge conflict"),
    ],
)
def test_a_line_that_means_nothing_says_what_to_write(line: str, said: str) -> None:
    text = f"# one\n{line}\n@daily good\n"
    (finding,) = found(text, Verdict.ERROR)
    assert finding.line == 2
    assert said in finding.message
    assert [job.name for job in imported(text).jobs] == ["good"]


@pytest.mark.parametrize(
    ("line", "said"),
    [("0 3 * * * root", "no command"), ("0 3 * * * /usr/bin/x --y", "--no-system"), ("@daily", "no command")],
)
def test_a_line_without_its_user_says_so(line: str, said: str) -> None:
    assert said in the_error(f"{line}\n", has_user_column=True)


# ------------------------------------------------------------------------------------------------------------- bytes


def test_a_last_line_without_its_break_is_imported_with_a_warning() -> None:
    text = "@daily a\n@daily b"
    assert len(imported(text).jobs) == 2
    assert [finding.line for finding in found(text, Verdict.DIFFERS)] == [2]


def test_carriage_returns_are_no_part_of_commands() -> None:
    done = imported("A=1\r\n@daily x\r\n\r\n")
    assert done.jobs[0].keys["shell"] == "x"
    assert done.jobs[0].keys["env"] == {"A": "1", "PATH": "/usr/bin:/bin"}
    assert any("CR LF" in finding.message for finding in done.findings)


def test_a_byte_order_mark_is_removed_and_utf_16_read() -> None:
    for data in (b"\xef\xbb\xbf@daily x\n", "@daily x\n".encode("utf-16")):
        done = import_crontab(data, "crontab", ImportChoices())
        assert [job.keys["shell"] for job in done.jobs] == ["x"]
        assert any("byte-order mark" in finding.message for finding in done.findings)


def test_latin_1_is_read_and_told() -> None:
    done = import_crontab("@daily a\n@daily x /stra\xdfe\n".encode("latin-1"), "crontab", ImportChoices())
    assert done.jobs[1].keys["shell"] == "x /stra\xdfe"
    assert [f.line for f in done.findings if "not UTF-8" in f.message] == [2]


def test_what_no_job_file_can_hold_becomes_an_error() -> None:
    done = imported(f"@daily {'x' * 270_000}\n@daily good\n")
    assert done.counts["errors"] == 1
    long_value = imported(f"A={'x' * 140_000}\n@daily x\n")
    _, kept = written(long_value, ())
    assert kept.has_errors
    assert (kept.counts["jobs"], kept.counts["errors"]) == (0, 1)
