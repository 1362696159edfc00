"""What an import gives back: jobs, and a finding for everything that did not become one or means something else.

Every importer keeps to three rules. Nothing is dropped in silence: what is in the source stands in a job, or in a
finding with its line. Nothing is guessed: what has two readings is an error that names both, and a job that an error
speaks of does not run until somebody has mended it. Nothing raises: whatever the text, the answer is an ``Imported``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum


class Verdict(StrEnum):
    """What became of a line or key, the gravest first."""

    ERROR = "error"
    """It could not be read, or cannot be carried over as it stands: mend it and import again."""
    LEFT_OUT = "left out"
    """It was understood, and Sexton has nothing like it."""
    DISABLED = "disabled"
    """A job that is commented out."""
    DIFFERS = "differs"
    """It was carried over and means something else in Sexton."""
    NOTE = "note"
    """It was carried over; this says how, where that is not plain to see."""


_PAUSED = "the job was written with enabled: false: mend it and remove that line"


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about one place. ``line`` counts from 1; 0 speaks of the whole file. ``job``: whom it touches."""

    file: str
    line: int
    verdict: Verdict
    message: str
    job: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        about = f" [{self.job}]" if self.job else ""
        return f"{place}: {self.verdict.value}:{about} {self.message}"


@dataclass(frozen=True, slots=True)
class ImportedJob:
    """A job under the name it got. ``source``: the lines it was made of, as they stood."""

    name: str
    keys: Mapping[str, object]
    file: str
    line: int
    source: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Imported:
    """Jobs in the order of the source; ``disabled`` are those that were commented out there."""

    jobs: tuple[ImportedJob, ...] = ()
    disabled: tuple[ImportedJob, ...] = ()
    findings: tuple[Finding, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def faulty(self) -> frozenset[str]:
        """The names that errors speak of, of jobs that were written and of those that were not."""
        return frozenset(finding.job for finding in self.findings if finding.verdict is Verdict.ERROR and finding.job)

    @property
    def has_errors(self) -> bool:
        return any(finding.verdict is Verdict.ERROR for finding in self.findings)


class Findings:
    """Collects the findings of one file, each said once."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Finding] = []

    def add(self, line: int, verdict: Verdict, message: str, job: str = "") -> None:
        finding = Finding(self.file, line, verdict, message, job)
        if finding not in self.found[-50:]:
            self.found.append(finding)

    def error(self, line: int, message: str, job: str = "") -> None:
        self.add(line, Verdict.ERROR, message, job)

    def left_out(self, line: int, message: str, job: str = "") -> None:
        self.add(line, Verdict.LEFT_OUT, message, job)

    def disabled(self, line: int, message: str, job: str = "") -> None:
        self.add(line, Verdict.DISABLED, message, job)

    def differs(self, line: int, message: str, job: str = "") -> None:
        self.add(line, Verdict.DIFFERS, message, job)

    def note(self, line: int, message: str, job: str = "") -> None:
        self.add(line, Verdict.NOTE, message, job)


def with_faulty_paused(imported: Imported) -> Imported:
    """The same import, in which no job is enabled that an error speaks of; the errors say so."""
    faulty = imported.faulty & {job.name for job in imported.jobs}

    def told(finding: Finding) -> Finding:
        if finding.verdict is not Verdict.ERROR or finding.job not in faulty:
            return finding
        return replace(finding, message=f"{finding.message}; {_PAUSED}")

    return replace(
        imported,
        jobs=tuple(
            replace(job, keys={**job.keys, "enabled": False}) if job.name in faulty else job for job in imported.jobs
        ),
        findings=tuple(map(told, imported.findings)),
    )


def combined(parts: Iterable[Imported]) -> Imported:
    """Several files' imports as one."""
    listed = list(parts)
    counts: dict[str, int] = {}
    for part in listed:
        for what, number in part.counts.items():
            counts[what] = counts.get(what, 0) + number
    return Imported(
        tuple(job for part in listed for job in part.jobs),
        tuple(job for part in listed for job in part.disabled),
        tuple(finding for part in listed for finding in part.findings),
        counts,
    )


def shown(text: str, longest: int = 60) -> str:
    """``text`` quoted, short, and unable to act on a terminal."""
    return repr(text if len(text) <= longest else text[:longest] + "…")
