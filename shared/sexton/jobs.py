"""A job: its resolved definition, and the three readings of it that other parts need.

``JobDefinition`` holds every key of a job file with its default filled in. It is
stored as canonical JSON with each revision, together with two short texts cut
from it, so that a leader can hold a million jobs without a million definitions:

* ``schedule_text``: all that decides *when* (equal texts share one computation);
* ``firing_text``: all that decides *how a tick becomes a claim*.

Workers read ``RunRules`` from it (``sexton.recipes``). Nothing here reads files, clocks
or databases.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sexton.claims import OnLeaseLost, OnWorkerLost, Overlap
from sexton.cron_expression import CronExpression
from sexton.errors import YoungerFormat
from sexton.job_formats import FIRST_FORMAT, FORMAT, needed_format
from sexton.job_rules import (
    NO_ALERT_RULES,
    NO_LIMITS,
    QUEUE_LIMIT,
    AlertRules,
    ConcurrencyKey,
    DstRules,
    ExcludeRules,
    Limits,
    MissedRules,
    RetryRules,
    alert_from_json,
    alert_to_json,
    concurrency_from_json,
    concurrency_to_json,
    dst_from_json,
    dst_to_json,
    duration,
    exclude_from_json,
    exclude_to_json,
    limits_from_json,
    limits_to_json,
    milliseconds,
    missed_from_json,
    missed_to_json,
    retries_from_json,
    retries_to_json,
)
from sexton.targets import Target, target_from_json, target_to_json


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
    limits: Limits = NO_LIMITS
    ends_with_lease: bool = (
        False  # the run must not outlive its lease: on_lease_lost is kill, or another key implies it
    )


@dataclass(frozen=True, slots=True)
class JobDefinition:
    """Every key of a job, resolved. Equal definitions give equal ``to_text()``.

    ``schedule_parts`` are canonical: ``{"cron": text}``, ``{"every_ms": int,
    "anchor": iso}``, ``{"calendar": {unit: int}, "at": "HH:MM:SS", "start": date,
    "month_end": word}`` or ``{"at": [iso, ...]}``, instants in UTC.
    """

    name: str
    schedule_parts: tuple[dict[str, Any], ...]
    target: Target
    timezone: str = "UTC"
    start: datetime | None = None
    end: datetime | None = None
    exclude: ExcludeRules = field(default_factory=ExcludeRules)
    jitter: timedelta = timedelta(0)
    dst: DstRules = field(default_factory=DstRules)
    hash_seed: str | None = None
    enabled: bool = True
    env: dict[str, str] = field(default_factory=dict)
    cwd: str | None = None
    stdin: str | None = None
    success_codes: tuple[int, ...] = (0,)
    limits: Limits = NO_LIMITS
    queue: str = "default"
    priority: int = 0
    overlap: Overlap = Overlap.SKIP
    queue_limit: int = QUEUE_LIMIT
    concurrency_key: ConcurrencyKey | None = None
    max_runtime: timedelta = timedelta(hours=24)
    kill_after: timedelta = timedelta(seconds=10)
    retries: RetryRules = field(default_factory=RetryRules)
    on_worker_lost: OnWorkerLost = OnWorkerLost.RETRY
    on_lease_lost: OnLeaseLost = OnLeaseLost.CONTINUE
    missed: MissedRules = field(default_factory=MissedRules)
    description: str = ""
    owner: str = ""
    tags: tuple[str, ...] = ()
    alert: AlertRules = NO_ALERT_RULES
    renamed_from: str | None = None

    def to_text(self) -> str:
        """Canonical JSON of everything but ``renamed_from``: what a revision stores and compares."""
        return _canonical(
            {
                **self._younger_keys(),
                "name": self.name,
                "schedule": list(self.schedule_parts),
                "timezone": self.timezone,
                "start": _iso(self.start),
                "end": _iso(self.end),
                "exclude": exclude_to_json(self.exclude),
                "jitter_ms": milliseconds(self.jitter),
                "dst": dst_to_json(self.dst),
                "hash_seed": self.hash_seed,
                "enabled": self.enabled,
                "target": target_to_json(self.target),
                "env": self.env,
                "cwd": self.cwd,
                "stdin": self.stdin,
                "success_codes": list(self.success_codes),
                "queue": self.queue,
                "priority": self.priority,
                "overlap": self.overlap.name.lower(),
                "max_runtime_ms": milliseconds(self.max_runtime),
                "kill_after_ms": milliseconds(self.kill_after),
                "retries": retries_to_json(self.retries),
                "on_worker_lost": self.on_worker_lost.value,
                "missed": missed_to_json(self.missed),
                "description": self.description,
                "owner": self.owner,
                "tags": list(self.tags),
            }
        )

    def _younger_keys(self) -> dict[str, Any]:
        """Those that the first version did not know, where they say anything: so that old revisions compare equal."""
        younger: dict[str, Any] = {}
        if (needed := needed_format(self)[0]) > FIRST_FORMAT:
            younger["format"] = needed
        if self.limits != NO_LIMITS:
            younger["limits"] = limits_to_json(self.limits)
        if self.on_lease_lost is not OnLeaseLost.CONTINUE:
            younger["on_lease_lost"] = self.on_lease_lost.value
        if self.alert != NO_ALERT_RULES:
            younger["alert"] = alert_to_json(self.alert)  # the first key in the order of the alphabet: `read_alerts`
        return younger | self._group_keys()

    def _group_keys(self) -> dict[str, Any]:
        keys: dict[str, Any] = {}
        if self.queue_limit != QUEUE_LIMIT:
            keys["queue_limit"] = self.queue_limit
        if self.concurrency_key is not None:
            keys["concurrency_key"] = concurrency_to_json(self.concurrency_key)
        return keys

    @property
    def ends_with_lease(self) -> bool:
        """Whether a run must not outlive its lease: by `on_lease_lost: kill`, or for what else the job promises."""
        return (
            self.on_lease_lost is OnLeaseLost.KILL
            or self.on_worker_lost is OnWorkerLost.FAIL
            or self.overlap is Overlap.REPLACE
            or self.concurrency_key is not None
        )

    @classmethod
    def from_text(cls, text: str) -> JobDefinition:
        """The definition whose ``to_text()`` is ``text``; keys that its version did not know have their default.

        Raises ``YoungerFormat`` where a younger Sexton wrote it and meant more than this one knows.
        """
        data = json.loads(text)
        check_format(data)
        return cls(
            name=data["name"],
            schedule_parts=tuple(data["schedule"]),
            timezone=data["timezone"],
            start=_instant(data["start"]),
            end=_instant(data["end"]),
            exclude=exclude_from_json(data.get("exclude", {})),
            jitter=duration(data.get("jitter_ms", 0)),
            dst=dst_from_json(data.get("dst", {})),
            hash_seed=data["hash_seed"],
            enabled=data["enabled"],
            target=target_from_json(data["target"]),
            env=data["env"],
            cwd=data["cwd"],
            stdin=data["stdin"],
            success_codes=tuple(data["success_codes"]),
            limits=limits_from_json(data.get("limits", {})),
            queue=data["queue"],
            priority=data["priority"],
            overlap=Overlap[data["overlap"].upper()],
            queue_limit=data.get("queue_limit", QUEUE_LIMIT),
            concurrency_key=concurrency_from_json(data.get("concurrency_key")),
            max_runtime=duration(data["max_runtime_ms"]),
            kill_after=duration(data["kill_after_ms"]),
            retries=retries_from_json(data["retries"]),
            on_worker_lost=OnWorkerLost(data["on_worker_lost"]),
            on_lease_lost=OnLeaseLost(data.get("on_lease_lost", "continue")),
            missed=missed_from_json(data["missed"]),
            description=data["description"],
            owner=data["owner"],
            tags=tuple(data["tags"]),
            alert=alert_from_json(data.get("alert", {})),
        )

    def schedule_text(self, hash_seed: str) -> str:
        """Canonical JSON for ``schedules.schedule_from_spec``; the seed is in it only where it matters."""
        spec: dict[str, Any] = {
            "parts": list(self.schedule_parts),
            "timezone": self.timezone,
            "start": _iso(self.start),
            "end": _iso(self.end),
        }
        if self.dst != DstRules():
            spec["dst"] = dst_to_json(self.dst)
        if self.exclude != ExcludeRules():
            spec["exclude"] = exclude_to_json(self.exclude)
        if any("cron" in part and CronExpression.parse(part["cron"]).uses_hash for part in self.schedule_parts):
            spec["hash_seed"] = hash_seed
        return _canonical(spec)

    def firing_text(self, hash_seed: str) -> str:
        """Canonical JSON for ``firing_rules``; the seed is in it only where it matters."""
        rules: dict[str, Any] = {
            "queue": self.queue,
            "priority": self.priority,
            "overlap": self.overlap.name.lower(),
            "jitter_ms": milliseconds(self.jitter),
            "on_worker_lost": self.on_worker_lost.value,
            "missed": missed_to_json(self.missed),
            **self._group_keys(),
        }
        if self.jitter:
            rules["jitter_seed"] = hash_seed
        return _canonical(rules)

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
            limits=self.limits,
            ends_with_lease=self.ends_with_lease,
        )


def check_format(data: dict[str, Any]) -> None:
    """Raises ``YoungerFormat`` where a younger Sexton wrote this definition and meant more than this one knows."""
    if (needed := data.get("format", FIRST_FORMAT)) > FORMAT:
        raise YoungerFormat(
            f"job {data.get('name')!r} has the format {needed}, and this Sexton knows {FORMAT}",
            hint="install the younger Sexton here too",
        )


def _canonical(data: object) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _iso(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat().replace("+00:00", "Z")


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
