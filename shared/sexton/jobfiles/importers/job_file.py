"""An import as a job file, with above each job what it was and what differs; every job in it has been read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sexton.errors import InvalidInput, InvalidJobFile
from sexton.jobfiles.importers.findings import Finding, Imported, ImportedJob, Verdict
from sexton.jobfiles.keys import JOB_KEYS, MAPPINGS
from sexton.jobfiles.load import load_job_text
from sexton.jobfiles.writing import JobEntry, job_file_text

_OWN = frozenset(key.name for key in JOB_KEYS if key.own)
# What jobs share is said once. `enabled` is each job's own business, and so is what it is called.
_NOT_SHARED = _OWN | {"enabled", "description", "stdin", "success_codes", "max_runtime", "start", "end", "exclude"}
_LONGEST_SOURCE_LINE = 400
_IN_COMMENTS = frozenset({Verdict.DIFFERS, Verdict.ERROR, Verdict.LEFT_OUT})


def written(imported: Imported, header: Sequence[str], *, is_paused: bool = False) -> tuple[str, Imported]:
    """The job file's text, and the import with the jobs that are really in it; ``is_paused``: none is to run yet.

    A job that no job file can hold becomes an error: whatever this returns is read by ``load_job_text``.
    """
    good: list[ImportedJob] = []
    findings = list(imported.findings)
    all_are_good = _why_unwritable(imported.jobs) is None
    for job in imported.jobs:
        why = None if all_are_good else _why_unwritable([job])
        if why is None:
            good.append(job)
        else:
            findings.append(Finding(job.file, job.line, Verdict.ERROR, f"is no job of Sexton's: {why}", job.name))
    counts = dict(imported.counts)
    if "jobs" in counts:  # those of crontabs, of which every line is counted once
        lost = len(imported.jobs) - len(good)
        counts.update(jobs=counts["jobs"] - lost, errors=counts["errors"] + lost)
    kept = replace(imported, jobs=tuple(good), findings=tuple(findings), counts=counts)
    return _text(kept, header, is_paused=is_paused), kept


def _why_unwritable(jobs: Sequence[ImportedJob]) -> str | None:
    try:
        load_job_text(job_file_text(JobEntry(job.name, job.keys) for job in jobs))
    except InvalidJobFile as error:
        return error.problems[0].message
    except InvalidInput as error:
        return str(error)
    return None


def _text(imported: Imported, header: Sequence[str], *, is_paused: bool) -> str:
    defaults = _shared([job.keys for job in imported.jobs])
    if is_paused:
        defaults["enabled"] = False
    told: dict[str, list[Finding]] = {}
    for finding in imported.findings:
        told.setdefault(finding.job, []).append(finding)
    entries = [
        JobEntry(job.name, _without(job.keys, defaults), _comment(job, told.get(job.name, ()))) for job in imported.jobs
    ]
    lines = list(header)
    if imported.disabled:
        lines += ["Commented out in the source, and not jobs here either (--with-disabled writes them, paused):"]
        lines += [f"  {job.file}:{job.line}: {_short(line)}" for job in imported.disabled for line in job.source]
    return job_file_text(entries, header=tuple(lines), defaults=defaults)


def _comment(job: ImportedJob, findings: Sequence[Finding]) -> tuple[str, ...]:
    told = [
        f"{finding.verdict.value}: {finding.message}"
        + (f" ({finding.file}:{finding.line})" if finding.file != job.file else "")
        for finding in findings
        if finding.verdict in _IN_COMMENTS
    ]
    return (f"{job.file}:{job.line}", *(f"  {_short(line)}" for line in job.source), *told)


def _short(line: str) -> str:
    return line if len(line) <= _LONGEST_SOURCE_LINE else line[:_LONGEST_SOURCE_LINE] + "…"


def _shared(jobs: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """What two or more jobs all have, for `defaults`."""
    if len(jobs) < 2:
        return {}
    shared: dict[str, object] = {}
    for name, value in jobs[0].items():
        if name in _NOT_SHARED:
            continue
        if name in MAPPINGS and isinstance(value, Mapping):
            maps = [job.get(name) for job in jobs]
            common = {
                key: one
                for key, one in value.items()
                if all(isinstance(m, Mapping) and m.get(key) == one for m in maps)
            }
            if common:
                shared[name] = common
        elif all(name in job and job[name] == value for job in jobs):
            shared[name] = value
    return shared


def _without(keys: Mapping[str, object], defaults: Mapping[str, Any]) -> dict[str, object]:
    left: dict[str, object] = {}
    for name, value in keys.items():
        if name not in defaults or name == "enabled":
            left[name] = value
        elif name in MAPPINGS and isinstance(value, Mapping):
            rest = {key: one for key, one in value.items() if key not in defaults[name]}
            if rest:
                left[name] = rest
    return left
