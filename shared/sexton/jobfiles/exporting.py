"""What runs now, as job files: applied to this cluster they change nothing, applied to an empty one they give the same
ticks.

* ``hash_seed`` is written wherever it is not the job's name: after a rename, that is.
* A pause by an operator is none of the file's business: it is told in a comment, and not as ``enabled: false``.
* ``renamed_from`` has done its work and is not written.

Up to ``ONE_FILE_EACH`` jobs, each has a file of its own name; more share files, in the order of their names, so that
what reads them back can.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sexton.jobfiles.folder_defaults import DEFAULTS_NAMES
from sexton.jobfiles.writing import JobEntry, job_file_text, keys_of
from sexton.jobs import JobDefinition
from sexton.store.protocol import CurrentJob
from sexton.targets import CeleryTarget, HttpTarget

ONE_FILE_EACH = 1_000
_JOBS_A_FILE = 1_000
_CHARACTERS_A_FILE = 3_000_000
HEADER = ("Written by `sexton export`: what ran then. Change it, and `sexton plan` shows what would become of it.",)


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """One file of an export. ``is_private``: it holds what may be secrets: ``env``, ``http`` or ``celery``."""

    name: str
    text: str
    is_private: bool


def export_text(jobs: Sequence[CurrentJob]) -> str:
    """All jobs as one file, by name."""
    return job_file_text([_entry(job) for job in _by_name(jobs)], header=HEADER)


def export_files(jobs: Sequence[CurrentJob]) -> Iterator[ExportedFile]:
    """The jobs as the files of a folder."""
    listed = _by_name(jobs)
    if len(listed) <= ONE_FILE_EACH:
        for job in listed:
            name = f"{job.name}.yaml"
            # No job's name begins with a line below, so this file is nobody else's.
            yield _file(f"_{name}" if name in DEFAULTS_NAMES else name, [job])
        return
    for number, some in enumerate(_chunks(listed), start=1):
        yield _file(f"jobs-{number:04}.yaml", some)


def _by_name(jobs: Sequence[CurrentJob]) -> list[CurrentJob]:
    return sorted(jobs, key=lambda job: job.name.lower())


def _file(name: str, jobs: Sequence[CurrentJob]) -> ExportedFile:
    text = job_file_text([_entry(job) for job in jobs], header=HEADER)
    return ExportedFile(name, text, is_private=any(_may_hold_secrets(job.definition) for job in jobs))


def _may_hold_secrets(definition: JobDefinition) -> bool:
    return bool(definition.env) or isinstance(definition.target, HttpTarget | CeleryTarget)


def _chunks(jobs: Sequence[CurrentJob]) -> Iterator[list[CurrentJob]]:
    some: list[CurrentJob] = []
    size = 0
    for job in jobs:
        own = len(job.definition.to_text())
        if some and (len(some) == _JOBS_A_FILE or size + own > _CHARACTERS_A_FILE):
            yield some
            some, size = [], 0
        some.append(job)
        size += own
    if some:
        yield some


def _entry(job: CurrentJob) -> JobEntry:
    definition = replace(job.definition, renamed_from=None)
    if definition.hash_seed is None and job.hash_seed != definition.name:
        definition = replace(definition, hash_seed=job.hash_seed)
    comment: list[str] = []
    if job.is_paused and definition.enabled:
        comment.append("paused by an operator when this was written; `sexton resume` ends that")
    if not job.is_paused and not definition.enabled:
        comment.append("resumed by an operator when this was written, though the file pauses it")
    if job.is_quarantined:
        comment.append("quarantined when this was written: `sexton jobs` says why")
    return JobEntry(definition.name, keys_of(definition), tuple(comment))
