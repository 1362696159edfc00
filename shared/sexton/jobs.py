"""A job: its resolved definition, and the three readings of it that other parts need.

``JobDefinition`` holds every key of a job file with its default filled in. It is
stored as canonical JSON with each revision, together with two short texts cut
from it, so that a leader can hold a million jobs without a million definitions:

* ``schedule_text``: all that decides *when* (equal texts share one computation);
* ``firing_text``: all that decides *how a tick becomes a claim*.

Workers read ``RunRules`` from the definition. Nothing here reads files, clocks
or databases.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sexton.claims import OnWorkerLost, Overlap
from sexton.cron_expression import CronExpression


class MissedPolicy(StrEnum):
    """What becomes of ticks found undecided beyond their grace."""

    SKIP = "skip"
    LATEST = "latest"
    ALL = "all"
    HOLD = "hold"


class CatchUpOrder(StrEnum):
    OLDEST = "oldest"
    NEWEST = "newest"


@dataclass(frozen=True, slots=True)
class MissedRules:
    """The ``missed`` mapping of a job file. ``None`` keeps its documented meaning."""

    policy: MissedPolicy = MissedPolicy.LATEST
    grace: timedelta = timedelta(seconds=60)
    start_within: timedelta | None = None
    within: timedelta | None = None
    max: int = 100
    order: CatchUpOrder = CatchUpOrder.OLDEST
    hold_for: timedelta = timedelta(days=7)

    @property
    def effective_start_within(self) -> timedelta:
        return self.grace if self.start_within is None else self.start_within


@dataclass(frozen=True, slots=True)
class RetryRules:
    """The ``retries`` mapping. ``on``: exit codes or exception names, ``None`` for every failure."""

    max: int = 0
    delay: timedelta = timedelta(seconds=10)
    factor: float = 2.0
    max_delay: timedelta = timedelta(minutes=10)
    jitter: bool = True
    on: tuple[int | str, ...] | None = None


@dataclass(frozen=True, slots=True)
class CommandTarget:
    """An argument vector, started without a shell."""

    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShellTarget:
    """A script for ``/bin/sh -c``."""

    script: str


@dataclass(frozen=True, slots=True)
class PythonTarget:
    """``module:function``, called with JSON values."""

    reference: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


Target = CommandTarget | ShellTarget | PythonTarget


@dataclass(frozen=True, slots=True)
class FiringRules:
    """What turns a tick into a claim; parsed from ``firing_text`` and shared by equal texts."""

    queue: str = "default"
    priority: int = 0
    overlap: Overlap = Overlap.SKIP
    jitter: timedelta = timedelta(0)
    on_worker_lost: OnWorkerLost = OnWorkerLost.RETRY
    missed: MissedRules = field(default_factory=MissedRules)


@dataclass(frozen=True, slots=True)
class RunRules:
    """What a worker needs to run a claim of this revision."""

    target: Target
    env: dict[str, str]
    cwd: str | None
    stdin: str | None
    success_codes: tuple[int, ...]
    max_runtime: timedelta
    kill_after: timedelta
    retries: RetryRules
    on_worker_lost: OnWorkerLost


@dataclass(frozen=True, slots=True)
class JobDefinition:
    """Every key of a job, resolved. Equal definitions give equal ``to_text()``.

    ``schedule_parts`` are canonical: ``{"cron": text}``, ``{"every_ms": int,
    "anchor": iso}`` or ``{"at": [iso, ...]}``, instants in UTC.
    """

    name: str
    schedule_parts: tuple[dict[str, Any], ...]
    target: Target
    timezone: str = "UTC"
    start: datetime | None = None
    end: datetime | None = None
    hash_seed: str | None = None
    enabled: bool = True
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    stdin: str | None = None
    success_codes: tuple[int, ...] = (0,)
    queue: str = "default"
    priority: int = 0
    overlap: Overlap = Overlap.SKIP
    max_runtime: timedelta = timedelta(hours=24)
    kill_after: timedelta = timedelta(seconds=10)
    retries: RetryRules = field(default_factory=RetryRules)
    on_worker_lost: OnWorkerLost = OnWorkerLost.RETRY
    missed: MissedRules = field(default_factory=MissedRules)
    description: str = ""
    owner: str = ""
    tags: tuple[str, ...] = ()
    renamed_from: str | None = None

    def to_text(self) -> str:
        """Canonical JSON of everything but ``renamed_from``: what a revision stores and compares."""
        return _canonical(
            {
                "name": self.name,
                "schedule": list(self.schedule_parts),
                "timezone": self.timezone,
                "start": _iso(self.start),
                "end": _iso(self.end),
                "hash_seed": self.hash_seed,
                "enabled": self.enabled,
                "target": _target_to_json(self.target),
                "env": self.env,
                "cwd": self.cwd,
                "stdin": self.stdin,
                "success_codes": list(self.success_codes),
                "queue": self.queue,
                "priority": self.priority,
                "overlap": self.overlap.name.lower(),
                "max_runtime_ms": _ms(self.max_runtime),
                "kill_after_ms": _ms(self.kill_after),
                "retries": _retries_to_json(self.retries),
                "on_worker_lost": self.on_worker_lost.value,
                "missed": _missed_to_json(self.missed),
                "description": self.description,
                "owner": self.owner,
                "tags": list(self.tags),
            }
        )

    @classmethod
    def from_text(cls, text: str) -> JobDefinition:
        """The definition whose ``to_text()`` is ``text``."""
        data = json.loads(text)
        return cls(
            name=data["name"],
            schedule_parts=tuple(data["schedule"]),
            timezone=data["timezone"],
            start=_instant(data["start"]),
            end=_instant(data["end"]),
            hash_seed=data["hash_seed"],
            enabled=data["enabled"],
            target=_target_from_json(data["target"]),
            env=data["env"],
            cwd=data["cwd"],
            stdin=data["stdin"],
            success_codes=tuple(data["success_codes"]),
            queue=data["queue"],
            priority=data["priority"],
            overlap=Overlap[data["overlap"].upper()],
            max_runtime=_duration(data["max_runtime_ms"]),
            kill_after=_duration(data["kill_after_ms"]),
            retries=_retries_from_json(data["retries"]),
            on_worker_lost=OnWorkerLost(data["on_worker_lost"]),
            missed=_missed_from_json(data["missed"]),
            description=data["description"],
            owner=data["owner"],
            tags=tuple(data["tags"]),
        )

    def schedule_text(self, hash_seed: str) -> str:
        """Canonical JSON for ``schedules.schedule_from_spec``; the seed is in it only where it matters."""
        spec: dict[str, Any] = {
            "parts": list(self.schedule_parts),
            "timezone": self.timezone,
            "start": _iso(self.start),
            "end": _iso(self.end),
        }
        if any("cron" in part and CronExpression.parse(part["cron"]).uses_hash for part in self.schedule_parts):
            spec["hash_seed"] = hash_seed
        return _canonical(spec)

    def firing_text(self) -> str:
        """Canonical JSON for ``firing_rules``."""
        return _canonical(
            {
                "queue": self.queue,
                "priority": self.priority,
                "overlap": self.overlap.name.lower(),
                "jitter_ms": 0,
                "on_worker_lost": self.on_worker_lost.value,
                "missed": _missed_to_json(self.missed),
            }
        )

    def run_rules(self) -> RunRules:
        return RunRules(
            target=self.target,
            env=self.env,
            cwd=self.cwd,
            stdin=self.stdin,
            success_codes=self.success_codes,
            max_runtime=self.max_runtime,
            kill_after=self.kill_after,
            retries=self.retries,
            on_worker_lost=self.on_worker_lost,
        )


def firing_rules(text: str) -> FiringRules:
    """The rules that ``JobDefinition.firing_text`` wrote."""
    data = json.loads(text)
    return FiringRules(
        queue=data["queue"],
        priority=data["priority"],
        overlap=Overlap[data["overlap"].upper()],
        jitter=_duration(data["jitter_ms"]),
        on_worker_lost=OnWorkerLost(data["on_worker_lost"]),
        missed=_missed_from_json(data["missed"]),
    )


def _canonical(data: object) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _ms(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)


def _optional_ms(duration: timedelta | None) -> int | None:
    return None if duration is None else _ms(duration)


def _duration(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


def _optional_duration(milliseconds: int | None) -> timedelta | None:
    return None if milliseconds is None else _duration(milliseconds)


def _iso(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat().replace("+00:00", "Z")


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _target_to_json(target: Target) -> dict[str, Any]:
    match target:
        case CommandTarget(argv):
            return {"command": list(argv)}
        case ShellTarget(script):
            return {"shell": script}
        case PythonTarget(reference, args, kwargs):
            return {"python": reference, "args": list(args), "kwargs": kwargs}


def _target_from_json(data: dict[str, Any]) -> Target:
    if "command" in data:
        return CommandTarget(tuple(data["command"]))
    if "shell" in data:
        return ShellTarget(data["shell"])
    return PythonTarget(data["python"], tuple(data["args"]), data["kwargs"])


def _retries_to_json(rules: RetryRules) -> dict[str, Any]:
    return {
        "max": rules.max,
        "delay_ms": _ms(rules.delay),
        "factor": rules.factor,
        "max_delay_ms": _ms(rules.max_delay),
        "jitter": rules.jitter,
        "on": None if rules.on is None else list(rules.on),
    }


def _retries_from_json(data: dict[str, Any]) -> RetryRules:
    return RetryRules(
        max=data["max"],
        delay=_duration(data["delay_ms"]),
        factor=data["factor"],
        max_delay=_duration(data["max_delay_ms"]),
        jitter=data["jitter"],
        on=None if data["on"] is None else tuple(data["on"]),
    )


def _missed_to_json(rules: MissedRules) -> dict[str, Any]:
    return {
        "policy": rules.policy.value,
        "grace_ms": _ms(rules.grace),
        "start_within_ms": _optional_ms(rules.start_within),
        "within_ms": _optional_ms(rules.within),
        "max": rules.max,
        "order": rules.order.value,
        "hold_for_ms": _ms(rules.hold_for),
    }


def _missed_from_json(data: dict[str, Any]) -> MissedRules:
    return MissedRules(
        policy=MissedPolicy(data["policy"]),
        grace=_duration(data["grace_ms"]),
        start_within=_optional_duration(data["start_within_ms"]),
        within=_optional_duration(data["within_ms"]),
        max=data["max"],
        order=CatchUpOrder(data["order"]),
        hold_for=_duration(data["hold_for_ms"]),
    )
