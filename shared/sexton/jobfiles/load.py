"""Job files to definitions: everything that is in the files, or everything that is wrong with them.

Nothing is half loaded: one fault in one file, and no job of any file is returned (``InvalidJobFile`` holds all faults
of all files, each with file, line and column). Reading needs no database, no network and no clock.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sexton.errors import InvalidJobFile, Problem
from sexton.jobfiles.between_keys import JobNode
from sexton.jobfiles.concurrency_checks import two_limits_within
from sexton.jobfiles.decoding import decode
from sexton.jobfiles.definitions import merged, read_definition
from sexton.jobfiles.file_content import FORMAT_VERSION as FORMAT_VERSION  # writers of job files ask for it here
from sexton.jobfiles.file_content import TOML_WORDS, YAML_WORDS, Content, Words, read_content, read_folder_defaults
from sexton.jobfiles.keys import JOB_KEYS, NAME_PATTERN, NAME_WANTED
from sexton.jobfiles.merge_conflicts import tell_conflicts
from sexton.jobfiles.nodes import Mapping, Node, Scalar, Sequence, kind_of
from sexton.jobfiles.problems import FileProblems, shown
from sexton.jobfiles.python_files import PythonLimits, read_python_jobs
from sexton.jobfiles.python_modules import ModuleNames
from sexton.jobfiles.readings import BAD, Text
from sexton.jobfiles.remedies import toml_key
from sexton.jobfiles.sources import JobFileText, read_job_files
from sexton.jobfiles.toml_nodes import parse as parse_toml
from sexton.jobfiles.yaml_nodes import parse as parse_yaml
from sexton.jobs import JobDefinition

_KEYS_OF_JOBS = frozenset(key.name for key in JOB_KEYS)
_NAME = Text(pattern=NAME_PATTERN, wanted=NAME_WANTED)
_IMPORTED = re.compile(r"(?:#.*\n)*# Imported by: sexton import ")


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
    """All jobs of all files, in the order of the files.

    ``import_roots`` are the folders that a worker must have on its PYTHONPATH to import the Python files among them.
    """

    jobs: tuple[LoadedJob, ...]
    files: tuple[str, ...]
    import_roots: tuple[str, ...] = ()


def load_job_files(paths: Iterable[Path], limits: PythonLimits | None = None) -> LoadedJobs:
    """The jobs of job files and of folders of them. ``limits`` bound what a Python file may take.

    Raises NotFound where there are no files, InvalidJobFile where anything in any of them is wrong.
    """
    return _load([file for path in paths for file in read_job_files(path)], limits or PythonLimits())


def load_job_text(data: bytes | str, file: str = "jobs.yaml") -> LoadedJobs:
    """The jobs of one file's content: TOML where ``file`` ends in .toml, else YAML. Raises InvalidJobFile."""
    problems = FileProblems(file)
    text = decode(data if isinstance(data, bytes) else data.encode("utf-8", errors="surrogatepass"), problems)
    name = "jobs.toml" if file.lower().endswith(".toml") else "jobs.yaml"
    return _load([JobFileText(problems, text, Path(name))], PythonLimits())


def _load(files: list[JobFileText], limits: PythonLimits) -> LoadedJobs:
    reader = _Reader(limits)
    with _without_collections():
        for file in files:
            reader.read(file)
    jobs = reader.jobs
    found = reader.problems()
    imported = [file.problems.file for file in files if file.text is not None and _IMPORTED.match(file.text)]
    found.extend(_repeated_names(reader.places, frozenset(imported)))
    found.extend(_renames_within(jobs))
    found.extend(two_limits_within(jobs))
    if found:
        raise InvalidJobFile(found)
    names = tuple(file.problems.file for file in files if not file.holds_defaults)
    return LoadedJobs(tuple(jobs), names, reader.modules.roots())


@contextmanager
def _without_collections() -> Iterator[None]:
    """A hundred thousand jobs are many values without cycles; looking for cycles among them would cost the most."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@dataclass(frozen=True, slots=True)
class _NamePlace:
    name: str
    file: str
    line: int
    column: int


class _Reader:
    """Reads one file after the other; every file of defaults once."""

    def __init__(self, limits: PythonLimits) -> None:
        self.jobs: list[LoadedJob] = []
        self.places: list[_NamePlace] = []
        self.modules = ModuleNames()
        self._limits = limits
        self._seen: dict[int, FileProblems] = {}
        self._defaults: dict[int, dict[str, Any]] = {}

    def problems(self) -> list[Problem]:
        """Everything that is wrong with the files so far."""
        return [problem for one in self._seen.values() for problem in one.told()]

    def read(self, file: JobFileText) -> None:
        """Add the jobs of ``file``, with the defaults of its folders under its own."""
        self._seen[id(file)] = file.problems
        if file.holds_defaults:
            self._folder_defaults(file)
            return
        defaults: dict[str, Any] = {}
        for one in file.defaults:
            defaults = merged(defaults, self._folder_defaults(one))
        content = self._content(file)
        if tell_conflicts(file.text, file.problems):
            return
        defaults = merged(defaults, content.defaults)
        for key_node, value in content.jobs:
            self._read_job(key_node, value, defaults, file.problems)

    def _folder_defaults(self, file: JobFileText) -> dict[str, Any]:
        self._seen[id(file)] = file.problems
        if id(file) not in self._defaults:
            root, words = _parsed(file)
            is_read = file.text is not None
            self._defaults[id(file)] = read_folder_defaults(root, words, file.problems) if is_read else {}
        return self._defaults[id(file)]

    def _content(self, file: JobFileText) -> Content:
        if file.is_other_module:
            file.problems.add_at(1, 1, "imports neither job nor Job from sexton; name a file that declares jobs")
        if file.text is None:
            return Content()
        if file.suffix == ".py":
            return read_python_jobs(file.path, file.text, file.problems, self.modules, self._limits)
        return read_content(*_parsed(file), file.problems)

    def _read_job(self, key_node: Scalar, value: Node, defaults: dict[str, Any], problems: FileProblems) -> None:
        name = key_node.text
        self.places.append(_NamePlace(name, problems.file, key_node.line, key_node.column))
        name_ok = _NAME.read(key_node, "the job's name", problems) is not BAD
        if not isinstance(value, Mapping):
            problems.add(value, _no_job(name, value, problems.format))
            return
        definition = read_definition(JobNode(name, value), defaults, problems)
        if definition is not None and name_ok:
            renamed = value.entries.get("renamed_from")
            at = (renamed[1].line, renamed[1].column) if renamed is not None else None
            self.jobs.append(LoadedJob(definition, problems.file, key_node.line, key_node.column, at))


def _no_job(name: str, value: Node, format_name: str) -> str:
    if name in _KEYS_OF_JOBS:
        where = "write it below [jobs.NAME]" if format_name == "toml" else "indent it below its job"
        return f"{shown(name)} is a key of a job and stands where jobs have their names; {where}"
    what = f"the job {shown(name)} is {kind_of(value)}"
    if format_name != "toml":
        return f"{what}; write its keys as a mapping, indented below its name"
    header = f"[jobs.{toml_key(name)}]"
    if isinstance(value, Sequence):
        return f"{what}; write {header}, with single brackets, and its keys below"
    return f"{what}; write {header} and below it its keys"


def _parsed(file: JobFileText) -> tuple[Node | None, Words]:
    if file.suffix == ".toml":
        return (None if file.text is None else parse_toml(file.text, file.problems)), TOML_WORDS
    return (None if file.text is None else parse_yaml(file.text, file.problems)), YAML_WORDS


def _repeated_names(places: Iterable[_NamePlace], imported: frozenset[str]) -> Iterable[Problem]:
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
        advice = "give it another name"
        if place.file != earlier.file and (place.file in imported or earlier.file in imported):
            which = place.file if place.file in imported else earlier.file
            advice = f"{which} was written by 'sexton import': import it again with another --prefix"
        yield Problem(place.file, place.line, place.column, f"the name {shown(place.name)} {what}; {advice}")


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
