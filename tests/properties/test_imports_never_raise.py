"""Whatever the text: no importer raises, nothing is dropped in silence, and what is written is a job file."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from sexton.jobfiles.importers.choices import ImportChoices, UserRule
from sexton.jobfiles.importers.crontab import import_crontab
from sexton.jobfiles.importers.findings import Imported, Verdict
from sexton.jobfiles.importers.job_file import written
from sexton.jobfiles.importers.kubernetes import import_kubernetes
from sexton.jobfiles.importers.report import report_lines
from sexton.jobfiles.importers.systemd_timers import import_systemd
from sexton.jobfiles.importers.unit_files import UnitSource
from sexton.jobfiles.load import load_job_text

CRONTABS = (Path(__file__).parent.parent / "cases" / "crontabs.txt").read_bytes()
TIMER = (
    b"[Unit]\nDescription=Night\n\n[Timer]\nOnCalendar=Mon..Fri *-*-* 02:00:00\nOnCalendar=Sat *-*-1..7 04:00 UTC\n"
    b"OnCalendar=*-*~01 05:00\nOnUnitActiveSec=5min\nPersistent=true\nRandomizedDelaySec=15min\nOnBootSec=10min\n"
)
SERVICE = (
    b'[Service]\nType=oneshot\nUser=backup\nEnvironment=A=1 "B=two words" \\\n   C=3\nExecStartPre=-/bin/mkdir -p /x\n'
    b'ExecStart=/usr/bin/borg create "::{now}" ${TARGET} $OPTS 100%%\nTimeoutStartSec=2h\n'
    b"SuccessExitStatus=1 TEMPFAIL\n"
    b"Restart=on-failure\nRestartSec=30\nNice=10\n"
)
CRONJOB = (
    b"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: report, namespace: shop}\nspec:\n"
    b'  schedule: "*/15 6 */2 * MON"\n'
    b"  timeZone: Europe/Berlin\n  concurrencyPolicy: Forbid\n  startingDeadlineSeconds: 120\n  suspend: false\n"
    b"  jobTemplate:\n    spec:\n      backoffLimit: 2\n      template:\n        spec:\n          containers:\n"
    b'          - {name: a, image: b, command: [x, "$(A)"], env: [{name: A, value: "1"}]}\n---\nkind: List\nitems: []\n'
)
PIECES = st.sampled_from(
    [
        *(
            b"%",
            b"\\",
            b'"',
            b"'",
            b"\n",
            b"\r\n",
            b"\0",
            b"\xff",
            b"\xc3\xa9",
            b"*",
            b"/",
            b"-",
            b"~",
            b"=",
            b"#",
            b"\t",
            b" ",
        ),
        *(
            b"@reboot ",
            b"CRON_TZ=",
            b"SHELL=",
            b"HOME=",
            b"root ",
            b"${",
            b"$X",
            b";",
            b"..",
            b"%h",
            b"L",
            b"H",
            b",",
            b"0",
        ),
        *(b"---\n", b"- ", b": ", b"{", b"}", b"[", b"&a ", b"*a", b"!!x ", b"|\n", b"null", b"\x1b", b"\xe2\x80\xa8"),
        *(b"99999999999", b"\xef\xbb\xbf", b"\xff\xfe", b"\x85", b"[Timer]\n", b"OnCalendar=\n", b"ExecStart="),
    ]
)
EDITS = st.lists(
    st.tuples(st.integers(0, 2_000), st.integers(0, 15), st.one_of(PIECES, st.binary(max_size=6))),
    min_size=1,
    max_size=10,
)
CHOICES = st.builds(
    ImportChoices,
    has_user_column=st.sampled_from([None, True, False]),
    users=st.sampled_from(UserRule),
    with_disabled=st.booleans(),
)
thorough = settings(deadline=None, derandomize=True, max_examples=80)


def edited(data: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    """``data`` with, at each place, some bytes taken out and others put in."""
    for place, length, piece in edits:
        at = place % (len(data) + 1)
        data = data[:at] + piece + data[at + length :]
    return data


def sections() -> list[bytes]:
    return re.split(rb"^#= .*\n", CRONTABS, flags=re.MULTILINE)[1:]


def check(imported: Imported) -> None:
    """What is written can be read back to the same jobs, and the report can be printed."""
    text, kept = written(imported, ("a header",))
    assert [job.name for job in load_job_text(text).jobs] == [job.name for job in kept.jobs]
    assert all(line.isprintable() for line in report_lines(kept))


@thorough
@given(st.sampled_from(sections()), EDITS, CHOICES)
@example(b"* * * * *", [(0, 0, b"\n")], ImportChoices())
def test_every_line_of_a_crontab_is_one_of_its_counts_and_is_told(
    section: bytes, edits: list[tuple[int, int, bytes]], choices: ImportChoices
) -> None:
    data = edited(section, edits)
    imported = import_crontab(data, "crontab", choices)
    check(imported)
    if not imported.counts or data.startswith((b"\xff\xfe", b"\xfe\xff")):
        assert imported.counts or imported.has_errors
        return
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    lines = lines[:-1] if lines[-1] == b"" else lines
    assert sum(imported.counts.values()) == len(lines)
    jobs = [*imported.jobs, *imported.disabled]
    assert sum(job.line > 0 for job in imported.jobs) == imported.counts["jobs"] + (
        imported.counts["disabled"] if choices.with_disabled else 0
    )
    told = {finding.line for finding in imported.findings} | {job.line for job in jobs}
    silent = [
        number
        for number, line in enumerate(lines, start=1)
        if line.strip(b" \t\r") and not line.strip(b" \t").startswith(b"#") and number not in told
    ]
    assert len(silent) <= imported.counts["env"]  # assignments are told by the env of the jobs below them
    assert (
        sum(finding.verdict is Verdict.ERROR and finding.line > 0 for finding in imported.findings)
        == (imported.counts["errors"])
    )


@thorough
@given(EDITS, EDITS, CHOICES, st.booleans())
def test_units_are_jobs_or_findings(
    timer: list[tuple[int, int, bytes]],
    service: list[tuple[int, int, bytes]],
    choices: ImportChoices,
    by_systemctl: bool,
) -> None:
    sources = [
        UnitSource("backup.timer", "backup.timer", edited(TIMER, timer).decode("latin-1")),
        UnitSource("backup.service", "backup.service", edited(SERVICE, service).decode("latin-1")),
    ]
    imported = import_systemd(sources, choices, by_systemctl=by_systemctl)
    check(imported)
    assert imported.jobs or imported.findings


@thorough
@given(EDITS, st.booleans())
def test_manifests_are_jobs_or_findings(edits: list[tuple[int, int, bytes]], as_command: bool) -> None:
    imported = import_kubernetes(edited(CRONJOB, edits), "cron.yaml", ImportChoices(), as_command=as_command)
    check(imported)
    assert imported.jobs or imported.findings


@thorough
@given(st.binary(max_size=300))
def test_any_bytes_at_all_are_answered(data: bytes) -> None:
    check(import_crontab(data, "crontab", ImportChoices()))
    check(import_kubernetes(data, "cron.yaml", ImportChoices()))
    check(import_systemd([UnitSource("a.timer", "a.timer", data.decode("latin-1"))], ImportChoices()))
