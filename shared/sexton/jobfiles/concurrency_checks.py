"""One limit for each concurrency key: between the jobs of the files, and beside the cluster's jobs that stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from sexton.errors import Problem
from sexton.jobfiles.problems import shown

if TYPE_CHECKING:
    from sexton.jobfiles.load import LoadedJob
    from sexton.store.protocol import CurrentJob


def two_limits_within(jobs: Iterable[LoadedJob]) -> Iterator[Problem]:
    """Jobs of the files that give a key another limit than the first that names it."""
    first: dict[str, LoadedJob] = {}
    for job in jobs:
        key = job.definition.concurrency_key
        if key is None:
            continue
        earlier = first.setdefault(key.key, job)
        other = earlier.definition.concurrency_key
        if other is not None and other.limit != key.limit:
            where = f"{earlier.file}:{earlier.line}:{earlier.column}"
            yield job.problem(
                f"the concurrency_key {shown(key.key)} has the limit {key.limit} here and {other.limit} in "
                f"{shown(earlier.name)} ({where}); give all jobs of a key one limit, e.g. by defaults"
            )


def two_limits_beside(jobs: Iterable[LoadedJob], kept: Iterable[CurrentJob]) -> Iterator[Problem]:
    """Jobs of the files that give a key another limit than a job of the cluster that no file names and that stays."""
    others: dict[str, CurrentJob] = {}
    for job in kept:
        if job.definition.concurrency_key is not None:
            others.setdefault(job.definition.concurrency_key.key, job)
    for loaded in jobs:
        key = loaded.definition.concurrency_key
        other = None if key is None else others.get(key.key)
        limit = None if other is None else other.definition.concurrency_key
        if key is None or other is None or limit is None or limit.limit == key.limit:
            continue
        yield loaded.problem(
            f"the concurrency_key {shown(key.key)} has the limit {key.limit} here and {limit.limit} in the cluster's "
            f"job {shown(other.name)}, which no file here names; apply it together with these, with one limit, or "
            "retire it with --prune"
        )
