"""`sexton import` as it is called: file and report, exit codes, neighbours of units; and docs/importing.md."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from sexton.claims import Overlap
from sexton.jobfiles.load import load_job_files
from sexton.jobs import JobDefinition
from sexton.targets import ShellTarget
from sexton_tui.cli.import_jobs import host_zone
from tests.support.command_line import CommandLine

GUIDE = (Path(__file__).parent.parent.parent / "docs" / "importing.md").read_text(encoding="utf-8")
CRONTAB = "@daily good\n@reboot boot\n"


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)


def jobs_of(folder: Path, text: str) -> dict[str, JobDefinition]:
    """The jobs of a printed file, read as `apply` would."""
    (folder / "printed.yaml").write_text(text, encoding="utf-8")
    return {job.name: job.definition for job in load_job_files([folder / "printed.yaml"]).jobs}


def test_what_is_printed_validates_and_the_report_stands_on_stderr(tmp_path: Path, command: CommandLine) -> None:
    (tmp_path / "web01.crontab").write_text(CRONTAB)
    done = command.run("import", "crontab", "web01.crontab", "--timezone", "Europe/Berlin")
    assert done.returncode == 0
    (tmp_path / "out.yaml").write_text(done.stdout)
    assert command.run("validate", "out.yaml").returncode == 0
    assert "web01.crontab:2: left out: @reboot" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("1 job written; read: 1 job, 1 @reboot line; ")


def test_an_error_exits_1_with_the_other_jobs_printed(tmp_path: Path, command: CommandLine) -> None:
    (tmp_path / "c").write_text("61 * * * * x\n@daily good\n")
    done = command.run("import", "crontab", "c")
    assert done.returncode == 1
    assert done.stderr.startswith("c:1: error: minute field '61'")
    assert [*jobs_of(tmp_path, done.stdout)] == ["good"]


def test_an_error_about_a_job_that_was_printed_is_not_called_good(tmp_path: Path, command: CommandLine) -> None:
    (tmp_path / "a.timer").write_text("[Timer]\nOnCalendar=daily\n")
    (tmp_path / "a.service").write_text("[Service]\nExecStart=%h/x\n")
    done = command.run("import", "systemd", "a.timer")
    assert done.returncode == 1
    assert "of the 1 printed jobs 1 have enabled: false" in done.stderr
    assert [job.enabled for job in jobs_of(tmp_path, done.stdout).values()] == [False]


def test_the_report_can_go_to_a_file_and_all_can_be_data(tmp_path: Path, command: CommandLine) -> None:
    (tmp_path / "c").write_text(CRONTAB)
    done = command.run("import", "crontab", "c", "--report", "report.txt", "--output", "json")
    assert done.returncode == 0
    data = json.loads(done.stdout)
    assert [job["name"] for job in data["jobs"]] == ["good"]
    assert {"line": 2, "verdict": "left out"}.items() <= next(f for f in data["findings"] if f["line"] == 2).items()
    assert [*jobs_of(tmp_path, data["job_file"])] == ["good"]
    assert "@reboot" in (tmp_path / "report.txt").read_text()
    assert done.stderr.rstrip().endswith("report.txt")


def test_several_files_are_one_with_names_of_their_own(tmp_path: Path, command: CommandLine) -> None:
    (tmp_path / "a").write_text("@daily same\n")
    (tmp_path / "b").write_text("@daily same\n")
    done = command.run("import", "crontab", "a", "b", "--prefix", "web01-")
    assert [*jobs_of(tmp_path, done.stdout)] == ["web01-same", "web01-same-2"]
    assert (
        done.stderr.count("on_worker_lost: fail was written") == done.stderr.count("a and 1 more: differs: on_w") == 1
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["crontab", "missing"], 1),
        (["crontab", "."], 1),
        (["crontab", "c", "--timezone", "Mars/X"], 1),
        (["crontab", "c", "--home", "relative"], 2),
        (["crontab", "c", "--queue", "no queue"], 2),
        (["crontab"], 2),
    ],
)
def test_what_cannot_be_read_or_is_no_option_says_so(
    tmp_path: Path, command: CommandLine, arguments: list[str], code: int
) -> None:
    (tmp_path / "c").write_text(CRONTAB)
    done = command.run("import", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert "Traceback" not in done.stderr


def test_paused_jobs_are_paused_by_one_line(tmp_path: Path, command: CommandLine) -> None:
    (tmp_path / "c").write_text("@daily a\n@daily b\n")
    text = command.run("import", "crontab", "c", "--paused").stdout
    assert [job.enabled for job in jobs_of(tmp_path, text).values()] == [False, False]
    assert text.count("  enabled: false\n") == 1
    unpaused = text.replace("  enabled: false\n", "")
    assert [job.enabled for job in jobs_of(tmp_path, unpaused).values()] == [True, True]


def test_the_zone_of_the_machine_is_found_where_it_stands(tmp_path: Path) -> None:
    assert host_zone(tmp_path) is None
    (tmp_path / "timezone").write_text("Asia/Tokyo\n")
    assert host_zone(tmp_path) == "Asia/Tokyo"
    (tmp_path / "zoneinfo" / "Europe").mkdir(parents=True)
    (tmp_path / "zoneinfo" / "Europe" / "Berlin").touch()
    (tmp_path / "localtime").symlink_to(tmp_path / "zoneinfo" / "Europe" / "Berlin")
    assert host_zone(tmp_path) == "Europe/Berlin"


@pytest.mark.parametrize(("kind", "right"), [("kubernetes", 0), ("systemd", 0), ("crontab", 1), ("crontab", 2)])
def test_a_file_for_another_importer_is_one_error_that_names_it(
    tmp_path: Path, command: CommandLine, kind: str, right: int
) -> None:
    texts = [CRONTAB * 3, "[Timer]\nOnCalendar=daily\n", CRONJOB]
    (tmp_path / "jobs").write_text(texts[right])
    done = command.run("import", kind, "jobs")
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if ": error:" in line] == [done.stderr.splitlines()[0]]
    assert f"write: sexton import {['crontab', 'systemd', 'kubernetes'][right]} FILE" in done.stderr.splitlines()[0]


def test_an_input_without_a_line_is_an_error(tmp_path: Path, command: CommandLine) -> None:
    (tmp_path / "empty").write_text("# nothing\n\n")
    done = command.run("import", "crontab", "empty")
    assert (done.returncode, done.stderr.startswith("empty: error: holds nothing to import")) == (1, True)
    (tmp_path / "c").write_text(CRONTAB)
    assert command.run("import", "crontab", "empty", "c").returncode == 0


# ----------------------------------------------------------------------------------------------------------- systemd


def test_a_timers_service_and_drop_ins_are_found_beside_it(tmp_path: Path, command: CommandLine) -> None:
    (tmp_path / "backup@.timer").write_text("[Timer]\nOnCalendar=daily\nUnit=save@%i.service\n")
    (tmp_path / "night.timer").write_text("[Timer]\nOnCalendar=daily\n")
    (tmp_path / "night.service").write_text("[Service]\nExecStart=/bin/old\n")
    (tmp_path / "night.service.d").mkdir()
    (tmp_path / "night.service.d" / "10.conf").write_text("[Service]\nExecStart=\nExecStart=/bin/new\nNice=1\n")
    done = command.run("import", "systemd", "night.timer", "--timezone", "UTC")
    assert done.returncode == 0
    assert "[/bin/new]" in done.stdout
    assert "night.service.d/10.conf:4: left out: [night] Nice" in done.stderr


def test_the_output_of_systemctl_cat_is_read_with_its_lines(tmp_path: Path, command: CommandLine) -> None:
    text = (
        "# /etc/systemd/system/night.timer\n[Timer]\nOnCalendar=daily\n\n# /etc/systemd/system/night.timer.d/x.conf\n"
        "[Timer]\nOnCalendar=\nOnCalendar=hourly\n\n# /usr/lib/systemd/system/night.service\n[Service]\n"
        "ExecStart=/bin/x\nNice=1\n"
    )
    done = command.run("import", "systemd", "-", "--timezone", "UTC", stdin=text.encode())
    assert done.returncode == 0
    (job,) = jobs_of(tmp_path, done.stdout).values()
    assert job.schedule_parts == ({"cron": "0 * * * *"},)
    assert "stdin:13: left out: [night] Nice" in done.stderr


# -------------------------------------------------------------------------------------------------------- kubernetes

CRONJOB = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: report, namespace: shop}
spec: {schedule: "0 3 * * *", jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: b}]}}}}}
"""
# Keeps one file per Job; a Job is complete (or failed) the second time its state is asked for.
KUBECTL = """\
#!/bin/sh
echo "$*" >> calls
case "$*" in
  *"create job"*) for job; do :; done; [ ! -e "$job" ] || exit 1; echo new > "$job" ;;
  *jsonpath*) if [ "$(cat "$5")" = new ]; then echo seen > "$5"; echo "Job "; else STATE; fi ;;
  *" get job "*) [ -e "$5" ] ;;
  *logs*) echo "log of $4" ;;
esac
"""


def ticks_run(folder: Path, command: CommandLine, state: str, times: int) -> list[subprocess.CompletedProcess[str]]:
    """The imported job run ``times`` times for one tick, with a kubectl that answers ``state`` the second time."""
    (folder / "cj.yaml").write_text(CRONJOB)
    (job,) = jobs_of(folder, command.run("import", "kubernetes", "cj.yaml").stdout).values()
    assert isinstance(job.target, ShellTarget)
    (folder / "kubectl").write_text(KUBECTL.replace("STATE", state))
    (folder / "sleep").write_text("#!/bin/sh\n")
    for program in ("kubectl", "sleep"):
        (folder / program).chmod(0o755)
    env = {"PATH": f"{folder}:/usr/bin:/bin", "SEXTON_TICK": "2026-03-29T01:00:00Z"}
    argv = ["/bin/sh", "-c", job.target.script]
    return [
        subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)
        for _ in range(times)
    ]


@pytest.mark.parametrize(("outcome", "code"), [("SuccessCriteriaMet Complete", 0), ("FailureTarget Failed", 1)])
def test_a_tick_creates_its_job_once_and_ends_as_it_does(
    tmp_path: Path, command: CommandLine, outcome: str, code: int
) -> None:
    runs = ticks_run(tmp_path, command, f"echo Job {outcome}", 2)
    assert [run.returncode for run in runs] == [code, code]
    assert all("log of job/report-20260329010000" in run.stdout for run in runs)
    created = [line for line in (tmp_path / "calls").read_text().splitlines() if "create job" in line]
    assert set(created) == {"--namespace shop create job --from=cronjob/report report-20260329010000"}


def test_a_run_that_is_replaced_deletes_its_job(tmp_path: Path, command: CommandLine) -> None:
    (tmp_path / "cj.yaml").write_text(CRONJOB.replace("jobTemplate", "concurrencyPolicy: Replace, jobTemplate"))
    (job,) = jobs_of(tmp_path, command.run("import", "kubernetes", "cj.yaml").stdout).values()
    assert isinstance(job.target, ShellTarget)
    assert job.overlap is Overlap.REPLACE
    (tmp_path / "kubectl").write_text(KUBECTL.replace("STATE", "echo Job "))
    (tmp_path / "sleep").write_text("#!/bin/sh\nkill -TERM $PPID\n")  # as a worker does that ends the run
    for program in ("kubectl", "sleep"):
        (tmp_path / program).chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SEXTON_TICK": "2026-03-29T01:00:00Z"}
    argv = ["/bin/sh", "-c", job.target.script]
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 143
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[-1] == "--namespace shop delete job report-20260329010000 --ignore-not-found --timeout=25s"


@pytest.mark.parametrize(
    ("state", "code", "said"),
    [
        (":", 1, "was removed before its end was seen"),
        ("exit 1", 1, "could not be read for five minutes"),
        ('echo x >> away; [ "$(wc -l < away)" -gt 50 ] && echo Job Complete', 0, ""),
    ],
    ids=["the Job is gone", "the API is gone", "the API comes back"],
)
def test_a_tick_does_not_wait_for_what_never_comes(
    tmp_path: Path, command: CommandLine, state: str, code: int, said: str
) -> None:
    (run,) = ticks_run(tmp_path, command, state, 1)
    assert (run.returncode, said in run.stderr) == (code, True)


# --------------------------------------------------------------------------------------------------------- the guide


def the_crontab_of_the_guide() -> str:
    (block,) = re.findall(r"^```crontab\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    return str(block)


def test_the_crontab_of_the_guide_has_30_lines_and_gives_what_the_guide_says(
    tmp_path: Path, command: CommandLine
) -> None:
    text = the_crontab_of_the_guide()
    assert text.count("\n") == 30
    (tmp_path / "web01.crontab").write_text(text)
    options = [
        "--prefix",
        "web01-",
        "--queue",
        "web01",
        "--home",
        "/home/deploy",
        "--paused",
        "--report",
        "web01.report",
    ]
    done = command.run("import", "crontab", "web01.crontab", *options)
    assert done.returncode == 0
    jobs = jobs_of(tmp_path, done.stdout)
    assert len(jobs) == 19
    assert {job.timezone for job in jobs.values()} == {"Europe/Berlin"}
    assert {"web01-heartbeat", "web01-settle", "web01-feed"} <= jobs.keys()
    report = (tmp_path / "web01.report").read_text()
    for shown in re.findall(r"^web01\.crontab:\d+: (?:left out|differs|disabled): .*", GUIDE, re.MULTILINE):
        assert shown.removesuffix("...").rstrip() in report
    assert "19 jobs written; read: 19 jobs, 4 assignments, 1 @reboot line, 1 commented-out job, 4 comments" in report


def test_the_error_that_the_guide_shows_is_the_one_that_is_said(tmp_path: Path, command: CommandLine) -> None:
    (shown,) = re.findall(r"^web01\.crontab:\d+: error: .*", GUIDE, re.MULTILINE)
    broken = the_crontab_of_the_guide().replace("0 */2 * * *", "0 */48 * * *")
    (tmp_path / "web01.crontab").write_text(broken)
    done = command.run("import", "crontab", "web01.crontab")
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, shown)
