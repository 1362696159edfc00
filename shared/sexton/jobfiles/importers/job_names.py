"""Names for jobs that had none: what a command runs; unique, and the same at every import of the same file."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sexton.jobfiles.importers.shell_commands import commands_of, inner_command_line, unwrapped

LONGEST_NAME = 100
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")
# Programs that run a script: it is the script that works.
_RUNNERS = frozenset(
    {"bash", "dash", "java", "ksh", "node", "perl", "php", "python", "python2", "python3", "ruby", "sh", "zsh"}
)
# Programs of which only the argument says what is done.
_INTERPRETERS = frozenset(
    {"artisan", "bash", "console", "dash", "docker", "drush", "git", "java", "kubectl", "ksh", "make", "manage.py"}
    | {"node", "npm", "perl", "php", "psql", "python", "python2", "python3", "rake", "rclone", "rsync", "ruby"}
    | {"run-parts", "sh", "ssh", "systemctl", "wp", "zsh"}
)
# What comes before the work.
_GUARDS = frozenset(
    {"[", "[[", "test", "cd", "export", "set", "umask", "ulimit", "source", ".", "true", "sleep", ":", "trap", "read"}
)
_QUESTIONS = frozenset({"if", "elif", "while", "until", "for", "case", "select"})
_ENDS = frozenset({"fi", "done", "esac", "}", "{"})
_LONGEST_READ, _DEEPEST = 10_000, 5
_SUFFIXES = re.compile(r"\.(sh|bash|py|pl|rb|php|js|bin|jar)$")


class NameGiver:
    """Gives each job a name that no other has, whatever the case."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}  # where to go on counting

    def give(self, candidates: Iterable[str]) -> str:
        """The first candidate that is free, else the last one with the first free number after it."""
        last = ""
        for candidate in candidates:
            last = self._fitted(candidate)
            if last and self._take(last):
                return last
        last = last or self._fitted("job")
        number = self._numbers.get(last.lower(), 1)
        while not self._take(last if number == 1 else f"{last[: LONGEST_NAME - 8]}-{number}"):
            number += 1
        self._numbers[last.lower()] = number + 1
        return last if number == 1 else f"{last[: LONGEST_NAME - 8]}-{number}"

    def _fitted(self, candidate: str) -> str:
        slug = slug_of(candidate)
        return slug_of(self._prefix + slug)[: LONGEST_NAME - 8] if slug else ""

    def _take(self, name: str) -> bool:
        if name.lower() in self._taken:
            return False
        self._taken.add(name.lower())
        return True


def slug_of(text: str) -> str:
    """What of ``text`` may stand in a name; empty where nothing may."""
    return _UNFIT.sub("-", text).strip("-._")[:LONGEST_NAME].strip("-._")


def names_for_command(command: str) -> list[str]:
    """Candidates for a shell command, the shortest first; its program, then with its first argument, then with two."""
    program, rest = _main_program(command)
    if program.rpartition("/")[2] in _RUNNERS:
        place = next((at for at, word in enumerate(rest) if not word.startswith("-")), None)
        if place is not None and _argument_slug(rest[place]):
            program, rest = rest[place], rest[place + 1 :]
    name = _SUFFIXES.sub("", program.rpartition("/")[2]) or "job"
    arguments = [_argument_slug(word) for word in rest]
    arguments = [one for one in arguments if one]
    names = [] if program.rpartition("/")[2] in _INTERPRETERS and arguments else [name]
    for count in (1, 2):
        if len(arguments) >= count:
            names.append("-".join([name, *arguments[:count]])[:60])
    return names or [name]


def _main_program(text: str, depth: int = 0) -> tuple[str, list[str]]:
    """The first program that is no guard and no wrapper, and its words; of guards alone, the first."""
    best: tuple[str, list[str]] = ("", [])
    for command in commands_of(text[:_LONGEST_READ]):
        words = unwrapped(command.words)
        if not words or words[0] in _ENDS:
            continue
        found = (words[0], words[1:])
        is_question = command.words[0] in _QUESTIONS or words[0] in _GUARDS or words[:2] == ["command", "-v"]
        if (inner := inner_command_line(words)) is not None and depth < _DEEPEST:
            found = _main_program(inner, depth + 1)
        if not is_question and found[0]:
            return found
        if not best[0]:
            best = found
    return best


def _argument_slug(word: str) -> str:
    if word.startswith(("-", "$", "`")) or _ASSIGNMENT.fullmatch(word):
        return ""
    return slug_of(_SUFFIXES.sub("", word.rstrip("/").rpartition("/")[2]))[:40]
