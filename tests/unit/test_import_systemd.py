"""systemd timers to jobs: OnCalendar by a table whose ticks systemd 252 gave, and each setting's fate."""

from __future__ import annotations

from typing import Any

import pytest

from sexton.jobfiles.importers.choices import ImportChoices, UserRule
from sexton.jobfiles.importers.findings import Imported, ImportedJob, Verdict
from sexton.jobfiles.importers.job_file import written
from sexton.jobfiles.importers.on_calendar import NotCalendar, read_on_calendar
from sexton.jobfiles.importers.systemd_timers import import_systemd
from sexton.jobfiles.importers.unit_files import UnitSource
from sexton.jobfiles.load import load_job_text

SERVICE = "[Service]\nType=oneshot\nExecStart=/usr/bin/backup --all\n"


def imported(timer: str, service: str | None = SERVICE, *, drop_in: str = "", **choices: Any) -> Imported:
    sources = [UnitSource("backup.timer", "backup.timer", timer)]
    if drop_in:
        sources.append(UnitSource("backup.timer", "backup.timer.d/more.conf", drop_in))
    if service is not None:
        sources.append(UnitSource("backup.service", "backup.service", service))
    by_systemctl = bool(choices.pop("by_systemctl", False))
    chosen = ImportChoices(**choices)
    done = import_systemd(sources, chosen, by_systemctl=by_systemctl)
    text, kept = written(done, ())
    assert (
        [job.name for job in load_job_text(text).jobs] == [job.name for job in done.jobs] == [j.name for j in kept.jobs]
    )
    return done


def the_job(timer: str, service: str | None = SERVICE, **choices: Any) -> ImportedJob:
    (job,) = imported(timer, service, **choices).jobs
    return job


def serving(lines: str, **choices: Any) -> ImportedJob:
    """The job of a daily timer whose service has these lines."""
    return the_job("[Timer]\nOnCalendar=daily\n", f"[Service]\n{lines}\n", **choices)


def said(done: Imported, verdict: Verdict) -> list[tuple[str, int, str]]:
    return [(f.file, f.line, f.message.partition(":")[0]) for f in done.findings if f.verdict is verdict and f.line]


# ------------------------------------------------------------------------------------------------------- OnCalendar


@pytest.mark.parametrize(
    ("text", "cron"),
    [
        ("minutely", "* * * * *"),
        ("Weekly", "0 0 * * MON"),
        ("quarterly", "0 0 1 1,4,7,10 *"),
        ("Mon..Fri *-*-* 02:00:00", "0 2 * * MON-FRI"),
        ("Mon,Wed-Fri 1:00", "0 1 * * MON,WED-FRI"),
        ("Sat,Thu,Mon..Wed 3:00", "0 3 * * MON-THU,SAT"),
        ("Wed, 17:48", "48 17 * * WED"),
        ("sunday", "0 0 * * SUN"),
        ("mon..sun", "0 0 * * *"),
        ("*:0/15", "0/15 * * * *"),
        ("*:*:0/10", "0/10 * * * * *"),
        ("*-*-* 00/6:00", "0 0/6 * * *"),
        ("*-*-* 8..18/2:00", "0 8-18/2 * * *"),
        ("*-1/3-1", "0 0 1 1/3 *"),
        ("2-3", "0 0 3 2 *"),
        ("*-*-01/2 04:00", "0 4 1/2 * *"),
        ("*-*~01", "0 0 L * *"),
        ("*-*~3,1", "0 0 L-2,L * *"),
        ("*-02~07/1", "0 0 L-6,L-5,L-4,L-3,L-2,L-1,L 2 *"),
        ("Mon *-*-1..7", "0 0 * * MON#1"),
        ("Mon,Tue *-*-8..14 9:30", "30 9 * * MON#2,TUE#2"),
        ("Mon *-*~07/1", "0 0 * * MONL"),
        ("08:05:40", "40 5 8 * * *"),
        ("*-*-* 4:00:00.000", "0 4 * * *"),
        ("*-12-24T18:00", "0 18 24 12 *"),
    ],
)
def test_on_calendar_is_a_cron_expression(text: str, cron: str) -> None:
    part = read_on_calendar(text)
    assert (part.schedule, part.zone, part.years, part.excluded_weekdays) == (cron, None, None, ())


def test_what_cron_cannot_say_stands_beside_it() -> None:
    friday = read_on_calendar("Fri *-*-13 12:00 Europe/Berlin")
    assert (friday.schedule, friday.zone) == ("0 12 13 * *", "Europe/Berlin")
    assert friday.excluded_weekdays == ("MON", "TUE", "WED", "THU", "SAT", "SUN")
    assert read_on_calendar("2026..2028-*-* 3:00").years == (2026, 2028)
    assert read_on_calendar("26-12-24").years == (2026, 2026)
    assert read_on_calendar("@86400").schedule == {"at": ["1970-01-02T00:00:00Z"]}


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("*-*-*/2", "1/2"),
        ("*:*/7", "0/15"),
        ("Sun..Wed", "two ranges"),
        ("*-*-~1", "*-*~01"),
        ("*-*-* 3:00 Berlin", "zone"),
        ("*-*-* 22..4:00", "the smaller one first"),
        ("*-*-* 24:00", "0 to 23"),
        ("*-02-30", "never fires"),
        ("*:*:0/0.5", "whole seconds"),
        ("2024/4-02-29", "years"),
        ("2026,2028-1-1", "gaps"),
        ("5", "no date"),
        ("Europe/Berlin", "zone and no time"),
        ("", "empty"),
        ("Mon Tue 3:00", "Tue"),
    ],
)
def test_an_expression_that_cannot_be_carried_over_says_why(text: str, remedy: str) -> None:
    with pytest.raises(NotCalendar) as refused:
        read_on_calendar(text)
    assert remedy in str(refused.value)


# ------------------------------------------------------------------------------------------------------------ timers


def test_a_timer_and_its_service_are_a_job() -> None:
    job = the_job(
        "[Timer]\nOnCalendar=*-*-* 02:00\nPersistent=true\nRandomizedDelaySec=1h 30min\n", timezone="Asia/Tokyo"
    )
    assert dict(job.keys) == {
        "schedule": "0 2 * * *",
        "timezone": "Asia/Tokyo",
        "jitter": "1h30m",
        "command": ["/usr/bin/backup", "--all"],
        "queue": "default",
        "kill_after": "1m30s",
        "on_worker_lost": "fail",
        "missed": {"policy": "latest", "start_within": "10m"},
    }


def test_what_is_not_persistent_skips_what_it_missed() -> None:
    assert the_job("[Timer]\nOnCalendar=daily\n").keys["missed"] == {"policy": "skip", "start_within": "10m"}


def test_several_lines_are_one_set_of_ticks_and_an_empty_one_takes_them_back() -> None:
    both = "[Timer]\nOnCalendar=Mon 1:00\nOnCalendar=Tue 2:00\n"
    assert the_job(both).keys["schedule"] == ["0 1 * * MON", "0 2 * * TUE"]
    assert the_job(both, drop_in="[Timer]\nOnCalendar=\nOnCalendar=daily\n").keys["schedule"] == "0 0 * * *"


def test_lines_that_cannot_share_a_job_become_several() -> None:
    done = imported("[Timer]\nOnCalendar=1:00 Europe/Berlin\nOnCalendar=2026-*-* 2:00 UTC\nOnCalendar=Fri *-*-13\n")
    assert [job.name for job in done.jobs] == ["backup", "backup-2", "backup-3"]
    second, third = done.jobs[1].keys, done.jobs[2].keys
    assert (second["start"], second["end"]) == ("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z")
    assert third["exclude"] == {"weekdays": ["MON", "TUE", "WED", "THU", "SAT", "SUN"]}


def test_the_first_of_january_is_that_of_the_zone() -> None:
    assert the_job("[Timer]\nOnCalendar=2026-*-* 2:00 Asia/Tokyo\n").keys["start"] == "2025-12-31T15:00:00Z"


def test_what_repeats_since_a_start_is_every() -> None:
    done = imported("[Timer]\nOnBootSec=10min\nOnUnitActiveSec=1h\n")
    assert done.jobs[0].keys["schedule"] == {"every": "1h"}
    assert said(done, Verdict.LEFT_OUT) == [("backup.timer", 2, "OnBootSec")]
    assert ("backup.timer", 3, "OnUnitActiveSec") in said(done, Verdict.DIFFERS)


def test_a_timer_of_boots_alone_is_no_job() -> None:
    done = imported("[Timer]\nOnBootSec=10min\n")
    assert done.jobs == ()
    assert said(done, Verdict.LEFT_OUT) == [("backup.timer", 2, "OnBootSec")]


def test_a_broken_time_leaves_the_others_paused() -> None:
    done = imported("[Timer]\nOnCalendar=*-*-*/2\nOnCalendar=daily\n")
    assert done.jobs[0].keys["enabled"] is False
    assert said(done, Verdict.ERROR) == [("backup.timer", 2, "OnCalendar")]


def test_every_setting_without_a_counterpart_is_told() -> None:
    timer = "[Unit]\nAfter=x\n[Timer]\nOnCalendar=daily\nAccuracySec=1us\nWakeSystem=yes\n[Install]\nWantedBy=t\n"
    service = f"{SERVICE}Nice=5\nProtectHome=yes\nEnvironmentFile=/etc/x\nNewThing=1\nExecStop=/bin/true\n"
    told = said(imported(timer, service), Verdict.LEFT_OUT)
    names = [
        "After",
        "AccuracySec",
        "WakeSystem",
        "WantedBy",
        "Nice",
        "ProtectHome",
        "EnvironmentFile",
        "NewThing",
        "ExecStop",
    ]
    assert [name for _, _, name in told] == names


def test_a_missing_service_is_an_error_unless_systemctl_starts_it() -> None:
    timer = "[Timer]\nOnCalendar=daily\nUnit=other.service\n"
    done = imported(timer, None)
    assert (done.jobs, done.has_errors) == ((), True)
    assert the_job(timer, None, by_systemctl=True).keys["command"] == ["systemctl", "start", "--wait", "other.service"]


def test_a_service_alone_is_told() -> None:
    done = import_systemd([UnitSource("x.service", "x.service", SERVICE)], ImportChoices())
    assert (done.jobs, done.has_errors) == ((), True)
    assert any(f.verdict is Verdict.LEFT_OUT and "x.service" in f.message for f in done.findings)


def test_what_holds_for_whole_files_is_said_of_those_it_holds_for() -> None:
    sources = [
        UnitSource("a.timer", "a.timer", "[Timer]\nOnCalendar=1:00 Europe/Berlin\n"),
        UnitSource("b.timer", "b.timer", "[Timer]\nOnCalendar=1:00\n"),
        *(UnitSource(f"{name}.service", f"{name}.service", SERVICE) for name in "ab"),
    ]
    told = {(f.file, f.message.partition(":")[0]) for f in import_systemd(sources, ImportChoices()).findings}
    assert [file for file, message in told if message.startswith("timers go by the clock")] == ["b.timer"]
    assert {file for file, message in told if message.startswith("systemd starts services with PATH")} == {
        "a.timer",
        "b.timer",
    }
    by_systemctl = import_systemd(sources, ImportChoices(), by_systemctl=True).findings
    assert not [f for f in by_systemctl if "PATH" in f.message]


# ---------------------------------------------------------------------------------------------------------- services


@pytest.mark.parametrize(
    ("exec_start", "keys"),
    [
        ("/bin/echo \"two words\" 'a b' c\\x41", {"command": ["/bin/echo", "two words", "a b", "cA"]}),
        ("/bin/echo 100%% $$HOME", {"command": ["/bin/echo", "100%", "$HOME"]}),
        ("/bin/echo %n %p", {"command": ["/bin/echo", "backup.service", "backup"]}),
        ("/bin/echo a \\\n   b", {"command": ["/bin/echo", "a", "b"]}),
        ("/bin/echo ${A} x$A $A", {"shell": "/bin/echo \"${A}\" 'x$A' ${A}"}),
        (":/bin/echo ${A}", {"command": ["/bin/echo", "${A}"]}),
        ("-/bin/false", {"shell": "{ /bin/false || true; }"}),
        ("@/bin/sh mysh -c true", {"command": ["/bin/sh", "-c", "true"]}),
        ("+/bin/id", {"command": ["/bin/id"]}),
        ("/bin/a ; /bin/b \\;", {"shell": "/bin/a && /bin/b ';'"}),
    ],
)
def test_exec_start_is_read_as_systemd_reads_it(exec_start: str, keys: dict[str, object]) -> None:
    job = serving(f"Type=oneshot\nExecStart={exec_start}")
    assert {key: job.keys[key] for key in ("command", "shell") if key in job.keys} == keys


def test_several_commands_run_one_after_the_other() -> None:
    job = serving("Type=oneshot\nExecStartPre=-/bin/a\nExecStart=/bin/b\nExecStart=/bin/c\nExecStartPost=/bin/d")
    assert job.keys["shell"] == "{ /bin/a || true; } && /bin/b && /bin/c && /bin/d"


def test_a_specifier_of_the_machine_is_an_error_and_the_job_does_not_run() -> None:
    done = imported("[Timer]\nOnCalendar=daily\n", "[Service]\nExecStart=%h/bin/backup\n")
    assert done.jobs[0].keys["enabled"] is False
    assert said(done, Verdict.ERROR) == [("backup.service", 2, "ExecStart")]


def test_the_instance_of_a_template_is_filled_in_and_its_lack_an_error() -> None:
    def dump(name: str) -> Imported:
        timer = UnitSource(name, name, "[Timer]\nOnCalendar=daily\n")
        service = UnitSource("dump@.service", "dump@.service", "[Service]\nExecStart=/bin/dump %i\n")
        return import_systemd([timer, service], ImportChoices())

    instance, template = dump("dump@main.timer"), dump("dump@.timer")
    assert (instance.has_errors, instance.jobs[0].keys["command"]) == (False, ["/bin/dump", "main"])
    assert (template.has_errors, template.jobs[0].keys["enabled"]) == (True, False)


def test_a_template_that_nobody_has_named_an_instance_of_does_not_run_and_says_what_to_do() -> None:
    service = UnitSource("dump@.service", "dump@.service", "[Service]\nExecStart=/bin/dump --db %i --all\n")

    def dump(name: str, file: str, unit: str = "", *, by_systemctl: bool = False) -> Imported:
        timer = UnitSource(name, file, f"[Timer]\nOnCalendar=daily\n{unit}")
        return import_systemd([timer, service], ImportChoices(), by_systemctl=by_systemctl)

    for done, remedy in (
        (dump("dump@.timer", "dump@.timer"), "copy dump@.timer as dump@INSTANCE.timer"),
        (dump("dump@.timer", "stdin"), "# /etc/systemd/system/dump@INSTANCE.timer"),
        (dump("night.timer", "night.timer", "Unit=dump@.service\n"), "Unit="),
        (dump("dump@.timer", "dump@.timer", by_systemctl=True), "copy dump@.timer"),
    ):
        (error,) = [finding.message for finding in done.findings if finding.verdict is Verdict.ERROR]
        assert remedy in error
        assert done.jobs[0].keys["enabled"] is False
        assert done.jobs[0].keys["command"] in (
            ["/bin/dump", "--db", "%i", "--all"],
            ["systemctl", "start", "--wait", "dump@.service"],
        )
    named = dump("dump@.timer", "dump@.timer", "Unit=dump@db1.service\n")
    assert (named.has_errors, named.jobs[0].keys["command"]) == (False, ["/bin/dump", "--db", "db1", "--all"])


@pytest.mark.parametrize(
    "broken", ["[Service]\nExecStart=/bin/x\nEnvironment=A", "[Service]\nExecStart=/bin/x\nTimeoutStopSec=soon"]
)
def test_a_job_of_which_a_setting_is_in_error_does_not_run(broken: str) -> None:
    done = imported("[Timer]\nOnCalendar=daily\n", f"{broken}\n")
    assert done.jobs[0].keys["enabled"] is False
    assert all("enabled: false" in finding.message for finding in done.findings if finding.verdict is Verdict.ERROR)


def test_a_command_whose_variables_stand_in_a_file_does_not_run_without_them() -> None:
    service = "[Service]\nExecStart=/bin/x --db ${DB} $MORE\nEnvironment=MORE=1\nEnvironmentFile=/etc/x\n"
    done = imported("[Timer]\nOnCalendar=daily\n", service)
    assert done.jobs[0].keys["enabled"] is False
    (error,) = [finding for finding in done.findings if finding.verdict is Verdict.ERROR]
    assert (error.line, "$DB of the command" in error.message) == (4, True)
    assert "enabled" not in the_job("[Timer]\nOnCalendar=daily\n", service.replace("MORE=1", "MORE=1 DB=a")).keys


def test_environment_folder_and_user() -> None:
    job = serving('ExecStart=/bin/x\nEnvironment=A=1 "B=two words"\nEnvironment=C=\nWorkingDirectory=/srv\nUser=shop')
    assert job.keys["env"] == {"A": "1", "B": "two words", "C": ""}
    assert (job.keys["cwd"], job.keys["queue"]) == ("/srv", "shop")
    sudo = serving("ExecStart=/bin/x\nUser=shop", users=UserRule.SUDO)
    assert sudo.keys["command"] == ["sudo", "-n", "-H", "-u", "shop", "--", "/bin/x"]


def test_limits_and_outcomes() -> None:
    job = serving(
        "Type=oneshot\nExecStart=/bin/x\nTimeoutStartSec=2h\nTimeoutStopSec=5\nSuccessExitStatus=3 TEMPFAIL\n"
        "Restart=on-failure\nRestartSec=30"
    )
    assert (job.keys["max_runtime"], job.keys["kill_after"]) == ("2h", "5s")
    assert job.keys["success_codes"] == [0, 3, 75]
    assert job.keys["retries"] == {"max": 5, "delay": "30s", "factor": 1, "max_delay": "30s", "jitter": False}
    assert serving("ExecStart=/bin/x\nRuntimeMaxSec=90").keys["max_runtime"] == "1m30s"
    limited = serving("ExecStart=/bin/x\nLimitAS=512M\nLimitCPU=10min:15min\nLimitNOFILE=1024:4096")
    assert limited.keys["limits"] == {"memory": "512MiB", "cpu_time": "10m", "open_files": 4096}
    assert serving("ExecStart=/bin/x\nLimitAS=1500000\nLimitCPU=5").keys["limits"] == {
        "memory": "1465KiB",
        "cpu_time": "5s",
    }
    assert "limits" not in serving("ExecStart=/bin/x\nLimitAS=infinity\nLimitNOFILE=infinity\nMemoryMax=1G").keys
    assert "max_runtime" not in serving("Type=oneshot\nExecStart=/bin/x\nTimeoutStartSec=infinity").keys
