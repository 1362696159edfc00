"""A resolution as the parameters of both databases' statements, and what its event says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sexton.claims import OnWorkerLost, Overlap
from sexton.job_rules import FiringRules
from sexton.resolutions import Resolution, Resolved, SkipPart, SkipSplit

_MILLISECOND = timedelta(milliseconds=1)


class LedgerMoved(Exception):
    """The ledger is not any more what a resolution was made from: rolls the transaction back, and is no fault."""


def rules_values(firing: FiringRules) -> dict[str, Any]:
    """The columns of a claim that its job's rules fill. It waits for its slot, whatever the job says of overlap."""
    return {
        "queue": firing.queue,
        "priority": firing.priority,
        "overlap": int(Overlap.ALLOW if firing.overlap is Overlap.ALLOW else Overlap.QUEUE),
        "once": firing.on_worker_lost is OnWorkerLost.FAIL,
    }


def available_at(resolution: Resolution, starts: Sequence[datetime]) -> dict[datetime, datetime]:
    """When each tick that runs may start: as the budget says, and not before its jitter has passed."""
    jitter = {claim.scheduled_at: claim.jitter for claim in resolution.claims}
    return {
        tick: max(start, tick + jitter.get(tick, timedelta(0)))
        for tick, start in zip(resolution.order, starts, strict=True)
    }


def jitter_ms(jitter: timedelta) -> int:
    return jitter // _MILLISECOND


def part_values(job_id: int, split: SkipSplit, part: SkipPart) -> dict[str, Any]:
    """A part of a skip record, with the record as it must still be."""
    found = split.found
    return {
        "job": job_id,
        "after": found.after,
        "upto": found.upto,
        "count": found.count,
        "part_after": part.after,
        "part_upto": part.upto,
        "part_count": part.count,
        "is_resolved": part.is_resolved,
        "reason": part.reason,
        "detail": part.detail,
    }


def new_parts(resolution: Resolution) -> list[dict[str, Any]]:
    """The parts that get rows of their own; the first keeps the record's."""
    job_id = resolution.job_id
    return [part_values(job_id, split, part) for split in resolution.splits for part in split.parts[1:]]


def first_parts(resolution: Resolution) -> list[dict[str, Any]]:
    return [part_values(resolution.job_id, split, split.parts[0]) for split in resolution.splits]


def resolved(resolution: Resolution, starts: Sequence[datetime], *, is_paused: bool) -> Resolved:
    """What is answered once it is written."""
    first, last = (starts[0], starts[-1]) if starts else (None, None)
    return Resolved(resolution.job_id, resolution.name, len(resolution.order), first, last, is_paused)


def said_of(actor: str, note: str) -> str:
    """The reason in the claims of a backfill."""
    return f"backfilled by {actor}" + (f": {note}" if note else "")


def backfill_detail(resolution: Resolution, note: str) -> Mapping[str, object]:
    """What the event of a backfill says."""
    detail: dict[str, object] = {"job": resolution.name, "ticks": len(resolution.order), "note": note}
    if resolution.order:
        detail |= {
            "first": _instant(min(resolution.order)),
            "last": _instant(max(resolution.order)),
            "reopened": len(resolution.opened),
        }
    return detail


def _instant(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
