"""From the keys of one job (and its file's defaults) to a resolved definition, or to what is wrong between keys."""

from __future__ import annotations

import json
from collections.abc import Mapping as Values
from functools import lru_cache
from typing import Any

from sexton.errors import InvalidSchedule
from sexton.job_rules import AlertRules, ConcurrencyKey, DstRules, ExcludeRules, Limits, MissedRules, RetryRules
from sexton.jobfiles.between_keys import (
    JobNode,
    check_promises,
    check_request,
    check_targets,
    check_unfilled,
    without_idle_defaults,
)
from sexton.jobfiles.keys import JOB_KEYS, MAPPINGS, TARGETS, keys_meant, place_of, read_keys
from sexton.jobfiles.nodes import Mapping, Node, Scalar
from sexton.jobfiles.problems import FileProblems, shown
from sexton.jobfiles.readings import BAD
from sexton.jobfiles.remedies import toml_key
from sexton.jobs import JobDefinition
from sexton.schedule_specs import firing_schedule_from_spec
from sexton.targets import CeleryTarget, CommandTarget, HttpTarget, PythonTarget, ShellTarget, Target

_ALL_NAMES = frozenset(key.name for key in JOB_KEYS)
_MARKS_OF_A_JOB = frozenset(("schedule", *TARGETS))
_PLAIN_FIELDS = (
    "timezone",
    "start",
    "end",
    "jitter",
    "hash_seed",
    "enabled",
    "cwd",
    "stdin",
    "success_codes",
    "queue",
    "priority",
    "overlap",
    "queue_limit",
    "max_runtime",
    "kill_after",
    "on_worker_lost",
    "on_lease_lost",
    "description",
    "owner",
    "tags",
    "renamed_from",
)


def read_definition(job: JobNode, defaults: Values[str, Any], problems: FileProblems) -> JobDefinition | None:
    """The job's definition with ``defaults`` merged and all resolved; None where a fault was reported."""
    before = len(problems.found)
    node = _without_jobs_within(job, problems)
    if not node.entries and job.node.entries:
        return None
    own = read_keys(node, JOB_KEYS, "a job", problems)
    meant = {key for name in own if name not in _ALL_NAMES for key in keys_meant(name, JOB_KEYS)}
    if "schedule" not in own and "schedule" not in meant:
        problems.add(job.node, f"the job {job.name} has no schedule; write e.g. schedule: '0 2 * * *'")
    if not meant.intersection(TARGETS):
        check_targets(job, own, problems)
    if isinstance(own.get("http"), dict):
        check_request(job, own["http"], problems)
    check_unfilled(job, problems)
    if own.get("renamed_from") == job.name:
        problems.add(place_of(job.node, "renamed_from"), f"renamed_from: {job.name} is this job's own name; remove it")
    if len(problems.found) > before:
        return None
    values = without_idle_defaults(merged(defaults, own), own)
    if BAD in values.values():
        return None  # a default was refused; it has been reported where it stands
    definition = _definition(job.name, values)
    _check_schedule(job, definition, problems)
    check_promises(job, own, definition, problems)
    return definition if len(problems.found) == before else None


def _without_jobs_within(job: JobNode, problems: FileProblems) -> Mapping:
    """The job's keys without those that are jobs themselves, which are reported: ``[jobs.a.b]``."""
    kept: dict[str, tuple[Scalar, Node]] = {}
    for name, (key_node, value) in job.node.entries.items():
        within = [] if name in _ALL_NAMES else _path_to_job(value)
        if within is None or name in _ALL_NAMES:
            kept[name] = (key_node, value)
            continue
        path = ".".join([job.name, name, *within])
        if problems.format == "toml":
            advice = f"if the job is called {path}, write [jobs.{toml_key(path)}]"
        else:
            advice = f"jobs stand side by side below 'jobs': move it out of {shown(job.name)}"
        problems.add(
            key_node, f"{shown(name)} holds keys of a job and stands within the job {shown(job.name)}; {advice}"
        )
    return Mapping(job.node.line, job.node.column, kept) if len(kept) < len(job.node.entries) else job.node


def _path_to_job(node: Node) -> list[str] | None:
    """The names that lead to a mapping with a schedule or a target; None where there is none."""
    path: list[str] = []
    while isinstance(node, Mapping) and node.entries:
        if not _MARKS_OF_A_JOB.isdisjoint(node.entries):
            return path
        name, (_, node) = next(iter(node.entries.items()))
        path.append(name)
    return None


def merged(defaults: Values[str, Any], own: Values[str, Any]) -> dict[str, Any]:
    """``own`` over ``defaults``: a value that is there wins, and mappings merge by key."""
    merged = {**defaults, **own}
    for name in MAPPINGS:
        if isinstance(defaults.get(name), dict) and isinstance(own.get(name), dict):
            merged[name] = {**defaults[name], **own[name]}
    return merged


def _definition(name: str, values: Values[str, Any]) -> JobDefinition:
    plain = {field: values[field] for field in _PLAIN_FIELDS if field in values}
    return JobDefinition(
        name=name,
        schedule_parts=values["schedule"],
        target=_target(values),
        env=values.get("env", {}),
        exclude=_exclude_rules(values.get("exclude", {})),
        dst=DstRules(**values.get("dst", {})),
        retries=RetryRules(**values.get("retries", {})),
        missed=MissedRules(**values.get("missed", {})),
        limits=Limits(**values.get("limits", {})),
        alert=AlertRules(**values.get("alert", {})),
        concurrency_key=_concurrency_key(values.get("concurrency_key")),
        **plain,
    )


def _exclude_rules(values: Values[str, Any]) -> ExcludeRules:
    """In order and without repetition, so that equal rules have equal texts."""
    return ExcludeRules(**{key: tuple(sorted(set(value))) for key, value in values.items()})


def _concurrency_key(values: Values[str, Any] | None) -> ConcurrencyKey | None:
    return None if values is None else ConcurrencyKey(**values)


def _target(values: Values[str, Any]) -> Target:
    if "command" in values:
        return CommandTarget(values["command"])
    if "shell" in values:
        return ShellTarget(values["shell"])
    if "http" in values:
        return HttpTarget(**values["http"])
    if "celery" in values:
        return CeleryTarget(**values["celery"], args=tuple(values.get("args", ())), kwargs=values.get("kwargs", {}))
    return PythonTarget(values["python"], tuple(values.get("args", ())), values.get("kwargs", {}))


def _check_schedule(job: JobNode, definition: JobDefinition, problems: FileProblems) -> None:
    spec = definition.schedule_text(definition.hash_seed or definition.name)
    if why := _why_never(spec):
        keys = _keys_at_fault(why)
        if keys[0] == "dst" and "dst" not in job.node.entries:
            why += "; the job has its dst from defaults: write dst: {gap: shift, overlap: first} here"
        problems.add(place_of(job.node, *keys), why)


def _keys_at_fault(why: str) -> tuple[str, ...]:
    return (*(key for key in ("exclude", "dst", "end", "start") if key in why), "schedule")


@lru_cache(maxsize=8192)
def _why_never(spec: str) -> str | None:
    """Why a schedule is refused, or has no tick at all."""
    try:
        firing_schedule_from_spec(json.loads(spec))
    except InvalidSchedule as error:
        return str(error)
    return None
