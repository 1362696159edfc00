"""Single TOML values: a token of the text to a scalar, or to what is wrong with it.

What a token means is tomllib's word (its escapes, its dates, its numbers); only the plain majority is read without it.
"""

from __future__ import annotations

import re
import tomllib
from datetime import date, datetime, time
from functools import lru_cache

_SIMPLE_TEXT = re.compile(r'"[^"\\\x00-\x08\x0a-\x1f\x7f]*"')
_SIMPLE_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]{0,18})")
_LONGEST_NUMBER = 100
_WORDS = {"yes": "true", "on": "true", "no": "false", "off": "false"}
_NULLS = ("null", "nil", "none", "~")
_CRON = re.compile(r"@[a-z]+|[0-9*/,H?()-]+(?:[ \t]+\S+){4,5}")


def text_of(token: str) -> str:
    """The text of a string token, quotes of any kind included. Raises ValueError with tomllib's reason."""
    if _SIMPLE_TEXT.fullmatch(token):
        return token[1:-1]
    return str(_value_of(token))


def scalar_of(token: str) -> tuple[str, bool, str]:
    """(text, is_plain, typed) of an unquoted token, as ``Scalar`` wants them.

    Raises ValueError with the fault and what to write instead.
    """
    if _SIMPLE_WHOLE.fullmatch(token):
        return str(int(token)), True, ""
    if token in ("true", "false"):
        return token, True, "a TOML boolean"
    if len(token) > _LONGEST_NUMBER and token.replace("_", "").isalnum():
        raise ValueError("is longer than any number a job needs; quote it if it is a text")
    try:
        value = _value_of(token)
    except ValueError:
        raise ValueError(_why_unreadable(token)) from None
    return written_scalar(value, "TOML")


def written_scalar(value: object, format_name: str) -> tuple[str, bool, str]:
    """(text, is_plain, typed) of a value that the format ``format_name`` typed itself. Raises TypeError for others."""
    match value:
        case bool():
            return ("true" if value else "false"), True, f"a {format_name} boolean"
        case int():
            return (str(value), True, "") if value.bit_length() < 4_096 else (f"{value:#x}"[:40], True, "a huge number")
        case float():
            return _written_number(value)
        case datetime():
            return value.isoformat().replace("+00:00", "Z"), False, f"a {format_name} date and time"
        case date():
            return value.isoformat(), False, f"a {format_name} date"
        case time():
            return value.isoformat(), False, f"a {format_name} time"
    raise TypeError(type(value).__name__)


def _written_number(value: float) -> tuple[str, bool, str]:
    text = repr(value)
    if not text.strip("+-").replace(".", "").replace("e", "").replace("-", "").replace("+", "").isdigit():
        return text, True, "not a number that can be counted with"  # nan and the infinities
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")
    return text, True, ""


@lru_cache(maxsize=4096)
def _value_of(token: str) -> object:
    try:
        return tomllib.loads(f"v = {token}")["v"]
    except tomllib.TOMLDecodeError as error:
        raise ValueError(str(error).partition(" (at ")[0]) from None


def _why_unreadable(token: str) -> str:
    word = token.lower()
    if word in _NULLS:
        return "is not TOML, which has no null; remove the key"
    if word in _WORDS:
        return f"is not true or false; write {_WORDS[word]}, or quote it if it is a text"
    if word in ("true", "false"):
        return f"is not TOML; write {word} in small letters"
    if re.fullmatch(r"[+-]?0[0-9_]+", token):
        return "has a leading zero, which TOML does not have; write it without"
    if re.fullmatch(r"\d{4}-\d\d?-\d\d?([Tt ].*)?", token):
        return "is no date and time of the calendar; write e.g. 2026-12-24T18:00:00+01:00"
    if re.fullmatch(r"\d?\d:\d\d(:\d\d)?", token):
        return f'is no time to TOML; quote it: "{token}"'
    if re.fullmatch(r"-?\.[0-9]+|-?[0-9]+\.", token):
        return "is not a number to TOML; write digits before and after the point"
    if token.startswith("!") or token.startswith(("&", "<<")):
        return "is YAML, not TOML; write the value out"
    what = "quote the schedule" if _CRON.fullmatch(token) else "quote the value"
    return f"is not TOML; {what}: {quoted(token)}"


def quoted(text: str) -> str:
    """``text`` as a TOML string on one line."""
    if '"' not in text and "\\" not in text:
        return f'"{text}"'
    if "'" not in text:
        return f"'{text}'"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
