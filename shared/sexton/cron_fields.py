"""The strict grammar of one cron field, and what its terms mean.

    field  = term { "," term }                         ? alone, in one of the two day fields
    term   = "*" [step] | value [step] | value "-" value [step] | H [ "(" value "-" value ")" ] [step]
    step   = "/" number                                not after a single weekday, where its end would be ambiguous
    value  = number | name                             JAN to DEC, SUN to SAT; case does not matter; weekday 7 is 0
    day-of-month also: L | L-number | LW | numberW     weekday also: valueL | value#1 to value#5

Whatever the grammar does not name is refused, with the field, the faulty text and what to write instead.
"""

import hashlib
import re
from dataclasses import dataclass, field
from functools import lru_cache

from sexton.errors import InvalidSchedule

MONTH_NAMES = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAY_NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_RANGE = re.compile(r"(?P<low>[^-/]+)-(?P<high>[^-/]+)")
_HASH = re.compile(r"H(?:\((?P<range>[^()]*)\))?")
_NUMBER = re.compile(r"[0-9]+")
_SHOWN_CHARACTERS = 40


@dataclass(frozen=True, slots=True, eq=False)
class FieldKind:
    """`size` counts distinct values (7 weekdays, though 7 may be written); H picks from low to `hash_high`."""

    name: str
    low: int
    high: int
    size: int
    hash_high: int
    names: tuple[str, ...] = ()

    def show(self, value: int) -> str:
        return self.names[(value - self.low) % self.size] if self.names else str(value)

    @property
    def is_day(self) -> bool:
        return self is DAY or self is WEEKDAY


SECOND = FieldKind("second", 0, 59, 60, 59)
MINUTE = FieldKind("minute", 0, 59, 60, 59)
HOUR = FieldKind("hour", 0, 23, 24, 23)
DAY = FieldKind("day-of-month", 1, 31, 31, 28)  # H stays below 29, so that every month has its tick
MONTH = FieldKind("month", 1, 12, 12, 12, MONTH_NAMES)
WEEKDAY = FieldKind("weekday", 0, 7, 7, 6, WEEKDAY_NAMES)
KINDS = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)


def shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…")


@dataclass(slots=True)
class ParsedField:
    """What a field names; `values` has bit n for value n. Weekday 7 has become 0."""

    kind: FieldKind
    text: str
    hash_seed: str
    values: int = 0
    uses_hash: bool = False
    last_day_offsets: set[int] = field(default_factory=set)
    last_workday: bool = False
    nearest_workdays: set[int] = field(default_factory=set)
    nth_weekdays: set[tuple[int, int]] = field(default_factory=set)
    last_weekdays: int = 0

    @property
    def is_unrestricted(self) -> bool:
        """Begins with `*`, or is `?`: the rules for day fields and for elapsed time look at the text, as Vixie's do."""
        return self.text.startswith(("*", "?"))

    def refuse(self, reason: str) -> InvalidSchedule:
        return InvalidSchedule(f"{self.kind.name} field {shown(self.text)}: {reason}")


def parse_field(kind: FieldKind, text: str, hash_seed: str) -> ParsedField:
    """What the text names; shared between expressions, not to be changed. Raises InvalidSchedule."""
    return _parse_field(kind, text, hash_seed if "H" in text or "h" in text else "")


@lru_cache(maxsize=8192)
def _parse_field(kind: FieldKind, text: str, hash_seed: str) -> ParsedField:
    parsed = ParsedField(kind, text, hash_seed)
    if text == "?":
        if not kind.is_day:
            raise parsed.refuse("? stands only in one of the two day fields; write *")
        parsed.values = _every(kind)
        return parsed
    for term in text.upper().split(","):
        if not term:
            raise parsed.refuse("an element of the list is empty; remove the extra comma")
        if not _add_day_term(parsed, term):
            _add_term(parsed, term)
    if kind is WEEKDAY:
        parsed.values = (parsed.values | parsed.values >> 7) & 0b1111111
    return parsed


def _every(kind: FieldKind) -> int:
    return (2 << kind.high) - (1 << kind.low) if kind is not WEEKDAY else 0b1111111


def _add_day_term(parsed: ParsedField, term: str) -> bool:
    """Add an L, W or # term; False when `term` is none of these."""
    kind = parsed.kind
    if "#" in term:
        if kind is not WEEKDAY:
            raise parsed.refuse("# chooses the nth weekday of the month and stands only in the weekday field")
        weekday, _, nth = term.partition("#")
        if not weekday:
            raise parsed.refuse(f"{shown(term)} has no weekday before the #; write MON#2 for the second Monday")
        if nth not in ("1", "2", "3", "4", "5"):
            raise parsed.refuse(f"{shown(term)}: the number after # is 1 to 5; for the last one write {weekday[:3]}L")
        parsed.nth_weekdays.add((_value(parsed, weekday) % 7, int(nth)))
        return True
    if kind is WEEKDAY and term.endswith("L") and _is_value(parsed.kind, term[:-1]):
        parsed.last_weekdays |= 1 << _value(parsed, term[:-1]) % 7
        return True
    if not re.fullmatch(r"L(W|-.*)?|[0-9]+[WL]", term):
        return False
    if kind is WEEKDAY:
        raise parsed.refuse(
            f"{shown(term)} needs a weekday before the L, such as 5L for the last Friday; for Saturdays write SAT"
            if term.startswith("L")
            else f"{shown(term)} is not a weekday; W belongs in the day-of-month field"
        )
    if kind is not DAY:
        raise parsed.refuse("L and W stand only in the day fields")
    if term in ("L", "LW"):
        parsed.last_day_offsets |= {0} if term == "L" else set()
        parsed.last_workday |= term == "LW"
    elif term.startswith("L-"):
        parsed.last_day_offsets.add(_offset_from_last(parsed, term))
    elif term.endswith("W"):
        parsed.nearest_workdays.add(_value(parsed, term[:-1]))
    else:
        raise parsed.refuse(f"{shown(term)}: a number before L is a weekday and belongs in the weekday field")
    return True


def _offset_from_last(parsed: ParsedField, term: str) -> int:
    digits = term[2:].lstrip("0")
    if not _NUMBER.fullmatch(term[2:]) or not digits:
        raise parsed.refuse(f"{shown(term)}: after L- comes a number of days, 1 to 30; for the last day write L")
    if len(digits) > 2 or int(digits) > 30:
        raise parsed.refuse(
            f"{shown(term)} never fires: no month has a day {digits[:9]} days before its last; use 1 to 30"
        )
    return int(digits)


def _add_term(parsed: ParsedField, term: str) -> None:
    kind = parsed.kind
    base, slash, step_text = term.partition("/")
    if slash and not base:
        raise parsed.refuse(f"{shown(term)} has no start before the /; write */{step_text}")
    if base == "R" or base.startswith("R("):
        raise parsed.refuse(
            "R draws a new value at every parse, so that every node would fire at another time; write H"
        )
    step = _step(parsed, base, step_text) if slash else 1
    if hashed := _HASH.fullmatch(base):
        low, high = _hash_range(parsed, hashed["range"])
        start = low + _hash_of(parsed.hash_seed, kind) % (min(step, high - low + 1) if slash else high - low + 1)
        parsed.uses_hash = True
        parsed.values |= sum(1 << value for value in range(start, high + 1 if slash else start + 1, step))
        return
    if base == "*":
        low, high = kind.low, kind.high
    elif spread := _RANGE.fullmatch(base):
        low, high = _range(parsed, spread["low"], spread["high"])
    else:
        low = high = _value(parsed, base)
        if slash:
            if kind is WEEKDAY:
                raise parsed.refuse(f"{shown(term)}: a step after one weekday has no clear end; write {low}-6/{step}")
            high = kind.high
    parsed.values |= sum(1 << value for value in range(low, high + 1, step))


def _step(parsed: ParsedField, base: str, text: str) -> int:
    kind = parsed.kind
    if not _NUMBER.fullmatch(text):
        raise parsed.refuse(f"the step {shown(text)} is not a whole number of 1 or more")
    digits = text.lstrip("0")
    if not digits:
        raise parsed.refuse("a step of 0 never gets anywhere; use 1 or more")
    if len(digits) > 9 or int(digits) > kind.size:
        low, high = kind.low, kind.hash_high if kind is WEEKDAY else kind.high
        fires = f"would fire only at {low}" if base == "*" else "would fire only once in it"
        unit = {"second": "s", "minute": "m", "hour": "h"}.get(kind.name, "")
        advice = f"; for every {digits[:9]} {kind.name}s use 'every: {digits[:9]}{unit}'" if unit else ""
        raise parsed.refuse(f"step {digits[:9]} is larger than the field ({low}-{high}) and {fires}{advice}")
    return int(digits)


def _range(parsed: ParsedField, low_text: str, high_text: str) -> tuple[int, int]:
    kind = parsed.kind
    low, high = _value(parsed, low_text), _value(parsed, high_text)
    if low > high:
        if kind is WEEKDAY:
            wrapped = (
                [kind.show(value) for value in [*range(low, 7), *range(high + 1)]]
                if low < 7
                else [kind.show(value) for value in [0, *range(1, high + 1)]]
            )
            instead = "*" if len(wrapped) >= 7 else ",".join(wrapped)
        else:
            parts = ((low, kind.high), (kind.low, high))
            instead = ",".join(kind.show(a) if a == b else f"{kind.show(a)}-{kind.show(b)}" for a, b in parts)
        raise parsed.refuse(f"range {shown(f'{low_text}-{high_text}')} runs backwards; write {instead}")
    return low, high


def _hash_range(parsed: ParsedField, text: str | None) -> tuple[int, int]:
    if text is None:
        return parsed.kind.low, parsed.kind.hash_high
    spread = _RANGE.fullmatch(text)
    if spread is None:
        raise parsed.refuse(f"H({text[:20]}) is not understood; write a range in the brackets, such as H(0-29)")
    return _range(parsed, spread["low"], spread["high"])


def _hash_of(seed: str, kind: FieldKind) -> int:
    """Spread by seed and field, for ever the same: changing it would move every H job (TICK_ENGINE_VERSION)."""
    digest = hashlib.sha256(f"{kind.name}\0{seed}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big")


def _is_value(kind: FieldKind, text: str) -> bool:
    return text in kind.names or bool(_NUMBER.fullmatch(text))


def _value(parsed: ParsedField, text: str) -> int:
    kind = parsed.kind
    if text in kind.names:
        return kind.names.index(text) + kind.low
    if not _NUMBER.fullmatch(text):
        raise parsed.refuse(_why_not_a_value(kind, text))
    digits = text.lstrip("0") or "0"
    if len(digits) > 9 or not kind.low <= int(digits) <= kind.high:
        midnight = "; midnight is hour 0" if kind is HOUR and digits == "24" else ""
        sunday = ", of which 0 and 7 are Sunday" if kind is WEEKDAY else ""
        raise parsed.refuse(f"{shown(text)} is outside {kind.low}-{kind.high}{midnight}{sunday}")
    return int(digits)


def _why_not_a_value(kind: FieldKind, text: str) -> str:
    if text in ("", "-") or text.startswith("-") or text.endswith("-"):
        return f"{shown(text)} is a range without both ends; write them, such as {kind.low}-{kind.high}"
    if re.fullmatch(r"\*[0-9]+|[0-9]+\*", text):
        return f"{shown(text)} glues a number to the star; write */{text.strip('*')} for every {text.strip('*')}th"
    if "?" in text:
        return "? stands alone, in one of the two day fields"
    if "/" in text:
        return f"{shown(text)} has more than one step"
    for other in (MONTH, WEEKDAY):
        if text in other.names and kind is not other:
            return f"{text} is a {other.name} and belongs in the {other.name} field"
    allowed = f"{kind.low}-{kind.high}" + (f" or {kind.names[0]}-{kind.names[-1]}" if kind.names else "")
    return f"{shown(text)} is not understood; allowed are {allowed}, *, lists, ranges, steps and H"
