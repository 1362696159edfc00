"""Which ticks another version of the inputs changes: what an operator sees before accepting it. Pure.

Ticks are compared where the two versions' clocks of the job's zone differ, and nowhere else: where they agree, the
ticks do. What cannot be compared here (another tick engine, other public holidays, zone data that the ledger does not
hold) is taken for changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Any

from sexton.errors import InvalidSchedule
from sexton.inputs import Inputs
from sexton.schedule_specs import schedule_from_spec
from sexton.zone_clock import clock_of
from sexton.zone_files import zone_of

LOOK_AHEAD = timedelta(days=366)
_AROUND = timedelta(days=2)  # a reading that a change moves does not move further than this
_COMPARED = 20_000  # ticks of a job; who has more in the stretches that differ is taken for changed
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class TicksChange:
    """Why a job's ticks are taken for changed; where they were compared, some of those that vanish and appear."""

    why: str
    vanish: tuple[datetime, ...] = ()
    appear: tuple[datetime, ...] = ()


def changed_ticks(
    schedule_text: str, before: Inputs, here: Inputs, since: datetime, until: datetime, *, has_zone_data: bool
) -> TicksChange | None:
    """What the inputs ``here`` change about a revision's ticks in ``(since, until]``; None: nothing.

    ``has_zone_data``: that of ``before`` is known here (``zone_files.add_zone_data``).
    """
    spec: dict[str, Any] = json.loads(schedule_text)
    if before.engine != here.engine:
        return TicksChange(f"tick engine {before.engine} to {here.engine}")
    if before.holidays != here.holidays and (spec.get("exclude") or {}).get("holidays"):
        return TicksChange(f"it excludes public holidays, whose data goes from {before.holidays} to {here.holidays}")
    zone = str(spec.get("timezone") or "UTC")
    if before.zone_data == here.zone_data or zone == "UTC":
        return None
    if not has_zone_data:
        return TicksChange(f"the ledger does not hold the zone data {before.zone_data}: its ticks cannot be compared")
    old_zone = zone_of(zone, before.zone_data)
    try:
        spans = list(_differing(old_zone, zone, since, until))
        if not spans:
            return None
        old, new = schedule_from_spec({**spec, "timezone": old_zone}), schedule_from_spec(spec)
    except InvalidSchedule as error:
        return TicksChange(str(error))
    room, vanish, appear = _COMPARED, list[datetime](), list[datetime]()
    for begin, end in spans:
        stretch = (max(since, begin - _AROUND), min(until, end + _AROUND))
        were, will = set(islice(old.between(*stretch), room)), set(islice(new.between(*stretch), room))
        vanish += sorted(were - will)
        appear += sorted(will - were)
        room -= max(len(were), len(will))
        if vanish or appear:
            break
        if room <= 0:
            return TicksChange(f"more than {_COMPARED:,} of its ticks lie where the clocks of {zone} differ")
    if not vanish and not appear:
        return None
    return TicksChange(f"the clocks of {zone} differ", tuple(vanish[:_SHOWN]), tuple(appear[:_SHOWN]))


def _differing(old_zone: str, zone: str, since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    """The stretches in which the two clocks show something else."""
    old, new = clock_of(old_zone), clock_of(zone)
    after, upto = int(since.timestamp()), int(until.timestamp())
    changes = {instant for clock in (old, new) for instant, _ in clock.changes_between(after, upto)}
    cuts = [after, *sorted(changes), upto]
    for begin, end in pairwise(cuts):
        if begin < end and old.offset_at(begin) != new.offset_at(begin):
            yield datetime.fromtimestamp(begin, UTC), datetime.fromtimestamp(end, UTC)


def inputs_of(inputs_id: str) -> Inputs:
    """The inputs that an id names; before there were holidays among them, their version is empty."""
    zone_data, engine, *holidays = inputs_id.split("/")
    return Inputs(zone_data, int(engine), holidays[0] if holidays else "")
