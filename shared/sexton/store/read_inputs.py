"""The inputs of the cluster and of its jobs' present revisions; one read transaction, on both databases."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, select

from sexton.errors import MovedOn
from sexton.inputs import Inputs
from sexton.store.protocol.edits import ChangeKind, CurrentJob, EditConditions, JobChange
from sexton.store.protocol.restores import InputsJob, InputsStand
from sexton.store.tables import cluster, inputs, jobs, revisions, zone_data


def read_inputs(connection: Connection, now: datetime) -> InputsStand:
    """``RestoreStore.inputs``."""
    inputs_id = connection.execute(select(cluster.c.inputs_id)).scalar() or ""
    row = connection.execute(select(inputs).where(inputs.c.inputs_id == inputs_id)).one_or_none()
    found = connection.execute(
        select(jobs.c.job_id, jobs.c.name, revisions.c.revision, revisions.c.schedule, revisions.c.in_force_since)
        .join(revisions, (revisions.c.job_id == jobs.c.job_id) & (revisions.c.revision == jobs.c.revision))
        .where(jobs.c.retired_at.is_(None))
        .order_by(jobs.c.name_key)
    )
    return InputsStand(
        now=now,
        inputs_id=inputs_id,
        accepted_at=None if row is None else row.accepted_at,
        accepted_by=None if row is None else row.accepted_by,
        jobs=tuple(InputsJob(*one) for one in found),
    )


def read_zone_data(connection: Connection, version: str) -> bytes | None:
    """``RestoreStore.zone_data``."""
    return connection.execute(select(zone_data.c.files).where(zone_data.c.version == version)).scalar()


def revised_alike(
    current: Collection[CurrentJob], stand: InputsStand, accepted: Inputs, changed: Collection[int]
) -> tuple[list[JobChange], EditConditions]:
    """The edit that an acceptance is: the changed jobs anew as they are, conditional on all being as they were seen.

    Raises ``MovedOn`` where one is not.
    """
    seen = {job.job_id: job.revision for job in stand.jobs}
    moved = sorted(job.name for job in current if seen.get(job.job_id) != job.revision)
    if moved or len(current) != len(seen):
        raise moved_on(moved[0] if moved else "a job")
    why = f"inputs {stand.inputs_id} to {accepted.inputs_id}"
    changes = [
        JobChange(ChangeKind.REVISE, job.job_id, job.definition, job.revision, why)
        for job in current
        if job.job_id in changed
    ]
    unchanged = {job_id: revision for job_id, revision in seen.items() if job_id not in changed}
    return changes, EditConditions(unchanged, inputs_id=stand.inputs_id)


def moved_on(what: str) -> MovedOn:
    """The refusal where the cluster is not as it was seen."""
    return MovedOn(f"{what} was changed meanwhile", hint="nothing was changed; look at the differences again")
