"""Names for jobs that had none: unique, and the same at each import, whatever else comes to stand in the source.

A job has the first of its candidates that no other job could have too, and where there is none, the best with a digest.
So a job that is added may take a name away from another one, but never gets the name that another one had: with a name
go history, cursor and the values of H. Only jobs whose candidates are all the same, which run the same, are told apart
by numbers, in their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256

from sexton.jobfiles.importers.findings import Finding, Imported, ImportedJob, Verdict

LONGEST_NAME = 100
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")
_HANDLE = re.compile("\0([0-9]+)\0")


class NameGiver:
    """Collects the candidates of all jobs of an import, under handles; names are given when all are known."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._proposed: list[tuple[str, ...]] = []
        self._alike: dict[str, list[int]] = {}

    def propose(self, candidates: Iterable[str]) -> str:
        """What stands for the job's name until ``settled``; the first candidate is the best."""
        listed = list(candidates)
        fitted = tuple(dict.fromkeys(name for one in listed if (name := self._fitted(one))))
        # Names are cut; what they are cut from tells whether two jobs run the same.
        self._alike.setdefault("\0".join(listed).lower(), []).append(len(self._proposed))
        self._proposed.append(fitted or (self._fitted("job"),))
        return f"\0{len(self._proposed) - 1}\0"

    def settled(self, imported: Imported) -> Imported:
        """The import with names in the place of all handles, and a note about each name that has a number."""
        names, numbered = self._names()

        def named(text: str) -> str:
            return _HANDLE.sub(lambda match: names[int(match[1])], text) if "\0" in text else text

        def with_name(job: ImportedJob) -> ImportedJob:
            return replace(job, name=named(job.name))

        notes = [
            Finding(job.file, job.line, Verdict.NOTE, _NUMBERED, named(job.name))
            for job in imported.jobs
            if (match := _HANDLE.fullmatch(job.name)) and int(match[1]) in numbered
        ]
        told = [replace(one, message=named(one.message), job=named(one.job)) for one in imported.findings]
        return replace(
            imported,
            jobs=tuple(map(with_name, imported.jobs)),
            disabled=tuple(map(with_name, imported.disabled)),
            findings=tuple(_by_place([*told, *notes]) if notes else told),
        )

    def _names(self) -> tuple[dict[int, str], set[int]]:
        """The name of each handle, and those that are numbers' work."""
        wanted: dict[str, int] = {}
        for handles in self._alike.values():
            for one in {name.lower() for name in self._proposed[handles[0]]}:
                wanted[one] = wanted.get(one, 0) + 1
        names: dict[int, str] = {}
        bases: dict[int, str] = {}
        for key, handles in self._alike.items():
            own = self._proposed[handles[0]]
            alone = next((one for one in own if wanted[one.lower()] == 1), None) or f"{own[0]}-{_digest(key)}"
            bases.update(dict.fromkeys(handles, alone))
            names[handles[0]] = bases[handles[0]]
        taken = {name.lower() for name in names.values()}
        numbered = _numbered([at for at in bases if at not in names], bases, taken)
        return names | numbered, {at for at, name in numbered.items() if name != bases[at]}

    def _fitted(self, candidate: str) -> str:
        slug = slug_of(candidate)
        return slug_of(self._prefix + slug)[: LONGEST_NAME - 8] if slug else ""


def _digest(key: str) -> str:
    """What tells a job apart by itself, where none of its candidates does."""
    return sha256(key.encode(errors="replace")).hexdigest()[:6]


_NUMBERED = (
    "another job runs the same, so its name has a number, by its place: a line like it inserted above would take the "
    "number, and the history with it"
)


def _numbered(handles: Iterable[int], bases: Mapping[int, str], taken: set[str]) -> dict[int, str]:
    """Names for those that have none of their own: the base, else the first free number after it."""
    given: dict[int, str] = {}
    numbers: dict[str, int] = {}  # where to go on counting
    for handle in sorted(handles):
        base = bases[handle]
        number, name = numbers.get(base.lower(), 1), ""
        while not name or name.lower() in taken:
            name = base if number == 1 else f"{base[: LONGEST_NAME - 8]}-{number}"
            number += 1
        numbers[base.lower()] = number
        taken.add(name.lower())
        given[handle] = name
    return given


def _by_place(findings: list[Finding]) -> list[Finding]:
    """By file, in the order of the files, then by line."""
    files = {name: place for place, name in enumerate(dict.fromkeys(finding.file for finding in findings))}
    return sorted(findings, key=lambda finding: (files[finding.file], finding.line))


def slug_of(text: str, longest: int = LONGEST_NAME) -> str:
    """What of ``text`` may stand in a name; empty where nothing may."""
    return _UNFIT.sub("-", text).strip("-._")[:longest].strip("-._")
