"""Commands whose exit code answers a question: crond never looked at it, and Sexton takes 1 for a failed run."""

from __future__ import annotations

import re

from sexton.jobfiles.importers.shell_commands import SimpleCommand, commands_of, inner_command_line, unwrapped

_QUESTIONS = frozenset(
    {"[", "[[", "test", "grep", "egrep", "fgrep", "zgrep", "rg", "cmp", "diff", "pgrep", "pidof", "which", "type"}
    | {"mountpoint", "getent", "expr", "hash"}
)
_ENDS_OF_BLOCKS = frozenset({"fi", "done", "esac"})
_DEEPEST = 5


def question_that_ends(text: str, depth: int = 0) -> str | None:
    """The program whose "no" is the exit code of the command line; None where no such answer gets through."""
    commands = commands_of(text)
    while commands and commands[-1].words == ("}",):
        commands.pop()
    if not commands or commands[-1].after == "&" or commands[-1].words[0] in _ENDS_OF_BLOCKS:
        return None
    found: str | None = None
    for place, command in enumerate(reversed(commands)):
        joined = command.after if place else ""
        if joined not in ("", "&&", "|", "|&"):
            break  # its answer goes no further: another one has the last word
        if joined in ("", "&&"):
            found = _question(command, depth) or found
    return found


def _question(command: SimpleCommand, depth: int) -> str | None:
    if command.words[0] in ("if", "elif", "while", "until"):
        return None
    words = unwrapped(command.words)
    name = words[0].rpartition("/")[2] if words else ""
    if name in _QUESTIONS or (name == "command" and "-v" in words):
        return name
    if name == "systemctl" and any(re.fullmatch(r"is-[a-z-]+", word) for word in words[1:]):
        return name
    inner = inner_command_line(words) if depth < _DEEPEST else None
    return None if inner is None or words[0].startswith(("$", "`")) else question_that_ends(inner, depth + 1)
