"""The top level of a job file, in whatever format: its version, its defaults, its jobs by name.

A folder's file of defaults has the same top level without jobs. The words of messages are those of the file's format.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from sexton.jobfiles.keys import JOB_KEYS, Key, TableOf, unknown_key
from sexton.jobfiles.nodes import Mapping, Node, Scalar, kind_of
from sexton.jobfiles.problems import FileProblems, shown
from sexton.jobfiles.readings import BAD

MAX_JOBS_PER_FILE = 200_000
FORMAT_VERSION = 1
_TOP_KEYS = ("version", "defaults", "jobs")
_DEFAULT_KEYS: tuple[Key, ...] = tuple(key for key in JOB_KEYS if not key.own)
_JOB_NAMES = frozenset(key.name for key in JOB_KEYS)
_NEAR_TOP = frozenset({"job", "default", "versions"})
_OWN_NAMES = frozenset(key.name for key in JOB_KEYS if key.own)


_CRONTAB = re.compile(r"\s*(?:@[a-z]+|[-0-9*/,]+(?:\s+[-0-9*/,A-Za-z]+){4})\s+\S")


@dataclass(frozen=True, slots=True)
class Words:
    """How a format writes what messages ask for."""

    version: str
    defaults: str
    jobs: str
    one_job: str
    no_jobs: str


YAML_WORDS = Words(
    version="'version: 1'",
    defaults="'defaults:'",
    jobs="'jobs:' and below it a mapping by name",
    one_job="a mapping by name, such as jobs: {backup: {...}}",
    no_jobs="'jobs: {}'",
)
TOML_WORDS = Words(
    version="'version = 1'",
    defaults="a table [defaults]",
    jobs="a table [jobs.NAME] for each job",
    one_job="a table for each job, such as [jobs.backup]",
    no_jobs="'[jobs]'",
)


@dataclass(frozen=True, slots=True)
class Content:
    """What one file says: its own defaults, and its jobs, not yet read."""

    defaults: dict[str, Any] = field(default_factory=dict)
    jobs: list[tuple[Scalar, Node]] = field(default_factory=list)


def read_content(root: Node | None, words: Words, problems: FileProblems) -> Content:
    """Defaults and jobs of a job file; what is wrong with its top level and its defaults is reported."""
    mapping = _top(root, words, f"{words.version} and {words.jobs}", problems)
    if mapping is None:
        return Content()
    return Content(read_defaults(mapping, problems), _job_nodes(mapping, words, problems))


def read_folder_defaults(root: Node | None, words: Words, problems: FileProblems) -> dict[str, Any]:
    """The defaults of a folder's file of defaults, which holds nothing else."""
    mapping = _top(root, words, f"{words.version} and {words.defaults}", problems)
    if mapping is None:
        return {}
    if (jobs := mapping.entries.get("jobs")) is not None:
        problems.add(jobs[0], "a file of defaults holds no jobs; move them to a job file beside it")
    if "defaults" not in mapping.entries:
        problems.add_at(1, 1, f"has no 'defaults'; write {words.defaults}, or give a job file another name")
    return read_defaults(mapping, problems)


def read_defaults(root: Mapping, problems: FileProblems) -> dict[str, Any]:
    """The values under ``defaults``; BAD where one was refused, so that it is reported once and not for each job."""
    if "defaults" not in root.entries:
        return {}
    node = root.entries["defaults"][1]
    if not isinstance(node, Mapping):
        write = "a mapping of keys, such as queue and timezone"
        if problems.format == "toml":
            write = "[defaults], with single brackets, and below it keys such as queue and timezone"
        problems.add(node, f"defaults is {kind_of(node)}; write {write}")
        return {}
    shared: dict[str, tuple[Scalar, Node]] = {}
    for name, entry in node.entries.items():
        if name in _OWN_NAMES:
            problems.add(entry[0], f"'{name}' is each job's own and cannot stand in defaults; move it to the jobs")
        else:
            shared[name] = entry
    values = TableOf(_DEFAULT_KEYS, "defaults").read(Mapping(node.line, node.column, shared), "defaults", problems)
    return {} if values is BAD else dict(values)


def _top(root: Node | None, words: Words, wanted: str, problems: FileProblems) -> Mapping | None:
    """The top level with its keys and version checked; None, reported, where there is none."""
    if root is None or is_nothing(root) or (isinstance(root, Mapping) and not root.entries):
        if not problems.found:
            problems.add_at(1, 1, f"is empty; write {wanted}, or remove the file")
        return None
    if not isinstance(root, Mapping):
        foreign = isinstance(root, Scalar) and _CRONTAB.match(root.text) is not None
        advice = "for crontabs there is 'sexton import crontab FILE'" if foreign else f"write a mapping with {wanted}"
        problems.add(root, f"the file is {kind_of(root)}; {advice}")
        return None
    for name, (key_node, mapping_value) in root.entries.items():
        if name not in _TOP_KEYS:
            problems.add(key_node, _unknown_top_key(name, mapping_value))
    if "version" not in root.entries:
        problems.add_at(1, 1, f"has no 'version'; write {words.version} as its first line")
        return root
    _check_version(root.entries["version"][1], words, problems)
    return root


def _unknown_top_key(name: str, value: Node) -> str:
    if isinstance(value, Mapping) and not _JOB_NAMES.isdisjoint(value.entries) and name.lower() not in _NEAR_TOP:
        return f"{shown(name)} is not a key of a job file; if it is a job, write it below 'jobs'"
    if name in ("apiVersion", "kind"):
        return f"{shown(name)} is not a key of a job file; for manifests there is 'sexton import kubernetes FILE'"
    return unknown_key(name, _TOP_KEYS, "a job file")


def _check_version(node: Node, words: Words, problems: FileProblems) -> None:
    known = str(FORMAT_VERSION)
    if isinstance(node, Scalar) and node.text == known:
        if not node.is_plain:
            problems.add(node, f"version: {shown(node.text)} stands in quotes; write the number without them")
        return
    what = kind_of(node) if not isinstance(node, Scalar) or not node.text else shown(node.text)
    problems.add(node, f"version: {what} is not known; this Sexton reads version {known}, so write {words.version}")


def is_nothing(node: Node) -> bool:
    """Whether a value was left out, or is null."""
    return isinstance(node, Scalar) and node.is_plain and node.text in ("", "~", "null")


def _job_nodes(root: Mapping, words: Words, problems: FileProblems) -> list[tuple[Scalar, Node]]:
    if "jobs" not in root.entries:
        problems.add(root, f"has no 'jobs'; write {words.jobs} ({words.no_jobs} for none)")
        return []
    node = root.entries["jobs"][1]
    if not isinstance(node, Mapping):
        what = "empty, which is not the same as no jobs" if is_nothing(node) else kind_of(node)
        problems.add(node, f"jobs is {what}; write {words.one_job} ({words.no_jobs} for none)")
        return []
    if len(node.entries) > MAX_JOBS_PER_FILE:
        problems.add(node, f"jobs holds {len(node.entries)} jobs; at most {MAX_JOBS_PER_FILE} may stand in one file")
        return []
    return list(node.entries.values())
