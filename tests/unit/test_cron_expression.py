"""What the grammar accepts, what it means, and what a refusal says."""

import time
from contextlib import suppress

import pytest

from sexton.cron_expression import MAX_EXPRESSION_LENGTH, CronExpression
from sexton.errors import InvalidSchedule
from tests.support.effort import with_lines_run


def bits(*values: int) -> int:
    return sum(1 << value for value in values)


@pytest.mark.parametrize(
    ("field", "minutes"),
    [
        ("5", [5]),
        ("05", [5]),
        ("*/20", [0, 20, 40]),
        ("*/60", [0]),
        ("50/5", [50, 55]),
        ("59/15", [59]),
        ("5-5", [5]),
        ("5-5/10", [5]),
        ("10-20/5", [10, 15, 20]),
        ("0-58/59", [0]),
        ("1-3,2-4,40", [1, 2, 3, 4, 40]),
        ("*/30,7", [0, 7, 30]),
    ],
)
def test_minutes_named_by_numbers_ranges_steps_and_lists(field: str, minutes: list[int]) -> None:
    assert CronExpression.parse(f"{field} * * * *").readings.minutes == bits(*minutes)


@pytest.mark.parametrize(
    ("field", "weekdays"),
    [
        ("0", [0]),
        ("7", [0]),
        ("7-7", [0]),
        ("5-7", [5, 6, 0]),
        ("0-7", [0, 1, 2, 3, 4, 5, 6]),
        ("mon-Fri", [1, 2, 3, 4, 5]),
        ("MON-5/2", [1, 3, 5]),
        ("1-7/2", [1, 3, 5, 0]),
        ("*/7", [0]),
        ("sat,SUN", [6, 0]),
    ],
)
def test_weekdays_count_from_sunday_and_seven_is_sunday_too(field: str, weekdays: list[int]) -> None:
    assert CronExpression.parse(f"0 0 * * {field}").readings.days.weekdays == bits(*weekdays)


@pytest.mark.parametrize("blanks", ["0 5 * * *", "  0 5 * * *", "0\t5 \t* * *  "])
def test_blanks_and_tabs_separate_fields(blanks: str) -> None:
    assert CronExpression.parse(blanks).readings == CronExpression.parse("0 5 * * *").readings


@pytest.mark.parametrize(
    ("alias", "expression"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@Annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@DAILY", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        (" @hourly ", "0 * * * *"),
    ],
)
def test_aliases_mean_their_expressions(alias: str, expression: str) -> None:
    short, long = CronExpression.parse(alias), CronExpression.parse(expression)
    assert short.readings == long.readings
    assert short.follows_elapsed_time == long.follows_elapsed_time


def test_six_fields_begin_with_the_second() -> None:
    readings = CronExpression.parse("30 0 12 * * *").readings
    assert (readings.seconds, readings.minutes, readings.hours) == (bits(30), bits(0), bits(12))


@pytest.mark.parametrize(
    ("text", "follows"),
    [
        ("* 3 * * *", True),
        ("*/5 3 * * *", True),
        ("5 * * * *", True),
        ("5 */2 * * *", True),
        ("5 0-23 * * *", False),
        ("0-59 3 * * *", False),
        ("* 5 3 * * *", False),
        ("H H * * *", False),
        ("H * * * *", True),
        ("5,* 3 * * *", False),
    ],
)
def test_rule_r1_looks_at_the_first_character_of_minute_and_hour(text: str, follows: bool) -> None:
    assert CronExpression.parse(text).follows_elapsed_time is follows


@pytest.mark.parametrize(
    ("fields", "both"),
    [
        ("1 * MON", False),
        ("* * MON", True),
        ("? * MON", True),
        ("1 * ?", True),
        ("*/2 * MON", True),
        ("1 * */2", True),
        ("1-31 * MON", False),
        ("L * 5L", False),
        ("H * MON", False),
    ],
)
def test_rule_r3_both_day_fields_must_match_where_one_starts_with_a_star(fields: str, both: bool) -> None:
    assert CronExpression.parse(f"0 0 {fields}").readings.days.both_must_match is both


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("*/90 * * * *", "minute field '*/90': step 90 is larger than the field (0-59) and would fire only at 0"),
        ("*/90 * * * *", "use 'every: 90m'"),
        ("0 */25 * * *", "use 'every: 25h'"),
        ("0 0 * * */8", "step 8 is larger than the field (0-6)"),
        ("0 22-2 * * *", "hour field '22-2': range '22-2' runs backwards; write 22-23,0-2"),
        ("0 0 * OCT-FEB *", "write OCT-DEC,JAN-FEB"),
        ("0 0 * * SAT-SUN", "write SAT,SUN"),
        ("0 0 * * MON-SUN", "write *"),
        ("0 0 * * 1/2", "write 1-6/2"),
        ("0 0 * * MON/2", "a step after one weekday has no clear end"),
        ("*5 * * * *", "write */5"),
        ("/10 * * * *", "write */10"),
        ("1, 2 * * * *", "remove the blank"),
        ("* * * *", "weekday is missing"),
        ("* * *", "month, weekday is missing"),
        ("0 0 1 1 * 0 2020", "no year field"),
        ("0 5 * * * root", "user column of /etc/crontab"),
        ("0 5 * * * root /usr/bin/backup --all", "user column of /etc/crontab"),
        ("@reboot", "a cluster has no boot"),
        ("@every 5m", "'every: 5m'"),
        ("@daily root", "not a known alias"),
        ("R(0-5) * * * *", "write H"),
        ("0 0 * * R", "write H"),
        ("H(5) * * * *", "such as H(0-29)"),
        ("H(30-5) * * * *", "runs backwards"),
        ("H(0-60) * * * *", "'60' is outside 0-59"),
        ("* * * * 8", "'8' is outside 0-7, of which 0 and 7 are Sunday"),
        ("H/61 * * * *", "larger than the field"),
        ("0 24 * * *", "midnight is hour 0"),
        ("0 0 MON * *", "MON is a weekday and belongs in the weekday field"),
        ("0 0 * * JAN", "belongs in the month field"),
        ("L * * * *", "only in the day fields"),
        ("0 0 5L * *", "belongs in the weekday field"),
        ("0 0 * * 15W", "belongs in the day-of-month field"),
        ("0 0 L-0 * *", "for the last day write L"),
        ("0 0 L-31 * *", "no month has a day 31 days before its last"),
        ("0 0 L/2 * *", "'L' is not understood"),
        ("0 0 15W/2 * *", "'15W' is not understood"),
        ("0 0 1-15W * *", "'15W' is not understood"),
        ("0 0 * * MON#6", "1 to 5"),
        ("0 0 * * MON#0", "1 to 5"),
        ("0 0 * * MON-FRI#2", "'MON-FRI' is not understood"),
        ("0 0 * * #2", "write MON#2"),
        ("0 0 ?,1 * *", "? stands alone"),
        ("0 0 * ? *", "only in one of the two day fields"),
        ("CRON_TZ=Europe/Berlin 0 5 * * *", "'timezone' key"),
        ("0 2 * * * Europe/Berlin", "a zone in it; write 'Europe/Berlin' into the job's 'timezone' key"),
        ("0 2 * * * UTC", "write 'UTC' into the job's 'timezone' key"),
        ("0 5 * * *\n", "on one line"),
        ("0\u00a05 * * *", "NO-BREAK SPACE"),
        ("0 5 * * \u0661", "ARABIC-INDIC DIGIT ONE"),
        ("1/2/3 * * * *", "the step '2/3' is not a whole number"),
        ("1-2-3 * * * *", "'1-2-3' is not understood"),
        ("5- * * * *", "range without both ends"),
        ("1.5 * * * *", "'1.5' is not understood"),
        ("+5 * * * *", "'+5' is not understood"),
    ],
)
def test_a_refusal_says_where_what_and_what_to_write_instead(text: str, says: str) -> None:
    with pytest.raises(InvalidSchedule) as refusal:
        CronExpression.parse(text)
    assert says in str(refusal.value)


@pytest.mark.parametrize(
    "text",
    [
        "0 0 30 2 *",
        "0 0 30,31 2 *",
        "0 0 31 2,4,6,9,11 *",
        "0 0 30W 2 *",
        "0 0 L-29 2 *",
        "0 0 L-30 4 *",
        "* * 31 2 *",
        "0 0 30 2 */2",
        "0 0 */31 2 5#2",
        "0 0 30 FEB ?",
        "30 0 0 31 9 *",
    ],
)
def test_what_can_never_fire_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchedule, match=r"never fires: no .*; correct the day or the months"):
        CronExpression.parse(text)


@pytest.mark.parametrize(
    "text",
    ["0 0 29 2 *", "0 0 * 2 MON#5", "0 0 30 2 MON", "0 0 L-28 2 *", "0 0 */28 2 MON#5", "0 0 31,1 2 *", "0 0 L-30 3 *"],
)
def test_sparse_is_not_never(text: str) -> None:
    assert CronExpression.parse(text).text == text


@pytest.mark.parametrize("seed", ["nightly", "thingly", "lightny", "a", "b", "", "\u00e4"])
def test_h_names_one_value_inside_its_range(seed: str) -> None:
    cron = CronExpression.parse("H H(2-4) H H H", hash_seed=seed)
    readings = cron.readings
    assert cron.uses_hash
    assert readings.per_day == 1
    assert readings.hours & bits(2, 3, 4)
    assert readings.days.days.bit_count() == 1
    assert readings.days.days.bit_length() <= 29, "every month has the day"
    assert readings.days.weekdays.bit_count() == 1


def test_h_with_a_step_names_every_nth_value_from_a_hashed_start() -> None:
    for job in range(50):
        start, *rest = (
            m for m in range(60) if CronExpression.parse("H/15 * * * *", hash_seed=f"j{job}").readings.minutes >> m & 1
        )
        assert start < 15
        assert rest == [start + 15, start + 30, start + 45]
        inside = CronExpression.parse("H(10-29)/10 * * * *", hash_seed=f"j{job}").readings.minutes
        assert inside.bit_count() == 2
        assert inside & ~bits(*range(10, 30)) == 0


def test_h_is_the_same_for_ever() -> None:
    minutes = {seed: CronExpression.parse("H H * * *", hash_seed=seed).readings for seed in ("billing", "ledger", "")}
    found = {seed: (r.minutes.bit_length() - 1, r.hours.bit_length() - 1) for seed, r in minutes.items()}
    assert found == PINNED_HASHES, "a change here moves jobs in every cluster: raise TICK_ENGINE_VERSION"


PINNED_HASHES = {"billing": (3, 20), "ledger": (8, 13), "": (48, 23)}


def test_h_spreads_names_that_are_anagrams_and_a_thousand_jobs_over_the_hour() -> None:
    def minute(seed: str) -> int:
        return CronExpression.parse("H * * * *", hash_seed=seed).readings.minutes.bit_length() - 1

    assert len({minute(seed) for seed in ("abcd", "abdc", "acbd", "dcba", "bacd", "cabd")}) > 3
    used = [minute(f"job-{n}") for n in range(1_000)]
    assert len(set(used)) == 60
    assert max(used.count(m) for m in range(60)) < 40


def test_expressions_are_values() -> None:
    one, other = CronExpression.parse("H 2 * * *", hash_seed="a"), CronExpression.parse("H 2 * * *", hash_seed="a")
    assert one == other
    assert len({one, other, CronExpression.parse("H 2 * * *", hash_seed="b")}) == 2
    assert not CronExpression.parse("0 2 * * *", hash_seed="a").uses_hash


@pytest.mark.parametrize(
    "text",
    [
        ",".join(["*/59"] * 40),
        "9" * 200,
        "H(" * 100,
        "1-" * 100,
        "/" * 200,
        "L" * 200,
        "# " * 100,
        "* " * 100,
        "0 0 " + ",".join(f"{n}W" for n in range(1, 32)) + " 2 " + ",".join(f"{n}#5" for n in range(7)),
        "\u00a0" * 200,
    ],
)
def test_any_200_characters_are_judged_at_once(text: str) -> None:
    def judge() -> None:
        with suppress(InvalidSchedule):
            CronExpression.parse(text[:200])

    started = time.thread_time()  # of this thread alone: others' load does not count; a regex that backtracks does
    _, lines = with_lines_run(judge)
    assert lines < 20_000
    assert time.thread_time() - started < 5, "a search that explodes"


def test_length_is_judged_before_anything_else() -> None:
    with pytest.raises(InvalidSchedule, match="split it into several schedules"):
        CronExpression.parse("*" * (MAX_EXPRESSION_LENGTH + 1))
