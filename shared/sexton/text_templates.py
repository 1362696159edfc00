"""Texts of a job with gaps in them, which a worker fills when a run begins.

    ${secret:NAME}                              in values of env, in a broker's address, and in requests: a secret
    ${job} ${tick} ${attempt} ${token} ${deadline} ${claim}      in requests (*templates*): what the run is told

In a template ``$${`` is a literal ``${``, and a gap that is none of these is a fault; elsewhere only ``${secret:`` is
looked at. What fills a gap is never looked at again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

PLACEHOLDERS = ("job", "tick", "attempt", "token", "deadline", "claim")
SECRET = "secret:"  # noqa: S105 - the beginning of a gap, no secret

_SECRET_GAP = re.compile(r"\$\{(?P<name>secret:[^}]*)(?P<end>\}?)")
_ANY_GAP = re.compile(r"(?P<literal>\$\$\{)|\$\{(?P<name>[^}]*)(?P<end>\}?)")
_SECRET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LITERAL = "${"


@dataclass(frozen=True, slots=True)
class GapFault:
    """What is wrong with a text: the part of it, and why, as the end of a sentence."""

    part: str
    why: str


def first_fault(text: str, *, is_template: bool) -> GapFault | None:
    """The first gap that nothing could fill."""
    for match in _matches(text, is_template):
        name, is_closed = match["name"], bool(match["end"])
        if name.startswith(SECRET) and not is_closed:
            return GapFault(match[0], "has no closing brace; write ${secret:NAME}")
        if not is_closed:
            return GapFault(match[0], "has no closing brace; write $${ where ${ is meant literally")
        if name.startswith(SECRET):
            if not _SECRET_NAME.fullmatch(name[len(SECRET) :]):
                why = "is not a secret's name (letters, digits, '.', '_' and '-'); write ${secret:NAME}"
                return GapFault(name[len(SECRET) :], why)
        elif name not in PLACEHOLDERS:
            known = ", ".join(f"${{{one}}}" for one in PLACEHOLDERS)
            why = f"is nothing that a run is told; there are {known} and ${{secret:NAME}}, and $${{ is a literal ${{"
            return GapFault(match[0], why)
    return None


def secrets_in(*texts: str, is_template: bool) -> tuple[str, ...]:
    """The names of the secrets that these texts ask for, each once."""
    found = (match["name"] for text in texts for match in _matches(text, is_template))
    return tuple(dict.fromkeys(name[len(SECRET) :] for name in found if name.startswith(SECRET)))


def filled(text: str, value: Callable[[str, int], str], *, is_template: bool) -> str:
    """``text`` with ``value(name, position)`` in place of each gap, a secret's name as ``secret:NAME``."""

    def fill(match: re.Match[str]) -> str:
        if is_template and match["literal"]:
            return _LITERAL
        return value(match["name"], match.start())

    return (_ANY_GAP if is_template else _SECRET_GAP).sub(fill, text)


def _matches(text: str, is_template: bool) -> Iterator[re.Match[str]]:
    if _LITERAL not in text:
        return
    for match in (_ANY_GAP if is_template else _SECRET_GAP).finditer(text):
        if match["name"] is not None:
            yield match
