"""A regular expression that every accepted cron expression matches, for editors: fields, numbers, names and steps.

It is made from the fields' own bounds and names (``cron_fields``). What it cannot say, the tick engine refuses: ranges
that run backwards, and days that never come.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from sexton.cron_expression import ALIAS_NAMES
from sexton.cron_fields import DAY, KINDS, WEEKDAY, FieldKind

_BLANK = r"[ \t]"
_LONGEST_OFFSET = 30
_NTH = "[1-5]"


def either_case(words: Iterable[str]) -> str:
    """A pattern of any of ``words`` without regard to case, for expressions that have no flag for it."""
    return "|".join("".join(f"[{c.upper()}{c.lower()}]" if c.isalpha() else c for c in word) for word in words)


@cache
def cron_pattern() -> str:
    """For a whole text of an expression, blanks around it included. ECMA and Python read it alike."""
    second, *others = (_field(kind) for kind in KINDS)
    five = f"{_BLANK}+".join(others)
    return f"^{_BLANK}*(?:(?:{second}{_BLANK}+)?{five}|{either_case(ALIAS_NAMES)}){_BLANK}*$"


def _field(kind: FieldKind) -> str:
    value = f"(?:{'|'.join([_number(kind.low, kind.high), *([either_case(kind.names)] if kind.names else [])])})"
    step = f"/{_number(1, kind.size)}"
    spread = rf"(?:\*|{value}-{value}|[Hh](?:\({value}-{value}\))?)(?:{step})?"
    single = value if kind is WEEKDAY else f"{value}(?:{step})?"
    terms = [spread, single]
    if kind is DAY:
        terms.append(f"[Ll](?:[Ww]|-{_number(1, _LONGEST_OFFSET)})?|{_number(kind.low, kind.high)}[Ww]")
    elif kind is WEEKDAY:
        terms.append(f"{value}(?:[Ll]|#{_NTH})")
    term = f"(?:{'|'.join(terms)})"
    listed = f"{term}(?:,{term})*"
    return rf"(?:\?|{listed})" if kind.is_day else listed


def _number(low: int, high: int) -> str:
    """A number from ``low`` to ``high`` (below 100), zeros in front allowed."""
    by_ten: dict[int, list[int]] = {}
    for number in range(low, high + 1):
        by_ten.setdefault(number // 10, []).append(number % 10)
    parts: dict[tuple[int, int], list[int]] = {}
    for ten, ones in by_ten.items():
        parts.setdefault((ones[0], ones[-1]), []).append(ten)
    alternatives = []
    for (first, last), tens in parts.items():
        digit = f"[{first}-{last}]" if first != last else str(first)
        leading = "".join(str(ten) for ten in tens if ten)
        alternatives += [f"[{leading}]{digit}"] if leading else []
        alternatives += [digit] if 0 in tens else []
    return f"0*(?:{'|'.join(alternatives)})"
