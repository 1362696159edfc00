"""The report of an import, as lines for people: a count of all lines, what is wrong, what differs, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sexton.jobfiles.importers.findings import Finding, Imported, Verdict

_SAID = {
    "jobs": ("job", "jobs"),
    "env": ("assignment", "assignments"),
    "reboot": ("@reboot line", "@reboot lines"),
    "disabled": ("commented-out job", "commented-out jobs"),
    "errors": ("error", "errors"),
    "comments": ("comment", "comments"),
    "blank": ("blank line", "blank lines"),
    "units": ("timer", "timers"),
    "manifests": ("CronJob", "CronJobs"),
}


def report_lines(imported: Imported) -> Iterator[str]:
    """Errors first, then the other findings by place, then what holds for whole files, then the counts."""
    errors = [finding for finding in imported.findings if finding.verdict is Verdict.ERROR]
    others = [finding for finding in imported.findings if finding.verdict is not Verdict.ERROR]
    yield from map(_line, errors)
    yield from (_line(finding) for finding in others if finding.line)
    yield from map(_line, _said_once([finding for finding in others if not finding.line]))
    yield summary(imported)


def _said_once(findings: list[Finding]) -> Iterator[Finding]:
    """What holds for several whole files, once, under the first one's name and the number of the others."""
    files: dict[Finding, list[str]] = {}
    for finding in findings:
        files.setdefault(replace(finding, file=""), []).append(finding.file)
    for finding, named in files.items():
        more = f" and {len(named) - 1} more" if len(named) > 1 else ""
        yield replace(finding, file=named[0] + more)


def summary(imported: Imported) -> str:
    """What became of all that was read, in one line."""
    told = [f"{number} {_SAID[what][number != 1]}" for what, number in imported.counts.items() if number]
    verdicts = [finding.verdict for finding in imported.findings]
    differing = verdicts.count(Verdict.DIFFERS)
    left_out = verdicts.count(Verdict.LEFT_OUT)
    written = f"{len(imported.jobs)} {_SAID['jobs'][len(imported.jobs) != 1]} written"
    listed = f"{left_out} left out and {differing} differing in meaning, all listed"
    return f"{written}; read: {', '.join(told) or 'nothing'}; {listed}"


def _line(finding: Finding) -> str:
    text = str(finding)
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
