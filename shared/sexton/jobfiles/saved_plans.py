"""A plan as a file: written by one command, carried out by another, and by nothing else than what it was made for.

The file is JSON with a checksum over its content. It is refused where it is damaged, was changed by hand, comes from a
later version, or is none. Whether the cluster still is what the plan was made for is the edit's own question, asked in
its transaction (``conditions``). The checksum guards against accidents, not against people: who may write the file may
apply a plan of their own.

A plan holds whole definitions, the values of ``env`` among them: its file is its owner's alone (mode 0600).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from sexton.errors import InvalidInput, NotFound, Refused
from sexton.jobfiles.differences import differences_between
from sexton.jobfiles.file_writing import write_file
from sexton.jobfiles.plan import ApplyPlan, Revised
from sexton.jobs import JobDefinition
from sexton.store.protocol import CurrentJob, EditConditions

FORMAT = "sexton-plan"
VERSION = 1
_FIRST_BYTES = '{\n "format": "sexton-plan"'


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """A plan and what it was made for. ``inputs_id``: of the process that made it, whose ticks it showed."""

    plan: ApplyPlan
    cluster_id: str
    inputs_id: str
    made_at: datetime
    made_by: str
    files: tuple[str, ...] = ()
    prune_limit: int | None = None

    @property
    def conditions(self) -> EditConditions:
        """What the edit that carries the plan out asks of the cluster, beside what stands in its changes."""
        return EditConditions(self.plan.unchanged_at, self.cluster_id, self.inputs_id)

    @property
    def stands_on(self) -> EditConditions:
        """The same with the jobs that the plan changes: an edit of nothing with these tells whether the plan holds."""
        touched = [*(one.current for one in self.plan.revised), *self.plan.retired]
        jobs = {**self.plan.unchanged_at, **{job.job_id: job.revision for job in touched}}
        return EditConditions(jobs, self.cluster_id, self.inputs_id)


def save_plan(path: Path, saved: SavedPlan) -> None:
    """Write the plan to ``path``, readable by its owner only, whole or not at all.

    Raises Refused where something else than a saved plan stands there.
    """
    content = {
        "format": FORMAT,
        "version": VERSION,
        "cluster_id": saved.cluster_id,
        "inputs_id": saved.inputs_id,
        "made_at": saved.made_at.isoformat(),
        "made_by": saved.made_by,
        "files": list(saved.files),
        "prune_limit": saved.prune_limit,
        **_plan_to_json(saved.plan),
    }
    text = json.dumps({**content, "checksum": _checksum(content)}, indent=1, ensure_ascii=True)
    write_file(path, text + "\n", is_private=True, replaces=lambda start: start.startswith(_FIRST_BYTES), what="a plan")


def read_plan(path: Path) -> SavedPlan:
    """The plan that ``save_plan`` wrote.

    Raises NotFound where there is no file, Refused for one of a later version, InvalidInput for one that is damaged,
    was changed, or is no plan.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFound(f"{path} does not exist", hint="`sexton plan PATH --out FILE` writes a plan") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not a saved plan", hint="`sexton plan PATH --out FILE` writes one") from None
    content = _content(path, text)
    version = content.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise Refused(
            f"{path} is a plan of format {version}, and this Sexton reads format {VERSION}",
            hint="apply it with the Sexton that made it, or plan again",
        )
    checksum = content.pop("checksum", None)
    if checksum != _checksum(content):
        raise InvalidInput(
            f"{path} was changed after it was written: its checksum does not hold",
            hint="nothing was changed; change the job files instead, and plan again",
        )
    try:
        return SavedPlan(
            plan=_plan_from_json(content),
            cluster_id=content["cluster_id"],
            inputs_id=content["inputs_id"],
            made_at=datetime.fromisoformat(content["made_at"]),
            made_by=content["made_by"],
            files=tuple(content["files"]),
            prune_limit=content["prune_limit"],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"{path} is not a whole plan ({error!r})", hint="plan again") from None


def _content(path: Path, text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        if text.startswith(_FIRST_BYTES):
            raise InvalidInput(f"{path} is damaged or cut short", hint="nothing was changed; plan again") from None
        content = None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        hint = "`sexton plan PATH --out FILE` writes one; job files are applied by `sexton apply PATH`"
        raise InvalidInput(f"{path} is not a saved plan", hint=hint)
    return content


def _checksum(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _plan_to_json(plan: ApplyPlan) -> dict[str, Any]:
    return {
        "added": [_definition_to_json(definition) for definition in plan.added],
        "revised": [
            {"current": _job_to_json(one.current), "definition": _definition_to_json(one.definition)}
            for one in plan.revised
        ],
        "unchanged": list(plan.unchanged),
        "unchanged_at": [[job_id, revision] for job_id, revision in sorted(plan.unchanged_at.items())],
        "retired": [_job_to_json(job) for job in plan.retired],
        # Other people's jobs: shown by name, compared by what they do; what they are told is none of this file's.
        "kept": [_job_to_json(replace(job, definition=replace(job.definition, env={}))) for job in plan.kept],
    }


def _plan_from_json(content: Mapping[str, Any]) -> ApplyPlan:
    retired = tuple(_job_from_json(job) for job in content["retired"])
    revised = [(_job_from_json(one["current"]), _definition_from_json(one["definition"])) for one in content["revised"]]
    return ApplyPlan(
        added=tuple(_definition_from_json(one) for one in content["added"]),
        revised=tuple(Revised(job, new, differences_between(job.definition, new)) for job, new in revised),
        unchanged=tuple(content["unchanged"]),
        missing=(*retired, *(_job_from_json(job) for job in content["kept"])),
        retired=retired,
        unchanged_at={int(job_id): int(revision) for job_id, revision in content["unchanged_at"]},
    )


def _definition_to_json(definition: JobDefinition) -> dict[str, Any]:
    return {"definition": json.loads(definition.to_text()), "renamed_from": definition.renamed_from}


def _definition_from_json(data: Mapping[str, Any]) -> JobDefinition:
    definition = JobDefinition.from_text(json.dumps(data["definition"]))
    return replace(definition, renamed_from=data["renamed_from"])


def _job_to_json(job: CurrentJob) -> dict[str, Any]:
    return {
        "job_id": job.job_id,
        "name": job.name,
        "revision": job.revision,
        "hash_seed": job.hash_seed,
        "is_paused": job.is_paused,
        "is_quarantined": job.is_quarantined,
        **_definition_to_json(job.definition),
    }


def _job_from_json(data: Mapping[str, Any]) -> CurrentJob:
    return CurrentJob(
        job_id=int(data["job_id"]),
        name=data["name"],
        revision=int(data["revision"]),
        definition=_definition_from_json(data),
        hash_seed=data["hash_seed"],
        is_paused=bool(data["is_paused"]),
        is_quarantined=bool(data["is_quarantined"]),
    )
