"""A schedule in a few words: what becomes of a day that some months do not have is said."""

import pytest

from sexton.jobfiles.differences import schedule_summary


@pytest.mark.parametrize(
    ("unit", "start", "month_end", "says"),
    [
        (
            "months",
            "2026-01-31",
            "clamp",
            "every month at 02:30 from 2026-01-31, on the last day of months without a 31st",
        ),
        ("months", "2026-01-30", "skip", "every month at 02:30 from 2026-01-30, not in months without a 30th"),
        (
            "years",
            "2024-02-29",
            "clamp",
            "every year at 02:30 from 2024-02-29, on the last day of months without a 29th",
        ),
        ("years", "2024-12-31", "clamp", "every year at 02:30 from 2024-12-31"),
        ("months", "2026-01-28", "skip", "every month at 02:30 from 2026-01-28"),
        ("weeks", "2026-01-31", "clamp", "every week at 02:30 from 2026-01-31"),
    ],
)
def test_the_end_of_the_month_is_put_into_words_where_it_matters(
    unit: str, start: str, month_end: str, says: str
) -> None:
    assert schedule_summary([{"calendar": {unit: 1}, "at": "02:30:00", "start": start, "month_end": month_end}]) == says
