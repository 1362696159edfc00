"""Job files to definitions: everything that is in the files, or everything that is wrong with them.

Nothing is half loaded: one fault in one file, and no job of any file is returned (``InvalidJobFile`` holds all faults
of all files, each with file, line and column). Reading needs no database, no network and no clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sexton.errors import InvalidJobFile, Problem
from sexton.jobfiles.definitions import JobNode, read_definition
from sexton.jobfiles.keys import JOB_KEYS, NAME_PATTERN, NAME_WANTED, Key, TableOf, unknown_key
from sexton.jobfiles.nodes import Mapping, Node, Scalar, kind_of
from sexton.jobfiles.problems import FileProblems, shown
from sexton.jobfiles.readings import BAD, Text, Whole
from sexton.jobfiles.sources import JobFileText, decode, read_job_files
from sexton.jobfiles.yaml_nodes import parse
from sexton.jobs import JobDefinition

MAX_JOBS_PER_FILE = 200_000
FORMAT_VERSION = 1
_TOP_KEYS = ("version", "defaults", "jobs")
_DEFAULT_KEYS: tuple[Key, ...] = tuple(key for key in JOB_KEYS if not key.own)
_OWN_NAMES = frozenset(key.name for key in JOB_KEYS if key.own)


@dataclass(frozen=True, slots=True)
class LoadedJob:
    """A job and where its name stands; ``renamed_from_at`` is the place of that key, if it is there."""

    definition: JobDefinition
    file: str
    line: int
    column: int
    renamed_from_at: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        return self.definition.name

    def problem(self, message: str, *, at_rename: bool = False) -> Problem:
        """A fault at this job (or at its ``renamed_from``) that shows only beside the cluster's jobs."""
        line, column = self.renamed_from_at if at_rename and self.renamed_from_at else (self.line, self.column)
        return Problem(self.file, line, column, message)


@dataclass(frozen=True, slots=True)
class LoadedJobs:
    """All jobs of all files, in the order of the files."""

    jobs: tuple[LoadedJob, ...]
    files: tuple[str, ...]


def load_job_files(paths: Iterable[Path]) -> LoadedJobs:
    """The jobs of job files and of folders of them.

    Raises NotFound where there are no files, InvalidJobFile where anything in any of them is wrong.
    """
    return _load(file for path in paths for file in read_job_files(path))


def load_job_text(data: bytes | str, file: str = "jobs.yaml") -> LoadedJobs:
    """The jobs of one file's content. Raises InvalidJobFile."""
    problems = FileProblems(file)
    text = decode(data if isinstance(data, bytes) else data.encode("utf-8", errors="surrogatepass"), problems)
    return _load([JobFileText(problems, text)])


def _load(files: Iterable[JobFileText]) -> LoadedJobs:
    listed = list(files)
    jobs: list[LoadedJob] = []
    places: list[_NamePlace] = []
    for file in listed:
        if file.text is not None:
            jobs.extend(_read_file(file.text, file.problems, places))
    found = [problem for file in listed for problem in file.problems.found]
    found.extend(_repeated_names(places))
    found.extend(_renames_within(jobs))
    if found:
        raise InvalidJobFile(found)
    return LoadedJobs(tuple(jobs), tuple(file.problems.file for file in listed))


@dataclass(frozen=True, slots=True)
class _NamePlace:
    name: str
    file: str
    line: int
    column: int


def _read_file(text: str, problems: FileProblems, places: list[_NamePlace]) -> list[LoadedJob]:
    root = parse(text, problems)
    if root is None or (isinstance(root, Scalar) and root.is_plain and root.text in ("", "~", "null")):
        if not problems.found:
            problems.add_at(1, 1, "is empty; write 'version: 1' and 'jobs:', or remove the file")
        return []
    if not isinstance(root, Mapping):
        problems.add(root, f"the file is {kind_of(root)}; write a mapping with 'version: 1' and 'jobs:'")
        return []
    for name, (key_node, _) in root.entries.items():
        if name not in _TOP_KEYS:
            problems.add(key_node, unknown_key(name, _TOP_KEYS, "a job file"))
    _check_version(root, problems)
    defaults = _read_defaults(root, problems)
    return _read_jobs(root, defaults, problems, places)


def _check_version(root: Mapping, problems: FileProblems) -> None:
    if "version" not in root.entries:
        problems.add_at(1, 1, "has no 'version'; write 'version: 1' as its first line")
        return
    node = root.entries["version"][1]
    version = Whole(0, 1_000_000).read(node, "version", problems)
    if version not in (BAD, FORMAT_VERSION):
        problems.add(node, f"version: {version} is not known; this Sexton reads version {FORMAT_VERSION}")


def _read_defaults(root: Mapping, problems: FileProblems) -> dict[str, Any]:
    if "defaults" not in root.entries:
        return {}
    node = root.entries["defaults"][1]
    if isinstance(node, Mapping):
        own = [entry[0] for name, entry in node.entries.items() if name in _OWN_NAMES]
        for key_node in own:
            problems.add(
                key_node, f"'{key_node.text}' is each job's own and cannot stand in defaults; move it to the jobs"
            )
        node = Mapping(
            node.line, node.column, {name: entry for name, entry in node.entries.items() if name not in _OWN_NAMES}
        )
    values = TableOf(_DEFAULT_KEYS, "defaults").read(node, "defaults", problems)
    return {} if values is BAD else dict(values)


def _read_jobs(
    root: Mapping, defaults: dict[str, Any], problems: FileProblems, places: list[_NamePlace]
) -> list[LoadedJob]:
    if "jobs" not in root.entries:
        problems.add(root, "has no 'jobs'; write 'jobs:' and below it a mapping by name ('jobs: {}' for none)")
        return []
    node: Node = root.entries["jobs"][1]
    if not isinstance(node, Mapping):
        is_null = isinstance(node, Scalar) and node.is_plain and node.text in ("", "~", "null")
        what = "empty, which is not the same as no jobs" if is_null else kind_of(node)
        problems.add(
            node, f"jobs is {what}; write a mapping by name, such as jobs: {{backup: {{...}}}} ('jobs: {{}}' for none)"
        )
        return []
    if len(node.entries) > MAX_JOBS_PER_FILE:
        problems.add(node, f"jobs holds {len(node.entries)} jobs; at most {MAX_JOBS_PER_FILE} may stand in one file")
        return []
    loaded: list[LoadedJob] = []
    for name, (key_node, value) in node.entries.items():
        places.append(_NamePlace(name, problems.file, key_node.line, key_node.column))
        name_ok = Text(pattern=NAME_PATTERN, wanted=NAME_WANTED).read(key_node, "the job's name", problems) is not BAD
        if not isinstance(value, Mapping):
            problems.add(value, f"the job {shown(name)} is {kind_of(value)}; write its keys as a mapping")
            continue
        definition = read_definition(JobNode(name, value), defaults, problems)
        if definition is not None and name_ok:
            renamed = value.entries.get("renamed_from")
            at = (renamed[1].line, renamed[1].column) if renamed is not None else None
            loaded.append(LoadedJob(definition, problems.file, key_node.line, key_node.column, at))
    return loaded


def _repeated_names(places: Iterable[_NamePlace]) -> Iterable[Problem]:
    """Names that stand twice, in one file or in two; case does not tell them apart."""
    first: dict[str, _NamePlace] = {}
    for place in places:
        earlier = first.setdefault(place.name.lower(), place)
        if earlier is place:
            continue
        where = f"{earlier.file}:{earlier.line}:{earlier.column}"
        what = f"is taken by {where}"
        if earlier.name != place.name:
            what = f"differs only in case from {shown(earlier.name)} in {where}"
        yield Problem(
            place.file, place.line, place.column, f"the name {shown(place.name)} {what}; give it another name"
        )


def _renames_within(jobs: Iterable[LoadedJob]) -> Iterable[Problem]:
    """Renames that contradict the files themselves."""
    listed = list(jobs)
    names = {job.name.lower(): job for job in listed}
    taken: dict[str, LoadedJob] = {}
    for job in listed:
        old = job.definition.renamed_from
        if old is None:
            continue
        if (other := names.get(old.lower())) is not None and other is not job:
            where = f"{other.file}:{other.line}:{other.column}"
            yield job.problem(
                f"renamed_from: {old} is still in the files ({where}); remove that job, or this key", at_rename=True
            )
        if (earlier := taken.setdefault(old.lower(), job)) is not job:
            yield job.problem(f"renamed_from: {old} is also what {earlier.name} was; keep one of them", at_rename=True)
