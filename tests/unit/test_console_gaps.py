"""A gap that the same leader ended, as the console tells it: a row among the terms, and what it opens into."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from sexton.terms import ElectedBy, EndedBy
from sexton.views import DecisionTotals, GapView, TakeoverDetail, TakeoverView
from sexton_tui.console.core import details, tables
from sexton_tui.console.core.overview import gap_line
from sexton_tui.console.core.subjects import OfTakeover, crumb
from tests.support.scene import NOW

MINUTE = timedelta(minutes=1)
ENDED = NOW.replace(hour=2, minute=25, second=10, microsecond=0)
GAP = GapView(41, "sched-2", ENDED - 12 * MINUTE, ENDED, DecisionTotals(2, 12, 1, 10, 0, 0, 1))
TERM = TakeoverView(
    *(41, "sched-2", ElectedBy.ZOOKEEPER, ENDED - 20 * MINUTE, None, None, "sched-1", EndedBy.VANISHED),
    *(ENDED - 21 * MINUTE, ENDED - 20 * MINUTE, None, 9, 0, DecisionTotals()),
    gaps=(GAP, replace(GAP, gap_until=ENDED - 15 * MINUTE)),
)
"""A term in which its leader wrote nothing twice."""
BEFORE = replace(TERM, term=40, gaps=())


def test_a_gap_has_a_row_of_its_own_above_its_term_and_newer_ones_come_first() -> None:
    rows = tables.takeover_rows([TERM, BEFORE], NOW)
    assert [row.about for row in rows] == [
        OfTakeover(41, GAP.gap_until),
        OfTakeover(41, ENDED - 15 * MINUTE),
        OfTakeover(41),
        OfTakeover(40),
    ]
    assert len({row.key for row in rows}) == len(rows)
    told = [cell.text for cell in rows[0].cells]
    assert told == ["41", "sched-2", "02:13:10", "02:25:10", "same leader", "12m00s", "12", "1", "10", "0", "0", "1"]
    assert len(told) == len(tables.TAKEOVER_COLUMNS)


def test_a_race_goes_on_after_its_gap() -> None:
    raced = replace(GAP, node="the race")
    assert tables.gap_row(raced, NOW).cells[4].text == "same race"
    (told, *_) = details.takeover_lines(TakeoverDetail(TERM, (), True, gap=raced), NOW)
    assert told.text == "term 41: the race wrote no claims from 02:13:10 to 02:25:10, and the race went on"


def test_a_gap_opens_into_how_long_it_was_and_what_was_decided_about_it() -> None:
    lines = details.takeover_lines(TakeoverDetail(TERM, (), False, gap=GAP), NOW)
    assert [one.text for one in lines] == [
        "term 41: sched-2 wrote no claims from 02:13:10 to 02:25:10, and led on in its term",
        "gap 12m00s  frozen, without its database, or halted",
        "2 jobs, 12 missed: 1 fired, 10 merged, 1 held",
        "only the first 0 decisions are shown",
    ]
    assert crumb(OfTakeover(41, ENDED)) == "term 41, gap to 2026-03-29 02:25:10 UTC"


@pytest.mark.parametrize(("gaps", "told"), [(0, 0), (3, 3), (5, 4)])
def test_an_opened_term_tells_its_newest_gaps_and_how_many_more_it_has(gaps: int, told: int) -> None:
    lines = details.takeover_lines(TakeoverDetail(replace(TERM, gaps=(GAP,) * gaps), (), True), NOW)
    found = [one.text for one in lines[3:]]
    assert len(found) == told
    if gaps:
        assert found[0] == "later, a gap of 12m00s from 02:13:10 to 02:25:10, same term: " + (
            "12 missed: 1 fired, 10 merged, 1 held"
        )
    assert found[3:] == (["and 2 gaps before"] if gaps == 5 else [])


def test_the_overview_tells_a_gap_beside_the_takeovers() -> None:
    line = gap_line(GAP, NOW)
    assert line.text == "   41  sched-2  02:25:10  gap 12m00s, led on  12 missed: 1 fired, 10 merged, 1 held"


def test_what_is_chosen_stays_chosen_and_else_it_is_the_newest() -> None:
    every = (TERM, BEFORE)
    assert tables.chosen_takeover(every, OfTakeover(40)) == (BEFORE, None)
    assert tables.chosen_takeover(every, OfTakeover(41)) == (TERM, None)
    assert tables.chosen_takeover(every, OfTakeover(41, ENDED - 15 * MINUTE)) == (TERM, TERM.gaps[1])
    assert tables.chosen_takeover(every, OfTakeover(7)) == (TERM, GAP)
    assert tables.chosen_takeover((BEFORE,), None) == (BEFORE, None)
    assert tables.chosen_takeover((), None) is None
