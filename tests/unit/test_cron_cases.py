"""The verified cases: ticks that an expression has, and texts that are refused."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sexton.cron_expression import CronExpression
from sexton.errors import InvalidSchedule
from sexton.wall_clock_schedules import CronSchedule
from sexton.zones import load_zone

CASES = Path(__file__).parent.parent / "cases"
SCHEDULES = json.loads((CASES / "schedules.json").read_text(encoding="utf-8"))
REFUSED = json.loads((CASES / "refused_schedules.json").read_text(encoding="utf-8"))
_MICROSECOND = timedelta(microseconds=1)


def by_id(case: dict[str, Any]) -> str:
    return str(case["id"])


@pytest.mark.parametrize("case", SCHEDULES, ids=by_id)
def test_ticks_of_the_verified_case_forward_backward_listed_and_counted(case: dict[str, Any]) -> None:
    schedule = CronSchedule(CronExpression.parse(case["expr"]), case["tz"])
    expected = [datetime.fromisoformat(text) for text in case["expected_next_utc"]]
    start, end = datetime.fromisoformat(case["start_utc"]), expected[-1]

    forward, tick = [], start
    for _ in expected:
        following = schedule.next_after(tick)
        assert following is not None
        forward.append(tick := following)
    backward, tick = [], end + _MICROSECOND
    for _ in expected:
        preceding = schedule.previous_before(tick)
        assert preceding is not None
        backward.append(tick := preceding)

    assert forward == expected
    assert backward[::-1] == expected
    assert list(schedule.between(start, end)) == expected
    assert schedule.newest_between(start, end, len(expected) + 1) == expected
    assert schedule.count_between(start, end) == len(expected)
    assert schedule.cron.follows_elapsed_time == (case["job_class"] == "wildcard")


@pytest.mark.parametrize("case", [case for case in REFUSED if case["kind"] == "expr"], ids=by_id)
def test_the_expression_is_refused_with_what_is_wrong_and_what_to_write(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidSchedule) as refusal:
        CronExpression.parse(case["input"])
    assert 20 < len(str(refusal.value)) < 400, "one sentence, whatever was given"
    assert str(refusal.value).isprintable()


@pytest.mark.parametrize("case", [case for case in REFUSED if case["kind"] == "timezone"], ids=by_id)
def test_the_zone_is_refused_and_never_falls_back(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidSchedule, match=r"^timezone "):
        load_zone(case["input"])
