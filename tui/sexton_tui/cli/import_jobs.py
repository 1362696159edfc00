"""``sexton import``: crontabs, systemd timers and Kubernetes CronJobs as a job file on stdout, with a report on stderr.

Exit code 0: every line was carried over or is told to be no job; 1: at least one is an error (the others' jobs are
printed all the same). Nothing that is read is run or expanded, and no database is asked.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sexton.errors import InvalidInput, NotFound, Refused
from sexton.jobfiles.importers.choices import ImportChoices, UserRule
from sexton_tui.cli.import_units import read_units
from sexton_tui.cli.output import Output, OutputOption, print_json, print_rows

if TYPE_CHECKING:
    from sexton.jobfiles.importers.findings import Imported

import_jobs = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Job files from what other schedulers keep, with a report of what differs.",
)


class SystemdCarrier(StrEnum):
    """What carries a timer's work: the service's command, or systemd itself."""

    COMMAND = "command"
    SYSTEMCTL = "systemctl"


class KubernetesCarrier(StrEnum):
    """What carries a CronJob's work: its own cluster, or a worker."""

    KUBECTL = "kubectl"
    COMMAND = "command"


FilesArgument = Annotated[list[str], typer.Argument(metavar="FILE", help="Files to read; - is stdin.")]
ReportOption = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="Write the report there, not to stderr.")
]
ZoneOption = Annotated[
    str | None,
    typer.Option("--timezone", metavar="ZONE", help="Where the source names no zone; this machine's by default."),
]
UsersOption = Annotated[
    UserRule,
    typer.Option("--users", help="Jobs that name a user: queue (one per user), sudo, or ignore."),
]
QueueOption = Annotated[str, typer.Option("--queue", metavar="NAME", help="The queue of the jobs.")]
PausedOption = Annotated[
    bool, typer.Option("--paused", help="Write enabled: false for all, to look at before anything runs.")
]
PrefixOption = Annotated[str, typer.Option("--prefix", metavar="TEXT", help="Put before each name, such as web01-.")]


@import_jobs.command("crontab")
def crontab(
    files: FilesArgument,
    report: ReportOption = None,
    timezone: ZoneOption = None,
    system: Annotated[
        bool | None,
        typer.Option("--system/--no-system", help="With a user column, as /etc/crontab; guessed by default."),
    ] = None,
    users: UsersOption = UserRule.QUEUE,
    queue: QueueOption = "default",
    home: Annotated[
        list[str] | None,
        typer.Option("--home", metavar="[USER=]DIR", help="The user's home folder, where crond starts commands."),
    ] = None,
    prefix: PrefixOption = "",
    with_disabled: Annotated[
        bool, typer.Option("--with-disabled", help="Write commented-out jobs too, with enabled: false.")
    ] = False,
    paused: PausedOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Crontabs of users and of the system (`crontab -l | sexton import crontab -`)."""
    from sexton.jobfiles.importers.crontab import import_crontab, with_nothing_told
    from sexton.jobfiles.importers.findings import combined
    from sexton.jobfiles.importers.job_names import NameGiver

    zone, reason = _zone(timezone)
    choices = ImportChoices(zone, reason, system, users, _queue(queue), _homes(home or []), prefix, with_disabled)
    names = NameGiver(prefix)
    imported = names.settled(combined(import_crontab(data, file, choices, names) for file, data in _sources(files)))
    _show(with_nothing_told(imported, files[0]), "crontab", files, report, output, is_paused=paused)


@import_jobs.command("systemd")
def systemd(
    files: FilesArgument,
    report: ReportOption = None,
    timezone: ZoneOption = None,
    carrier: Annotated[
        SystemdCarrier,
        typer.Option("--as", help="command: what the service runs; systemctl: start its unit where it is."),
    ] = SystemdCarrier.COMMAND,
    users: UsersOption = UserRule.QUEUE,
    queue: QueueOption = "default",
    prefix: PrefixOption = "",
    paused: PausedOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Timer units and the services they start (`systemctl cat NAME.timer NAME.service | sexton import systemd -`).

    Of a FILE.timer the service beside it and the drop-ins of both are read too.
    """
    from sexton.jobfiles.importers.findings import Imported, combined
    from sexton.jobfiles.importers.systemd_timers import import_systemd

    zone, reason = _zone(timezone)
    choices = ImportChoices(zone, reason, None, users, _queue(queue), {}, prefix)
    sources, findings = read_units(_sources(files))
    imported = import_systemd(sources, choices, by_systemctl=carrier is SystemdCarrier.SYSTEMCTL)
    _show(combined([Imported(findings=findings), imported]), "systemd", files, report, output, is_paused=paused)


@import_jobs.command("kubernetes")
def kubernetes(
    files: FilesArgument,
    report: ReportOption = None,
    timezone: Annotated[
        str, typer.Option("--timezone", metavar="ZONE", help="The controller's zone, for CronJobs without timeZone.")
    ] = "UTC",
    carrier: Annotated[
        KubernetesCarrier,
        typer.Option("--as", help="kubectl: create the Job in its cluster; command: the container's, on a worker."),
    ] = KubernetesCarrier.KUBECTL,
    queue: QueueOption = "default",
    prefix: PrefixOption = "",
    paused: PausedOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """CronJob manifests, YAML or JSON (`kubectl get cronjobs -A -o yaml | sexton import kubernetes -`)."""
    from sexton.jobfiles.importers.findings import combined
    from sexton.jobfiles.importers.job_names import NameGiver
    from sexton.jobfiles.importers.kubernetes import import_kubernetes
    from sexton.zones import load_zone

    load_zone(timezone)
    reason = "the default" if timezone == "UTC" else "as --timezone says"
    choices = ImportChoices(timezone, reason, queue=_queue(queue), prefix=prefix)
    names = NameGiver(prefix)
    as_command = carrier is KubernetesCarrier.COMMAND
    imported = combined(
        import_kubernetes(data, file, choices, names, as_command=as_command) for file, data in _sources(files)
    )
    _show(names.settled(imported), "kubernetes", files, report, output, is_paused=paused)


def _zone(given: str | None) -> tuple[str, str]:
    """The zone that holds where the source says none, and where it comes from. Raises InvalidSchedule."""
    from sexton.zones import load_zone

    if given is not None:
        load_zone(given)
        return given, "as --timezone says"
    if (found := host_zone(Path("/etc"))) is not None:
        return found, "this machine's"
    return "UTC", "this machine does not say its own"


def host_zone(etc: Path) -> str | None:
    """The zone that this machine's clock shows, by its settings below ``etc``."""
    from sexton.zones import zone_names

    candidates = []
    link = etc / "localtime"
    if link.is_symlink():
        candidates.append(os.path.realpath(link).rpartition("zoneinfo/")[2])
    with contextlib.suppress(OSError, UnicodeDecodeError):
        candidates.append((etc / "timezone").read_text(encoding="ascii").strip())
    found = next((name for name in candidates if name in zone_names()), None)
    return "UTC" if found in ("Etc/UTC", "Etc/UCT", "Etc/Zulu", "Etc/Universal") else found


def _queue(name: str) -> str:
    import re

    from sexton.jobfiles.keys import NAME_PATTERN, NAME_WANTED

    if not re.fullmatch(NAME_PATTERN, name):
        raise typer.BadParameter(f"--queue: {name!r} is not {NAME_WANTED}")
    return name


def _homes(given: Iterable[str]) -> dict[str, str]:
    homes = {}
    for one in given:
        user, _, folder = one.rpartition("=")
        if not folder.startswith("/"):
            raise typer.BadParameter(f"--home: {one!r} is no absolute folder; write DIR or USER=DIR")
        homes[user] = folder
    return homes


def _sources(files: Iterable[str]) -> Iterable[tuple[str, bytes]]:
    """Name and content of each file. Raises NotFound and Refused."""
    from sexton.jobfiles.importers.source_text import MAX_SOURCE_BYTES

    for file in files:
        if file == "-":
            yield "stdin", sys.stdin.buffer.read(MAX_SOURCE_BYTES + 1)
            continue
        path = Path(file)
        if not path.exists():
            raise NotFound(f"{file} does not exist", hint="name a file, or - for stdin")
        if path.is_dir():
            raise Refused(f"{file} is a folder", hint=f"name its files, such as {file.rstrip('/')}/*")
        with path.open("rb") as source:
            yield file, source.read(MAX_SOURCE_BYTES + 1)


def _show(
    imported: Imported, kind: str, files: list[str], report: Path | None, output: Output, *, is_paused: bool
) -> None:
    """Print job file and report. Raises InvalidInput where something is an error."""
    from sexton.jobfiles.importers.job_file import written
    from sexton.jobfiles.importers.report import report_lines, summary

    header = [
        f"Imported by: sexton import {kind} {' '.join(files)}",
        "Read each comment below, then: sexton validate FILE; sexton plan FILE; sexton apply FILE.",
    ]
    if is_paused:
        header.append("Nothing runs until 'enabled: false' is taken out of defaults and the file is applied again.")
    text, imported = written(imported, header, is_paused=is_paused)
    if output is Output.TABLE:
        print(text, end="")
    elif output is Output.JSON:
        print_json({**_as_data(imported), "job_file": text})
    else:
        print_rows([*imported.jobs, *imported.findings], output, ())
    lines = list(report_lines(imported))
    if report is not None:
        report.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(summary(imported) + f" in {report}", file=sys.stderr)
    elif output is Output.TABLE:
        print("\n".join(lines), file=sys.stderr)
    if imported.has_errors:
        number = sum(finding.verdict.value == "error" for finding in imported.findings)
        raise InvalidInput(
            f"{number} of what was read could not be carried over (see 'error' in the report)",
            hint=f"mend the source and import again, or write those jobs by hand; {_what_of_jobs(imported)}",
        )


def _what_of_jobs(imported: Imported) -> str:
    """Which of the printed jobs can be relied on."""
    if not imported.jobs:
        return "no job was printed"
    paused = sum(job.keys.get("enabled") is False for job in imported.jobs)
    if not paused:
        return "the jobs that were printed are good"
    return f"of the {len(imported.jobs)} printed jobs {paused} have enabled: false, and their comments say why"


def _as_data(imported: Imported) -> dict[str, object]:
    return {
        "jobs": [
            {"name": job.name, "file": job.file, "line": job.line, "source": job.source, "keys": job.keys}
            for job in imported.jobs
        ],
        "findings": imported.findings,
        "counts": imported.counts,
    }
