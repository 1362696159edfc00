"""The rules of a job, one value per mapping of its file, and the JSON in which revisions keep them.

``from_json`` of a later version reads what an earlier one wrote: keys that it did not know have their default.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import StrEnum
from hashlib import blake2b
from typing import Any

from sexton.claims import OnWorkerLost, Overlap
from sexton.wall_clock_ticks import GapRule, OverlapRule

_NO_TIME, _MILLISECOND = timedelta(0), timedelta(milliseconds=1)


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
class Limits:
    """The ``limits`` mapping: what each process of a run may use, ``None`` for no limit of the job's own.

    ``memory`` in bytes of address space, ``cpu_time`` of processor time, in whole seconds, rounded up."""

    memory: int | None = None
    cpu_time: timedelta | None = None
    open_files: int | None = None


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class AlertRules:
    """The ``alert`` mapping: when somebody is told. ``late`` None: as late as the tick's start allows; ``failures``
    None: never."""

    late: timedelta | None = None
    failures: int | None = None


NO_ALERT_RULES = AlertRules()


@dataclass(frozen=True, slots=True)
class ConcurrencyKey:
    """The ``concurrency_key`` mapping: a group of ``limit`` slots, shared by all jobs that name ``key``."""

    key: str
    limit: int = 1


QUEUE_LIMIT = 100
"""How many claims may be parked on one slot under ``overlap: queue``, unless the job says otherwise."""


@dataclass(frozen=True, slots=True)
class DstRules:
    """The ``dst`` mapping: what a changed clock does to fixed times."""

    gap: GapRule = GapRule.SHIFT
    overlap: OverlapRule = OverlapRule.FIRST


@dataclass(frozen=True, slots=True)
class ExcludeRules:
    """The ``exclude`` mapping. ``weekdays`` count from 0 = Sunday; all three are in order and without repetition."""

    dates: tuple[date, ...] = ()
    weekdays: tuple[int, ...] = ()
    holidays: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FiringRules:
    """What turns a tick into a claim; parsed from ``firing_text`` and shared by equal texts. ``jitter_seed`` is empty
    where there is no jitter."""

    queue: str = "default"
    priority: int = 0
    overlap: Overlap = Overlap.SKIP
    jitter: timedelta = timedelta(0)
    on_worker_lost: OnWorkerLost = OnWorkerLost.RETRY
    missed: MissedRules = field(default_factory=MissedRules)
    jitter_seed: str = ""
    queue_limit: int = QUEUE_LIMIT
    concurrency: ConcurrencyKey | None = None

    def jitter_of(self, tick: datetime) -> timedelta:
        """The delay of this tick: whole milliseconds in ``[0, jitter]``, the same on every node (invariant 8)."""
        if not self.jitter:
            return _NO_TIME
        digest = blake2b(f"{self.jitter_seed}\0{tick.isoformat()}".encode(), digest_size=8).digest()
        return timedelta(milliseconds=int.from_bytes(digest, "big") % (self.jitter // _MILLISECOND + 1))


def firing_rules(text: str) -> FiringRules:
    """The rules that ``JobDefinition.firing_text`` wrote."""
    data = json.loads(text)
    return FiringRules(
        queue=data["queue"],
        priority=data["priority"],
        overlap=Overlap[data["overlap"].upper()],
        jitter=duration(data["jitter_ms"]),
        on_worker_lost=OnWorkerLost(data["on_worker_lost"]),
        missed=missed_from_json(data["missed"]),
        jitter_seed=data.get("jitter_seed", ""),
        queue_limit=data.get("queue_limit", QUEUE_LIMIT),
        concurrency=concurrency_from_json(data.get("concurrency_key")),
    )


def milliseconds(length: timedelta) -> int:
    return length // timedelta(milliseconds=1)


def _optional_ms(length: timedelta | None) -> int | None:
    return None if length is None else milliseconds(length)


def duration(number: int) -> timedelta:
    return timedelta(milliseconds=number)


def _optional_duration(number: int | None) -> timedelta | None:
    return None if number is None else duration(number)


def exclude_to_json(rules: ExcludeRules) -> dict[str, Any]:
    return {
        "dates": [day.isoformat() for day in rules.dates],
        "weekdays": list(rules.weekdays),
        "holidays": list(rules.holidays),
    }


def exclude_from_json(data: dict[str, Any]) -> ExcludeRules:
    return ExcludeRules(
        tuple(date.fromisoformat(day) for day in data.get("dates", ())),
        tuple(data.get("weekdays", ())),
        tuple(data.get("holidays", ())),
    )


def dst_to_json(rules: DstRules) -> dict[str, Any]:
    return {"gap": rules.gap.value, "overlap": rules.overlap.value}


def dst_from_json(data: dict[str, Any]) -> DstRules:
    return DstRules(GapRule(data.get("gap", "shift")), OverlapRule(data.get("overlap", "first")))


def retries_to_json(rules: RetryRules) -> dict[str, Any]:
    return {
        "max": rules.max,
        "delay_ms": milliseconds(rules.delay),
        "factor": rules.factor,
        "max_delay_ms": milliseconds(rules.max_delay),
        "jitter": rules.jitter,
        "on": None if rules.on is None else list(rules.on),
    }


def retries_from_json(data: dict[str, Any]) -> RetryRules:
    return RetryRules(
        max=data["max"],
        delay=duration(data["delay_ms"]),
        factor=data["factor"],
        max_delay=duration(data["max_delay_ms"]),
        jitter=data["jitter"],
        on=None if data["on"] is None else tuple(data["on"]),
    )


def limits_to_json(limits: Limits) -> dict[str, Any]:
    return {
        "memory": limits.memory,
        "cpu_time_ms": _optional_ms(limits.cpu_time),
        "open_files": limits.open_files,
    }


def limits_from_json(data: dict[str, Any]) -> Limits:
    return Limits(
        memory=data.get("memory"),
        cpu_time=_optional_duration(data.get("cpu_time_ms")),
        open_files=data.get("open_files"),
    )


def alert_to_json(rules: AlertRules) -> dict[str, Any]:
    return {"late_ms": _optional_ms(rules.late), "failures": rules.failures}


def alert_from_json(data: dict[str, Any]) -> AlertRules:
    return AlertRules(late=_optional_duration(data.get("late_ms")), failures=data.get("failures"))


def concurrency_to_json(concurrency: ConcurrencyKey) -> dict[str, Any]:
    return {"key": concurrency.key, "limit": concurrency.limit}


def concurrency_from_json(data: dict[str, Any] | None) -> ConcurrencyKey | None:
    return None if data is None else ConcurrencyKey(data["key"], data["limit"])


def missed_to_json(rules: MissedRules) -> dict[str, Any]:
    return {
        "policy": rules.policy.value,
        "grace_ms": milliseconds(rules.grace),
        "start_within_ms": _optional_ms(rules.start_within),
        "within_ms": _optional_ms(rules.within),
        "max": rules.max,
        "order": rules.order.value,
        "hold_for_ms": milliseconds(rules.hold_for),
    }


def missed_from_json(data: dict[str, Any]) -> MissedRules:
    return MissedRules(
        policy=MissedPolicy(data["policy"]),
        grace=duration(data["grace_ms"]),
        start_within=_optional_duration(data["start_within_ms"]),
        within=_optional_duration(data["within_ms"]),
        max=data["max"],
        order=CatchUpOrder(data["order"]),
        hold_for=duration(data["hold_for_ms"]),
    )
