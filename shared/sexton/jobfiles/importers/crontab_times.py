"""The time fields of a crontab, in crond's meaning: what Vixie's cron and cronie take alike, and `L` of cronie's.

Sexton's own grammar knows more (H, W, #, ?, 5/15); a crontab that has it never ran, or means something else to crond,
so it is refused here with what to write instead.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from dataclasses import dataclass

from sexton.cron_expression import CronExpression
from sexton.cron_fields import DAY, KINDS, MONTH, MONTH_NAMES, WEEKDAY, WEEKDAY_NAMES, FieldKind
from sexton.errors import InvalidSchedule
from sexton.jobfiles.importers.findings import shown

ALIASES = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_TERM = re.compile(r"(?:\*|[0-9]+-[0-9]+|[A-Za-z]{3}-[A-Za-z]{3}|[0-9]+-[A-Za-z]{3}|[A-Za-z]{3}-[0-9]+)(?:/[0-9]+)?")
_VALUE = re.compile(r"[0-9]+|[A-Za-z]{3}")
_STEP_AFTER_VALUE = re.compile(r"(?P<value>[0-9]+|[A-Za-z]{3})/(?P<step>[0-9]+)")
_RANDOM = re.compile(r"(?P<low>[0-9]*)~(?P<high>[0-9]*)(?:/[0-9]+)?")
_LARGE_STEP = re.compile(r"\*/(?P<step>[0-9]{1,9})")
_NAMES = "|".join((*MONTH_NAMES, *WEEKDAY_NAMES))
# Right or wrong, it stands where a field should: `3O`, `MONDAY-FRI`, `1–3`, `x`.
_LOOKS_LIKE_FIELD = re.compile(
    r"[^A-Za-z./$_%=<>|;&][^./$_%=<>|;&]{0,11}(?:/[0-9A-Za-z]{1,3})?|[A-Za-z]|H\(\S+"
    rf"|(?:{_NAMES})[A-Z]*(?:[-,](?:{_NAMES})[A-Z]*)*|(?i:{_NAMES})(?i:[-,/0-9*L#~]|{_NAMES})*|[^A-Za-z.$_%=<>|;&]+"
)
FIELD_NAMES = tuple(kind.name for kind in KINDS[1:])


class NotTimes(ValueError):
    """Why the fields are refused, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Times:
    """A cron expression of Sexton's that means the same; ``knows_last_day``: it needs cronie's `L`."""

    expression: str
    knows_last_day: bool = False


def times_of_alias(word: str, next_word: str = "") -> Times:
    """What an `@word` stands for; ``next_word`` is what follows it. Raises NotTimes."""
    if word == "@":
        raise NotTimes(f"has a blank after the @; write @{next_word[:20]}")
    if word.lower() in ALIASES:
        return Times(word.lower())
    if word.lower() == "@every_minute":
        raise NotTimes("@every_minute is FreeBSD's; write '* * * * *' in its place")
    if re.fullmatch(r"@[0-9]+", word):
        seconds = word[1:].lstrip("0")[:9] or "0"
        raise NotTimes(
            f"{shown(word)} is FreeBSD's (so many seconds after the last run ended); "
            f"write the job by hand with schedule: {{every: {seconds}s}}, which counts from start to start"
        )
    if word.lower().startswith("@every"):
        every = next_word if re.fullmatch(r"([0-9]{1,9}[smhd])+", next_word) else "15m"
        raise NotTimes(f"@every is no word of crond's; write the job by hand with schedule: {{every: {every}}}")
    near = difflib.get_close_matches(word.lower(), (*ALIASES, "@reboot"), n=1, cutoff=0.6)
    meant = f"did you mean {near[0]}?" if near else f"known are {', '.join(ALIASES)}"
    raise NotTimes(f"{shown(word)} is no word that crond knows; {meant}")


def times_of_fields(fields: list[str]) -> Times:
    """What five fields mean, in Sexton's words. Raises NotTimes."""
    for kind, field in zip(KINDS[1:], fields, strict=True):
        _check_field(kind, field)
    text = " ".join(fields)
    try:
        CronExpression.parse(text)
    except InvalidSchedule as error:
        # What the tick engine offers beyond crond's language is no advice for a crontab.
        said = str(error).removeprefix("cron expression ").replace(", steps and H", " and steps")
        raise NotTimes(said) from None
    return Times(text, knows_last_day="L" in fields[2].upper())


def _check_field(kind: FieldKind, field: str) -> None:
    """What Sexton would understand and crond does not, or otherwise; the rest is the tick engine's to judge."""
    if field.endswith(","):
        raise NotTimes(f"{kind.name} field {shown(field)} ends with a comma; remove it, or the blank after it")
    for term in field.split(","):
        if step := _LARGE_STEP.fullmatch(term):
            _check_step(kind, field, int(step["step"]))
        if _TERM.fullmatch(term) or _VALUE.fullmatch(term) or not term:
            continue
        if kind is DAY and term.upper() == "L":
            continue
        if random := _RANDOM.fullmatch(term):
            low, high = random["low"] or kind.low, random["high"] or kind.high
            hashed = "H" if term == "~" else f"H({low}-{high})"
            raise NotTimes(
                f"{kind.name} field {shown(field)}: ~ draws another value each time crond reads the file; write "
                f"{hashed} in the job file (a fixed value, drawn from the job's name), or a number here"
            )
        if step := _STEP_AFTER_VALUE.fullmatch(term):
            value, number = step["value"], step["step"]
            raise NotTimes(
                f"{kind.name} field {shown(field)}: crond reads {value} and passes over /{number}; write {value} if "
                f"that is what ran, or {value}-{kind.hash_high if kind is WEEKDAY else kind.high}/{number} if "
                "a step was "
                "meant"
            )
        if re.search(r"[HhLlWw#?]", term) and re.fullmatch(r"[0-9HhLlWw#?()/A-Za-z-]+", term):
            every = " (as ? it would be *)" if "?" in term else ""
            raise NotTimes(
                f"{kind.name} field {shown(field)}: {shown(term)} means nothing to crond, so this line never "
                "ran; write "
                f"what it knows{every}, or write the job by hand: Sexton knows H, L, W, # and ?"
            )


def _check_step(kind: FieldKind, field: str, step: int) -> None:
    if step > kind.size:
        unit = {"minute": "m", "hour": "h", "day-of-month": "d"}.get(kind.name)
        instead = f", or write the job by hand with schedule: {{every: {step}{unit}}}" if unit else ""
        raise NotTimes(
            f"{kind.name} field {shown(field)}: its step is larger than the field, so crond runs it at "
            f"{kind.low} alone; "
            f"write {kind.low} if that is what is wanted{instead}"
        )


def fields_before_command(words: list[str]) -> int:
    """How many of the first five words, from the first on, look like time fields, though they may be wrong ones."""
    for place, word in enumerate(words[:5]):
        if not _LOOKS_LIKE_FIELD.fullmatch(word):
            return place
    return min(len(words), 5)


def what_field_may_mean(word: str, place: int) -> str:
    """What to write for a word in the place of a field (0: minute) that looks like none; begins with a blank or `;`."""
    kind = KINDS[1 + place]
    strange = next((one for one in word if not one.isascii() and not one.isalpha()), None)
    if strange is not None:
        name = unicodedata.name(strange, "a character without a name")
        return f" (it holds U+{ord(strange):04X}, {name}; a range has -)"
    names = {WEEKDAY: WEEKDAY_NAMES, MONTH: MONTH_NAMES}.get(kind)
    if names is None:
        return f"; write {kind.low}-{kind.high} or *"
    near = difflib.get_close_matches(word[:3].upper(), names, n=1, cutoff=0.6)
    meant = f", such as {near[0]}" if near else ""
    return f"; write {names[0]} to {names[-1]}, {kind.low} to {kind.high} or *{meant}"


def looks_like_times(text: str) -> bool:
    """Whether a text begins as a job's line does: for those that are commented out."""
    fields = re.split(r"[ \t]+", text.strip(" \t"), maxsplit=5)
    if fields and fields[0].startswith("@"):
        return fields[0].lower() in ALIASES
    if len(fields) < 6 or not any(character in "*0123456789" for character in fields[0]):
        return False
    try:
        times_of_fields(fields[:5])
    except NotTimes:
        return False
    return True


def looks_like_a_field(word: str) -> bool:
    """Whether a command's first word is rather a sixth time field."""
    return bool(
        re.fullmatch(r"[*?](/[0-9]+)?|[0-9]+([-,/][0-9]+)*", word)
        or re.fullmatch(r"(SUN|MON|TUE|WED|THU|FRI|SAT)([-,](SUN|MON|TUE|WED|THU|FRI|SAT))*", word)
    )
