"""Cron expressions: text in, the set of wall-clock readings out. No clock, no zone.

Five fields (minute, hour, day of month, month, weekday), or six with the second first; or an alias such as @daily.
What is accepted means the same on every node and for ever (TICK_ENGINE_VERSION); what is not in the grammar, what
depends on chance or on a process's start, and what can never fire is refused with the reason and the remedy.
docs/decisions/0002-cron-arithmetic.md says why this is Sexton's own.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from sexton.cron_days import DayRule
from sexton.cron_fields import DAY, KINDS, WEEKDAY, ParsedField, parse_field, shown
from sexton.cron_readings import Readings
from sexton.errors import InvalidSchedule

MAX_EXPRESSION_LENGTH = 1_000
_ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
ALIAS_NAMES = tuple(_ALIASES)
"""The words that stand for an expression; case does not matter."""
_ORDINARY = re.compile(r"[\t -~]*")
_BLANKS = re.compile(r"[ \t]+")
_ZONE_NAME = re.compile(
    r"(?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Brazil|Canada|Chile|Etc|Europe|Indian|Mexico|Pacific"
    r"|US)/[A-Za-z0-9_+/-]+|UTC|GMT",
    re.IGNORECASE,
)
_USER_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class CronExpression:
    """One accepted expression. Equal when text and meaning are equal (H means something else under another seed)."""

    text: str
    readings: Readings
    uses_hash: bool
    """H appears: `hash_seed` has decided what it means."""
    follows_elapsed_time: bool
    """The minute or hour field starts with `*`: at a clock change the job keeps to elapsed time (rule R1)."""

    @classmethod
    def parse(cls, text: str, *, hash_seed: str = "") -> "CronExpression":
        """The expression that `text` says. Raises InvalidSchedule naming field, value and remedy."""
        if len(text) > MAX_EXPRESSION_LENGTH:
            raise InvalidSchedule(
                f"cron expression {shown(text)} has {len(text)} characters, more than {MAX_EXPRESSION_LENGTH}; "
                "split it into several schedules of the job"
            )
        return _parse(text, hash_seed)


@lru_cache(maxsize=8192)
def _parse(text: str, hash_seed: str) -> CronExpression:
    _refuse_odd_characters(text)
    stripped = text.strip(" \t")
    fields = _BLANKS.split(_expand_alias(stripped)) if stripped else []
    _refuse_what_is_no_expression(text, stripped, fields)
    if len(fields) == 5:
        fields = ["0", *fields]
    parsed = [parse_field(kind, field, hash_seed) for kind, field in zip(KINDS, fields, strict=True)]
    second, minute, hour, day, month, weekday = parsed
    if day.text == weekday.text == "?":
        raise InvalidSchedule(
            f"cron expression {shown(text)}: ? in both day fields says nothing about the day; write *"
        )
    days = DayRule(
        months=month.values,
        days=day.values,
        weekdays=weekday.values,
        both_must_match=day.is_unrestricted or weekday.is_unrestricted,
        last_day_offsets=tuple(sorted(day.last_day_offsets)),
        last_workday=day.last_workday,
        nearest_workdays=tuple(sorted(day.nearest_workdays)),
        nth_weekdays=tuple(sorted(weekday.nth_weekdays)),
        last_weekdays=weekday.last_weekdays,
    )
    if not days.can_match():
        raise InvalidSchedule(_why_never(text, day, month, weekday))
    return CronExpression(
        text=text,
        readings=Readings(second.values, minute.values, hour.values, days),
        uses_hash=any(field.uses_hash for field in parsed),
        follows_elapsed_time=minute.is_unrestricted or hour.is_unrestricted,
    )


def _refuse_odd_characters(text: str) -> None:
    if _ORDINARY.fullmatch(text):
        return
    for position, character in enumerate(text, start=1):
        if character == "\t" or " " <= character <= "~":
            continue
        name = unicodedata.name(character, "a control character")
        advice = (
            "write the expression on one line" if character in "\r\n" else "retype it with ordinary blanks and letters"
        )
        raise InvalidSchedule(
            f"cron expression {shown(text)} has U+{ord(character):04X} ({name}) as its character {position}; {advice}"
        )


def _expand_alias(text: str) -> str:
    if not text.startswith("@"):
        return text
    word = _BLANKS.split(text)[0].lower()
    known = ", ".join(_ALIASES)
    if word == "@reboot":
        raise InvalidSchedule(
            "cron expression '@reboot' depends on when a process starts, and a cluster has no boot; give a time"
        )
    if word == "@every":
        interval = text[len(word) :].strip() or "15m"
        raise InvalidSchedule(f"cron expression {shown(text)}: use the schedule 'every: {interval[:20]}' instead")
    if text.lower() not in _ALIASES:
        raise InvalidSchedule(f"cron expression {shown(text)} is not a known alias; known are {known}")
    return _ALIASES[text.lower()]


def _refuse_what_is_no_expression(text: str, stripped: str, fields: list[str]) -> None:
    what = f"cron expression {shown(text)}"
    if not fields:
        raise InvalidSchedule("cron expression is empty; write five fields: minute hour day-of-month month weekday")
    if stripped[0] in "'\"":
        raise InvalidSchedule(f"{what} has quotes inside the value; remove them")
    if "=" in fields[0]:
        raise InvalidSchedule(f"{what} sets a variable; a zone goes into the job's 'timezone' key")
    if dangling := next((field for field in fields[:-1] if field.endswith(",")), None):
        raise InvalidSchedule(f"{what} has a blank inside a list, after {shown(dangling)}; remove the blank")
    if zone := next((field for field in fields if _ZONE_NAME.fullmatch(field)), None):
        raise InvalidSchedule(f"{what} has a zone in it; write {shown(zone)} into the job's 'timezone' key")
    if len(fields) < 5:
        names = [kind.name for kind in KINDS[1:]]
        missing = ", ".join(names[len(fields) :])
        raise InvalidSchedule(f"{what} has {len(fields)} of 5 fields: {missing} is missing; write {' '.join(names)}")
    if len(fields) > 5 and _is_user_name(fields[5]):
        raise InvalidSchedule(
            f"{what} has {shown(fields[5])} after five fields, like the user column of /etc/crontab; leave user and "
            "command out (six fields would mean that the first is the second)"
        )
    if len(fields) == 7:
        raise InvalidSchedule(
            f"{what} has seven fields, and Sexton knows no year field; use the job's 'start' and 'end'"
        )
    if len(fields) > 6:
        raise InvalidSchedule(f"{what} has {len(fields)} fields; write 5, or 6 with the second first, and no command")


def _is_user_name(field: str) -> bool:
    """A word that cannot be a weekday field."""
    return bool(_USER_NAME.fullmatch(field)) and not re.fullmatch(
        rf"(?:{'|'.join(WEEKDAY.names)})(?:-.*|L)?|[HLR]", field.upper()
    )


def _why_never(text: str, day: ParsedField, month: ParsedField, weekday: ParsedField) -> str:
    months = ", ".join(month.kind.show(number) for number in range(1, 13) if month.values >> number & 1)
    reason = f"no {months} has a day that matches {DAY.name} {shown(day.text)}"
    if not weekday.is_unrestricted or len(weekday.text) > 1:
        reason += f" and {WEEKDAY.name} {shown(weekday.text)} (both must match, because one of them starts with *)"
    return f"cron expression {shown(text)} never fires: {reason}; correct the day or the months"
