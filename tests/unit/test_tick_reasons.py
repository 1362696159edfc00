"""Why a schedule has a tick, or has none: the sentence names the reading, the clock's change, and what keeps it out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from sexton.local_readings import find_reading
from sexton.tick_marks import clock_changes
from sexton.tick_reasons import ReasonKind, change_words, reason_at

BERLIN = "Europe/Berlin"


def spec(*parts: dict[str, Any] | str, **keys: Any) -> dict[str, Any]:
    listed = [{"cron": part} if isinstance(part, str) else part for part in parts]
    return {"parts": listed, "timezone": BERLIN, "start": None, "end": None, "hash_seed": "bells", **keys}


def dst(gap: str = "shift", overlap: str = "first") -> dict[str, Any]:
    return {"dst": {"gap": gap, "overlap": overlap}}


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


EVERY = {"every_ms": 900_000, "anchor": "1970-01-01T00:00:00Z"}
CASES: list[tuple[dict[str, Any], str, ReasonKind, str]] = [
    (spec("30 2 * * *"), "2026-06-01T00:30:00Z", ReasonKind.NAMED, "`30 2 * * *` names 02:30 in Europe/Berlin"),
    (
        spec("30 2 * * *"),
        "2026-03-29T01:00:00Z",
        ReasonKind.SHIFTED,
        "02:30 does not exist on 2026-03-29 in Europe/Berlin (the clock goes from 02:00 to 03:00), "
        "so it fires at the first instant after, 03:00 CEST",
    ),
    (
        spec("0,15,30 2 * * *"),
        "2026-03-29T01:00:00Z",
        ReasonKind.MERGED,
        "02:00 to 02:30 (3 times) do not exist on 2026-03-29",
    ),
    (spec("0 2,3 * * *"), "2026-03-29T01:00:00Z", ReasonKind.MERGED, "they fire once together with 03:00 itself"),
    (
        spec("30 2 * * *", **dst(gap="skip")),
        "2026-03-29T01:00:00Z",
        ReasonKind.GAP_SKIPPED,
        "the job leaves it out (dst gap: skip)",
    ),
    (spec("30 2 * * *"), "2026-10-25T00:30:00Z", ReasonKind.SHOWN_TWICE, "this is the first: `30 2 * * *` fires"),
    (
        spec("30 2 * * *"),
        "2026-10-25T01:30:00Z",
        ReasonKind.OTHER_SHOWING,
        "this is the second: `30 2 * * *` fires the first time (dst overlap: first)",
    ),
    (
        spec("30 2 * * *", **dst(overlap="second")),
        "2026-10-25T00:30:00Z",
        ReasonKind.OTHER_SHOWING,
        "fires the second time",
    ),
    (spec("30 2 * * *", **dst(overlap="both")), "2026-10-25T01:30:00Z", ReasonKind.SHOWN_TWICE, "fires both times"),
    (spec("*/30 * * * *"), "2026-10-25T01:30:00Z", ReasonKind.SHOWN_TWICE, "follows elapsed time"),
    (spec("30 2 * * MON"), "2026-06-02T01:31:05Z", ReasonKind.NOT_NAMED, "not that day, that hour, that minute, that"),
    (spec(EVERY), "2026-06-02T01:15:00Z", ReasonKind.NAMED, "a whole number of intervals from 1970-01-01T00:00:00Z"),
    (spec(EVERY), "2026-06-02T01:16:00Z", ReasonKind.NOT_NAMED, "not a whole number of them"),
    (
        spec({"at": ["2026-12-24T17:00:00Z"]}),
        "2026-12-24T17:00:00Z",
        ReasonKind.NAMED,
        "`at 2026-12-24T17:00:00Z` lists it",
    ),
    (spec({"at": ["2026-12-24T17:00:00Z"]}), "2026-12-24T17:00:01Z", ReasonKind.NOT_NAMED, "does not list it"),
    (
        spec({"calendar": {"weeks": 2}, "at": "02:30:00", "start": "2026-03-15", "month_end": "clamp"}),
        "2026-03-29T01:00:00Z",
        ReasonKind.SHIFTED,
        "`every 2 weeks at 02:30 from 2026-03-15 on`: 02:30 does not exist",
    ),
    (
        spec("0 8 * * *", exclude={"dates": [], "weekdays": [0], "holidays": []}),
        "2026-06-07T06:00:00Z",
        ReasonKind.EXCLUDED,
        "Sun 2026-06-07 is excluded: a Sunday",
    ),
    (
        spec("0 8 * * *", exclude={"dates": [], "weekdays": [], "holidays": ["DE-BE"]}),
        "2026-12-25T07:00:00Z",
        ReasonKind.EXCLUDED,
        "a holiday of DE-BE",
    ),
    (
        spec("0 8 * * *", start="2026-07-01T00:00:00Z"),
        "2026-06-07T06:00:00Z",
        ReasonKind.BEFORE_START,
        "the job starts at 2026-07-01T00:00:00Z",
    ),
    (
        spec("0 8 * * *", end="2026-06-07T06:00:00Z"),
        "2026-06-07T06:00:00Z",
        ReasonKind.AFTER_END,
        "the job ends at 2026-06-07T06:00:00Z",
    ),
    (spec("0 8 * * *", EVERY), "2026-06-07T06:00:00Z", ReasonKind.NAMED, "2 schedules of the job meet here"),
    (spec("0 8 * * *", EVERY), "2026-06-07T06:01:00Z", ReasonKind.NOT_NAMED, "; `every 15m` counts from"),
]


@pytest.mark.parametrize(("given", "instant", "kind", "words"), CASES)
def test_a_reason_says_what_makes_a_tick_or_keeps_it_out(
    given: dict[str, Any], instant: str, kind: ReasonKind, words: str
) -> None:
    reason = reason_at(given, at(instant))
    assert reason.kind is kind
    assert words in reason.sentence
    due = (ReasonKind.NAMED, ReasonKind.SHIFTED, ReasonKind.MERGED, ReasonKind.SHOWN_TWICE)
    assert reason.is_due is (kind in due)


def test_a_reading_has_one_instant_or_two_or_was_jumped_over() -> None:
    assert find_reading(datetime.fromisoformat("2026-06-01T02:30"), BERLIN).instants == (at("2026-06-01T00:30:00Z"),)
    twice = find_reading(datetime.fromisoformat("2026-10-25T02:30"), BERLIN)
    assert twice.instants == (at("2026-10-25T00:30:00Z"), at("2026-10-25T01:30:00Z"))
    jumped = find_reading(datetime.fromisoformat("2026-03-29T02:30"), BERLIN)
    assert jumped.instants == ()
    assert jumped.jump is not None
    assert jumped.jump.at == at("2026-03-29T01:00:00Z")


def test_a_day_that_a_zone_never_had_was_jumped_over_whole() -> None:
    jumped = find_reading(datetime.fromisoformat("2011-12-30T12:00"), "Pacific/Apia")
    assert jumped.jump is not None
    assert reason_at({**spec("0 12 30 12 *"), "timezone": "Pacific/Apia"}, jumped.jump.at).kind is ReasonKind.SHIFTED


def test_a_clock_that_leaves_out_a_day_is_told_with_both_days() -> None:
    (change,) = clock_changes("Pacific/Apia", at("2011-12-30T09:00:00Z"), at("2011-12-30T11:00:00Z"))
    assert change_words(change) == "the clock goes from 2011-12-30 00:00 to 2011-12-31 00:00"
