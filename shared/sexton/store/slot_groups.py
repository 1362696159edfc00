"""Which slot groups an edit asks for, and whether the limits of a key agree; for both databases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sexton.errors import Refused
from sexton.job_rules import ConcurrencyKey
from sexton.store.edit_plan import PlannedEdit

COUNTED_BY_A_STEP = 1000
"""A step that parks counts what waits as far as this; a `queue_limit` above it is kept by sweeps."""


def wanted_keys(edits: Sequence[PlannedEdit]) -> dict[int, ConcurrencyKey | None]:
    """The concurrency key of every job to which the edit gives a new revision, by id and in the order of ids."""
    revised = sorted((edit for edit in edits if edit.new_revision is not None), key=lambda edit: edit.job_id)
    return {edit.job_id: edit.new_revision.concurrency for edit in revised if edit.new_revision is not None}


def limits_of(
    wanted: Mapping[int, ConcurrencyKey | None],
    edits: Sequence[PlannedEdit],
    others: Mapping[str, tuple[int, str]],
) -> dict[str, int]:
    """The limit of each key. ``others``: per key the limit and the name of a job that the edit leaves as it is.

    Raises ``Refused`` where a key has two limits.
    """
    names = {edit.job_id: edit.name for edit in edits}
    said = {key: (limit, name) for key, (limit, name) in others.items()}
    for job_id, key in wanted.items():
        if key is None:
            continue
        limit, name = said.setdefault(key.key, (key.limit, names[job_id]))
        if limit != key.limit:
            raise two_limits(key.key, (limit, name), (key.limit, names[job_id]))
    return {key: limit for key, (limit, _) in said.items()}


def two_limits(key: str, one: tuple[int, str], other: tuple[int, str]) -> Refused:
    """The refusal of a key whose limit two jobs give differently, each as limit and name."""
    limits = f"{one[0]} in job {one[1]!r}, {other[0]} in job {other[1]!r}"
    return Refused(
        f"the concurrency_key {key!r} would have two limits: {limits}",
        hint="nothing was changed; give all jobs of a key one limit, and apply them together",
    )
