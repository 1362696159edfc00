"""Which ticks other inputs change, told before they are accepted (invariant 8)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sexton.inputs import Inputs, own_inputs
from sexton.inputs_change import TicksChange, changed_ticks
from sexton.zone_files import add_zone_data
from tests.support.zone_data import zone_data_with

SINCE, UNTIL = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
HERE = own_inputs()
BEFORE = Inputs("0000a", HERE.engine, HERE.holidays)


@pytest.fixture(autouse=True, scope="module")
def older_zone_data() -> None:
    """In which Berlin's clock never changed in summer."""
    add_zone_data("0000a", zone_data_with({"Europe/Berlin": "Africa/Algiers"}))


def change(part: dict[str, object], zone: str, before: Inputs = BEFORE, **keys: object) -> TicksChange | None:
    text = json.dumps({"parts": [part], "timezone": zone, **keys})
    return changed_ticks(text, before, HERE, SINCE, UNTIL, has_zone_data=True)


def test_ticks_at_a_wall_clock_time_move_with_the_clock() -> None:
    found = change({"cron": "30 2 * * *"}, "Europe/Berlin")
    assert found is not None
    # The night of the change itself: 02:30 does not exist there, and fires at 03:00, 01:00 in UTC.
    assert found.vanish[0] == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    assert found.appear[:2] == (datetime(2026, 3, 29, 1, 0, tzinfo=UTC), datetime(2026, 3, 30, 0, 30, tzinfo=UTC))


@pytest.mark.parametrize(
    ("part", "zone"),
    [
        ({"cron": "30 2 * * *"}, "Asia/Tokyo"),
        ({"cron": "30 2 * * *"}, "UTC"),
        ({"cron": "0 12 * 1 *"}, "Europe/Berlin"),
        ({"every_ms": 3_600_000}, "Europe/Berlin"),
    ],
    ids=["another zone", "UTC", "in winter", "elapsed time"],
)
def test_ticks_where_no_clock_differs_stay(part: dict[str, object], zone: str) -> None:
    assert change(part, zone) is None


def test_what_cannot_be_compared_is_taken_for_changed() -> None:
    nightly: dict[str, object] = {"cron": "30 2 * * *"}
    engine = change(nightly, "UTC", replace(BEFORE, engine=HERE.engine + 1))
    holidays = replace(BEFORE, holidays="0.1")
    assert engine is not None
    assert change(nightly, "UTC", holidays) is None
    assert change(nightly, "UTC", holidays, exclude={"holidays": ["DE"]}) is not None
    text = json.dumps({"parts": [nightly], "timezone": "Asia/Tokyo"})
    assert changed_ticks(text, BEFORE, HERE, SINCE, UNTIL, has_zone_data=False) is not None
    assert change({"cron": "*/5 * * * * 1"}, "Europe/Berlin", replace(BEFORE, zone_data=HERE.zone_data)) is None
