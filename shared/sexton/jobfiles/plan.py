"""What applying job files would change, against the cluster's jobs as they stand. Values in, a plan out.

* Jobs are matched by name, whatever its case; a name spelt differently is a rename.
* ``renamed_from`` moves a job of the cluster to a new name, with its cursor, history and hash seed. Once the new name
  exists it is ignored; an old name that the cluster does not know is refused.
* A job of the cluster that no file names is missing. It stays, unless ``prune`` retires it; more than the larger of
  1 and 10 % of the cluster's jobs at once only up to an explicit ``prune_limit``.
* Every change carries the revision it was planned against, so that a cluster that moved on meanwhile refuses it all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from sexton.errors import InvalidJobFile, Problem, Refused
from sexton.jobfiles.concurrency_checks import two_limits_beside
from sexton.jobfiles.differences import Difference, differences_between
from sexton.jobfiles.load import LoadedJobs
from sexton.jobs import JobDefinition
from sexton.store.protocol import ChangeKind, CurrentJob, JobChange
from sexton.targets import CeleryTarget, PythonTarget

_NAMED_AT_MOST = 5
_COMPARED_AT_MOST = 2_500  # pairs of names


@dataclass(frozen=True, slots=True)
class Revised:
    """A job of the cluster that gets a new revision; ``renamed`` where its name changes with it."""

    current: CurrentJob
    definition: JobDefinition
    differences: tuple[Difference, ...]

    @property
    def renamed(self) -> bool:
        return self.current.name != self.definition.name


@dataclass(frozen=True, slots=True)
class ApplyPlan:
    """What one apply does. ``missing`` stay; ``retired`` are those of them that prune takes out. ``unchanged_at``: the
    revision of each job, by its id, that the files say nothing new about."""

    added: tuple[JobDefinition, ...]
    revised: tuple[Revised, ...]
    unchanged: tuple[str, ...]
    missing: tuple[CurrentJob, ...]
    retired: tuple[CurrentJob, ...]
    unchanged_at: Mapping[int, int] = field(default_factory=dict)

    @property
    def likely_renames(self) -> tuple[tuple[str, str], ...]:
        """Pairs of a missing job, kept or retired, and an added one with its schedule and target, old name first; no
        job is in two of them. In the order of the added ones."""
        return likely_renames(self.missing, self.added)

    @property
    def kept(self) -> tuple[CurrentJob, ...]:
        """The jobs of the cluster that no file names and that stay."""
        retired = {job.job_id for job in self.retired}
        return tuple(job for job in self.missing if job.job_id not in retired)

    @property
    def is_empty(self) -> bool:
        return not (self.added or self.revised or self.retired)

    def summary(self) -> str:
        """The plan in one line of counts."""
        renamed = sum(one.renamed for one in self.revised)
        counts = (
            (len(self.added), "added"),
            (len(self.revised) - renamed, "changed"),
            (renamed, "renamed"),
            (len(self.retired), "retired"),
            (len(self.unchanged), "unchanged"),
            (len(self.missing) - len(self.retired), "of the cluster not in the files"),
        )
        return ", ".join(f"{count} {what}" for count, what in counts if count) or "no jobs"

    @property
    def changes(self) -> tuple[JobChange, ...]:
        """The plan as one edit: names are freed before they are taken."""
        retire = [
            JobChange(ChangeKind.RETIRE, job.job_id, expected_revision=job.revision, why="not in the job files")
            for job in self.retired
        ]
        revise = [
            JobChange(ChangeKind.REVISE, one.current.job_id, one.definition, one.current.revision)
            for one in self.revised
        ]
        create = [JobChange(ChangeKind.CREATE, definition=definition) for definition in self.added]
        return (*retire, *revise, *create)


def _what_it_does(definition: JobDefinition) -> str:
    data = json.loads(definition.to_text())
    return json.dumps([data["schedule"], data["timezone"], data["target"]], sort_keys=True)


def likely_renames(missing: Sequence[CurrentJob], added: Sequence[JobDefinition]) -> tuple[tuple[str, str], ...]:
    """Pairs of a missing job and an added one that do the same, old name first; of several, those whose names are most
    alike. In the order of the added ones."""
    if not missing or not added:
        return ()
    old_names: dict[str, list[str]] = {}
    for job in missing:
        old_names.setdefault(_what_it_does(job.definition), []).append(job.name)
    new_names: dict[str, list[str]] = {}
    for definition in added:
        new_names.setdefault(_what_it_does(definition), []).append(definition.name)
    old_of = {
        new: old for does, news in new_names.items() if does in old_names for old, new in _alike(old_names[does], news)
    }
    return tuple((old_of[one.name], one.name) for one in added if one.name in old_of)


def _alike(olds: Sequence[str], news: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each name with the one of the other side that is most like it, each once; by order where they are many."""
    if len(olds) * len(news) > _COMPARED_AT_MOST:
        yield from zip(sorted(olds), sorted(news), strict=False)
        return
    pairs = sorted((-_likeness(old, new), old, new) for old in olds for new in news)
    taken: set[tuple[str, bool]] = set()
    for _, old, new in pairs:
        if taken.isdisjoint({(old, True), (new, False)}):
            taken |= {(old, True), (new, False)}
            yield old, new


def _likeness(old: str, new: str) -> float:
    """0 to 2: by letters in their order, and by words in any."""
    words, other = set(re.split(r"[-_.]", old)), set(re.split(r"[-_.]", new))
    return SequenceMatcher(None, old, new, autojunk=False).ratio() + len(words & other) / len(words | other)


def plan_changes(
    loaded: LoadedJobs,
    current: Sequence[CurrentJob],
    *,
    prune: bool = False,
    prune_limit: int | None = None,
) -> ApplyPlan:
    """The plan. Raises InvalidJobFile for renames and limits of concurrency keys that the cluster contradicts, Refused
    for more pruning than allowed."""
    by_name = {job.name.lower(): job for job in current}
    added: list[JobDefinition] = []
    revised: list[Revised] = []
    unchanged: list[str] = []
    unchanged_at: dict[int, int] = {}
    kept: set[int] = set()
    problems: list[Problem] = []
    for job in loaded.jobs:
        before = by_name.get(job.name.lower())
        old_name = job.definition.renamed_from
        if before is None and old_name is not None:
            before = by_name.get(old_name.lower())
            if before is None:
                problems.append(
                    job.problem(
                        f"renamed_from: the cluster knows neither {old_name} nor {job.name}; remove the key",
                        at_rename=True,
                    )
                )
                continue
        if before is None:
            added.append(job.definition)
            continue
        kept.add(before.job_id)
        if is_unchanged(before, job.definition):
            unchanged.append(job.name)
            unchanged_at[before.job_id] = before.revision
        else:
            differences = differences_between(before.definition, job.definition)
            revised.append(Revised(before, job.definition, differences))
    missing = tuple(job for job in current if job.job_id not in kept)
    if not prune:
        problems += two_limits_beside(loaded.jobs, missing)
    if problems:
        raise InvalidJobFile(problems)
    if prune:
        check_prune(missing, len(current), prune_limit, renames=len(likely_renames(missing, added)))
    retired = missing if prune else ()
    return ApplyPlan(tuple(added), tuple(revised), tuple(unchanged), missing, retired, unchanged_at)


def is_unchanged(current: CurrentJob, new: JobDefinition) -> bool:
    """Whether a definition says nothing new of a job: a `hash_seed` that it has anyway is nothing new, and leaving it
    out changes none."""
    seed = current.hash_seed
    before = replace(current.definition, hash_seed=current.definition.hash_seed or seed, renamed_from=None)
    after = replace(new, hash_seed=new.hash_seed or seed, renamed_from=None)
    has_arguments = isinstance(after.target, PythonTarget | CeleryTarget)  # to Python, 1 and true are equal
    if not has_arguments and before == after:
        return True
    return before.to_text() == after.to_text()


def check_prune(missing: Sequence[CurrentJob], total: int, prune_limit: int | None, *, renames: int = 0) -> None:
    """Raise Refused where a prune would retire more than the larger of 1 and 10 % of all jobs, or than its limit;
    ``renames``: how many of them look renamed."""
    allowed = max(1, total // 10) if prune_limit is None else prune_limit
    if len(missing) <= allowed:
        return
    names = ", ".join(job.name for job in missing[:_NAMED_AT_MOST])
    more = ", ..." if len(missing) > _NAMED_AT_MOST else ""
    renamed = f"{renames} of them may be renamed (`sexton plan` without --prune tells which); " if renames else ""
    raise Refused(
        f"--prune would retire {len(missing)} of {total} jobs ({names}{more}), more than the {allowed} allowed",
        hint=f"{renamed}if this is meant, add --prune-limit {len(missing)}",
    )
