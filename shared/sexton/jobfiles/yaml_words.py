"""What YAML readers take an unquoted text for, when it is not a text.

YAML 1.1 and 1.2 disagree about ``no``, ``022`` and ``12:30``; so do the programs that a job file passes through. An
unquoted text that any of them takes for something else is therefore never taken for a text here: the author is asked
to quote it.
"""

from __future__ import annotations

import re

from sexton.jobfiles.nodes import Scalar

_BOOLEANS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false"})
_NULLS = frozenset({"", "~", "null"})
_MARKS = frozenset({"=", "<<"})  # the default value and the merge key of YAML 1.1
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_OTHER_WHOLE = re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|[0-9][0-9_]*)")
_FLOAT = re.compile(
    r"[-+]?([0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*|[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+)([eE][-+]?[0-9]+)?"
)
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?")


def why_not_text(plain: str) -> str | None:
    """Why an unquoted scalar is not safely a text, and what to write; None where it is one."""
    word = plain.lower()
    if plain[:1].isalpha() and word not in _BOOLEANS and word not in _NULLS:
        return None
    if word in _NULLS:
        return "is empty; write a value" if not plain else f"means 'nothing' in YAML; quote it: '{plain}'"
    if word in _BOOLEANS:
        return f"is true or false to YAML readers; quote it: '{plain}'"
    if plain in _MARKS:
        return f"is a mark of its own in YAML 1.1; quote it: '{plain}'"
    if _BASE_60.fullmatch(plain):
        return f"is the number {_base_60(plain)} to YAML readers (base 60); quote it: '{plain}'"
    if _WHOLE.fullmatch(plain) or _OTHER_WHOLE.fullmatch(plain) or _FLOAT.fullmatch(plain):
        return f"is a number; quote it to make it a text: '{plain}'"
    if _INFINITE.fullmatch(plain):
        return f"is a number; quote it to make it a text: '{plain}'"
    if _DATE.fullmatch(plain):
        return f"is a date to YAML readers; quote it: '{plain}'"
    return None


def why_scalar_not_text(scalar: Scalar) -> str | None:
    """The same for a scalar of any format; None for what stands in quotes."""
    if scalar.typed:
        remedy = "write a str" if "Python" in scalar.typed else f"write it in quotes: '{scalar.text}'"
        return f"is {scalar.typed}, not a text; {remedy}"
    return why_not_text(scalar.text) if scalar.is_plain else None


def whole_number(plain: str) -> int | None:
    """The whole number in decimal digits that an unquoted scalar is; None for all else, ``022`` and ``1_000`` too."""
    if _WHOLE.fullmatch(plain) and len(plain) <= 20:
        return int(plain)
    return None


def has_leading_zero(plain: str) -> bool:
    return re.fullmatch(r"[-+]?0[0-9_]+", plain) is not None


def number(plain: str) -> int | float | None:
    """The decimal number that an unquoted scalar is."""
    if (whole := whole_number(plain)) is not None:
        return whole
    if re.fullmatch(r"[-+]?(0|[1-9][0-9]*)\.[0-9]+([eE][-+]?[0-9]{1,3})?", plain) and len(plain) <= 40:
        return float(plain)
    return None


def _base_60(plain: str) -> str:
    total = 0.0
    for part in plain.lstrip("+-").replace("_", "").split(":"):
        total = total * 60 + float(part or 0)
    return f"{'-' if plain.startswith('-') else ''}{total:g}"
