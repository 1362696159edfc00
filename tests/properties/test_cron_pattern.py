"""Every expression that the grammar takes matches the pattern that editors get."""

from __future__ import annotations

import json
import re
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sexton.cron_expression import CronExpression
from sexton.errors import InvalidSchedule
from sexton.jobfiles.cron_pattern import cron_pattern

PATTERN = re.compile(cron_pattern())
CASES = Path(__file__).parent.parent / "cases"

words = st.sampled_from(
    [
        *"*?HLRW,-/#()",
        "MON",
        "sun",
        "Sat",
        "jan",
        "DEC",
        "h",
        "l",
        "lw",
        "L-3",
        "15W",
        "5L",
        "MON#2",
        "6#5",
        "7",
        "H(0-29)",
    ]
) | st.integers(0, 75).map(str)
numbers = st.integers(0, 32).map(str) | st.sampled_from(["00", "07", "059", "JAN", "wed"])
terms = st.one_of(
    st.just("*"),
    numbers,
    st.builds("{}-{}".format, numbers, numbers),
    st.builds("{}/{}".format, st.sampled_from(["*", "0-23", "5", "H", "h(1-20)", "MON-FRI"]), st.integers(0, 61)),
    st.lists(words, min_size=1, max_size=4).map("".join),
)
fields = st.lists(terms, min_size=1, max_size=3).map(",".join)
texts = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", " ", "\t"]),
    st.lists(fields | st.sampled_from(["*", "*", "*", "?"]), min_size=5, max_size=6).map(" ".join),
    st.sampled_from(["", "  "]),
)


def is_taken(text: str) -> bool:
    try:
        CronExpression.parse(text)
    except InvalidSchedule:
        return False
    return True


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(texts)
@example("@DAILY")
@example(" 59 23 31 12 7 ")
@example("0 0 0 1-31/31 DEC-DEC SUN-7/7")
@example("*/60 */24 */31 */12 */7")
@example("h(0-59)/60 H H H(1-12) H(0-6)")
@example("0 0 L,LW,L-30,031W * *")
@example("0 0 ? * 0L,sat#5,MONL")
def test_what_the_grammar_takes_matches(text: str) -> None:
    if is_taken(text):
        assert PATTERN.search(text), text


def test_half_of_what_is_refused_does_not_match() -> None:
    cases = json.loads((CASES / "refused_schedules.json").read_text(encoding="utf-8"))
    refused = [case["input"] for case in cases if case["kind"] == "expr"]
    matching = [text for text in refused if PATTERN.search(text)]
    assert len(matching) < len(refused) / 3, matching


def test_numbers_stop_at_the_field_s_end() -> None:
    for text in (
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 8",
        "*/61 * * * *",
        "*/0 * * * *",
    ):
        assert not PATTERN.search(text), text
        assert not is_taken(text)
    for place, last in enumerate((59, 23, 31, 12, 7)):
        for number in range(1, last + 1):
            text = " ".join(str(number) if field == place else "*" for field in range(5))
            assert PATTERN.search(text), text
