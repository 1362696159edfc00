"""What a cron expression means, in words; and schedules in a list."""

from __future__ import annotations

import pytest

from sexton.cron_expression import CronExpression
from sexton.schedule_words import cron_words
from sexton.store.read_jobs import schedule_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("* * * * *", "every minute"),
        ("*/15 * * * *", "every 15 minutes"),
        ("5 * * * *", "at minute 5 of every hour"),
        ("5,20-22 * * * *", "at minutes 5 and 20 to 22 of every hour"),
        ("30 2 * * *", "at 02:30 every day"),
        ("30 2,14 * * *", "at 02:30 and 14:30 every day"),
        ("*/15 9-17 * * MON-FRI", "every 15 minutes from 09:00 to 17:59, on Monday to Friday"),
        ("0 */2 * * *", "at minute 0 of every 2nd hour"),
        ("*/10 8,12,20 * * *", "every 10 minutes of the hours 8, 12 and 20"),
        ("0 6 1 * *", "at 06:00, on day 1 of the month"),
        ("0 6 1,15 * *", "at 06:00, on days 1 and 15 of the month"),
        ("0 6 L * *", "at 06:00, on the last day of the month"),
        ("0 6 L-2 * *", "at 06:00, on the 3rd last day of the month"),
        ("0 6 LW * *", "at 06:00, on the last workday of the month"),
        ("0 6 15W * *", "at 06:00, on the workday nearest to the 15th of the month"),
        ("0 6 * * MON#2", "at 06:00, on the second Monday of the month"),
        ("0 6 * * 5L", "at 06:00, on the last Friday of the month"),
        ("0 6 * * SUN", "at 06:00, on Sunday"),
        ("0 6 1 * MON", "at 06:00, on day 1 of the month or on Monday"),
        ("0 6 */2 * MON", "at 06:00, on days 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29 and 31 of the month,"
         " if that is Monday"),
        ("0 6 * 1,7 *", "at 06:00, every day in January and July"),
        ("0 6 24 12 *", "at 06:00, on day 24 of the month in December"),
        ("* * * * * *", "every second"),
        ("*/15 * * * * *", "every 15 seconds"),
        ("30 * * * * *", "at second 30 of every minute"),
        ("10 30 2 * * *", "at 02:30:10 every day"),
        ("0/20 5 * * * *", "every 20 seconds in minute 5 of every hour"),
        ("@daily", "at 00:00 every day"),
        ("* 3 * * *", "every minute from 03:00 to 03:59"),
    ],
)  # fmt: skip
def test_an_expression_reads_as_what_it_names(text: str, words: str) -> None:
    assert cron_words(CronExpression.parse(text)) == words


def test_h_reads_as_the_instant_that_it_has_become() -> None:
    cron = CronExpression.parse("H 3 * * *", hash_seed="backup")
    minute = cron.readings.minutes.bit_length() - 1
    assert cron_words(cron) == f"at 03:{minute:02} every day"


def test_a_list_shows_a_calendar_schedule_by_its_step() -> None:
    part = {"calendar": {"months": 1}, "at": "02:30:00", "start": "2026-01-31", "month_end": "clamp"}
    assert schedule_words([part]).startswith("every month at 02:30 from 2026-01-31")
    assert schedule_words([{"at": ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]}]) == "at 2 instants"
