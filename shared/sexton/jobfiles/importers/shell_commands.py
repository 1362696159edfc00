"""A shell's command line taken apart, as far as a name or a remark needs it: simple commands, and what joins them.

Nothing is expanded: a substitution stays one word, as it is written. Redirections and comments are left out. What does
not end (a quote, a substitution) ends with the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_OPERATOR = re.compile(r"&&|\|\||\|&|;;|[;&|()\n]")
_REDIRECTION = re.compile(r"(?:[0-9]*(?:<<<|<<-?|<>|>>|>\||[<>])&?|&>>?)[ \t]*")
BEFORE_PROGRAMS = frozenset({"!", "if", "elif", "while", "until", "then", "do", "else", "{", "exec", "time", "eval"})
# Programs that start another one: their options that take a value, and how many words of their own they have.
_WRAPPERS: dict[str, tuple[str, int]] = {
    "chronic": ("", 0),
    "command": ("", 0),
    "cronic": ("", 0),
    "doas": ("u", 0),
    "env": ("uCS", 0),
    "flock": ("wE", 1),
    "ionice": ("cn", 0),
    "lockf": ("t", 1),
    "nice": ("n", 0),
    "nohup": ("", 0),
    "run-one": ("", 0),
    "setsid": ("", 0),
    "stdbuf": ("oei", 0),
    "sudo": ("ugpCDhrt", 0),
    "timeout": ("ks", 1),
}
# Programs whose -c is a command line.
_SHELLS = frozenset({"bash", "dash", "ksh", "runuser", "sh", "su", "zsh"})


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A program with its arguments, quotes resolved; ``after``: the operator that follows, empty at the end."""

    words: tuple[str, ...]
    after: str = ""


def commands_of(text: str) -> list[SimpleCommand]:
    """The simple commands of a command line in their order; parentheses are passed over."""
    commands: list[SimpleCommand] = []
    words: list[str] = []
    place = 0
    while place < len(text):
        if text[place] in " \t\r":
            place += 1
        elif text[place] == "#":
            end = text.find("\n", place)
            place = len(text) if end < 0 else end
        elif redirection := _REDIRECTION.match(text, place):
            _, place = _word(text, redirection.end())
        elif operator := _OPERATOR.match(text, place):
            place = operator.end()
            joined = "" if operator[0] in "()" else operator[0]
            if words:
                commands.append(SimpleCommand(tuple(words), joined))
                words = []
            elif joined and commands:
                commands[-1] = replace(commands[-1], after=joined)
        else:
            word, place = _word(text, place)
            words.append(word)
    return [*commands, SimpleCommand(tuple(words))] if words else commands


def _word(text: str, place: int) -> tuple[str, int]:
    """The word that begins at ``place``, and where it ends."""
    word: list[str] = []
    while place < len(text):
        one = text[place]
        if one in " \t\r\n;&|()<>":
            break
        if one == "\\":
            word.append(text[place + 1 : place + 2])
            place += 2
        elif one == "'":
            end = text.find("'", place + 1)
            end = len(text) if end < 0 else end
            word.append(text[place + 1 : end])
            place = end + 1
        elif one == '"':
            quoted, place = _double_quoted(text, place + 1)
            word.append(quoted)
        elif text.startswith(("$(", "${", "`"), place):
            end = _substitution_end(text, place)
            word.append(text[place:end])
            place = end
        else:
            word.append(one)
            place += 1
    return "".join(word), place


def _double_quoted(text: str, place: int) -> tuple[str, int]:
    quoted: list[str] = []
    while place < len(text) and text[place] != '"':
        if text[place] == "\\":
            quoted.append(text[place + 1 : place + 2])
            place += 2
        elif text.startswith(("$(", "${", "`"), place):
            end = _substitution_end(text, place)
            quoted.append(text[place:end])
            place = end
        else:
            quoted.append(text[place])
            place += 1
    return "".join(quoted), place + 1


def _substitution_end(text: str, place: int) -> int:
    """Where the `$(...)`, `${...}` or `...` in backquotes ends that begins at ``place``."""
    if text[place] == "`":
        end = text.find("`", place + 1)
        return len(text) if end < 0 else end + 1
    opening = text[place + 1]
    closing = {"(": ")", "{": "}"}[opening]
    depth = 0
    for at in range(place + 1, len(text)):
        if text[at] in (opening, closing):
            depth += 1 if text[at] == opening else -1
            if depth == 0:
                return at + 1
    return len(text)


def unwrapped(words: Sequence[str]) -> list[str]:
    """The words of the program that really works: without assignments, `sudo`, `nice -n 19` and their like."""
    place = 0
    while place < len(words):
        name = words[place].rpartition("/")[2]
        if words[place] in BEFORE_PROGRAMS or _ASSIGNMENT.fullmatch(words[place]):
            place += 1
        elif name in _WRAPPERS and place + 1 < len(words) and words[place + 1] != "-v":
            with_value, own_words = _WRAPPERS[name]
            place += 1
            while place < len(words) and words[place].startswith("-"):
                place += 2 if len(words[place]) == 2 and words[place][1] in with_value else 1
            place += own_words
        else:
            break
    return list(words[place:])


def inner_command_line(words: Sequence[str]) -> str | None:
    """The command line that a shell, or what is left of a wrapper, is given by -c; or that a substitution holds."""
    if not words:
        return None
    name = words[0].rpartition("/")[2]
    if name in _SHELLS or words[0] == "-c":
        for at, word in enumerate(words[:-1]):
            if re.fullmatch(r"-[a-z]*c|--command", word):
                return words[at + 1]
            if at and name not in ("su", "runuser") and not word.startswith("-"):
                break  # a script, and its own arguments
    if words[0].startswith("`"):
        return words[0].strip("`")
    if words[0].startswith("$(") and not words[0].startswith("$(("):
        return words[0][2:].removesuffix(")")
    return None
