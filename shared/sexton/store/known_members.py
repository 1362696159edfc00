"""Words of the ledger that this release may not know, because a newer one wrote them.

A reader for people tells such a word as it is, and everything else beside it. What acts on the ledger does not read by
this: there an unknown word is an error.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from functools import lru_cache
from typing import Any, TypeVar

Member = TypeVar("Member", bound=StrEnum | IntEnum)

_LONGEST = 40


def member_of(kind: type[Member], value: str | int) -> Member:
    """The member of this value; for a value that has none one that is like no other, called ``unknown: VALUE``."""
    of_kind: Any = kind
    found: Member = _member_of(of_kind, value)
    return found


@lru_cache(maxsize=256)
def _member_of(kind: Any, value: str | int) -> Any:
    try:
        return kind(value)
    except ValueError:
        return _unknown(kind, value)


def _unknown(kind: Any, value: str | int) -> Any:
    word = "".join(letter if letter.isprintable() else "?" for letter in str(value))
    told = f"unknown: {word if len(word) <= _LONGEST else word[:_LONGEST] + '...'}"
    is_text = issubclass(kind, str)
    made = str.__new__(kind, told) if is_text else int.__new__(kind, value)
    made._name_, made._value_ = told, told if is_text else value  # as Enum names its members
    return made
