"""Argument vectors with variables in them, as shell text: for schedulers that fill variables in before they start."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variable:
    """The value of an environment variable. ``splits``: it may become several words, or none."""

    name: str
    splits: bool = False


Part = str | Variable


def as_argument(parts: Iterable[Part]) -> str:
    """One argument as a shell writes it: text as it is, variables filled in."""
    return "".join(_part(part) for part in parts) or "''"


def _part(part: Part) -> str:
    if isinstance(part, str):
        return shlex.quote(part) if part else ""
    return f"${{{part.name}}}" if part.splits else f'"${{{part.name}}}"'


def as_text(parts: Iterable[Part]) -> str | None:
    """The argument where it has no variables; else None."""
    listed = list(parts)
    return None if any(isinstance(part, Variable) for part in listed) else "".join(str(part) for part in listed)
