"""Names for jobs that had none: what a command runs; unique, and the same at every import of the same file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

LONGEST_NAME = 100
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_ENDS = frozenset({"&&", "||", ";", ";;", "|", "&", "(", ")", "{", "}", "$", "then", "do", "else", "fi", "done"})
_BEFORE_PROGRAMS = _ENDS | {"!", "if", "elif", "while", "until", "exec", "time", "eval"}
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
_GUARDS = frozenset({"[", "[[", "test", "cd", "export", "set", "umask", "ulimit", "source", ".", "true", "sleep"})
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
    words = _words(command)
    program, rest = _main_program(words)
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


def _words(command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        for word in lexer:
            words.append(word)
            if len(words) >= 200:
                break
    except ValueError:  # a quote that does not end: what was read before it names the job well enough
        return words or command.split()
    return words


def _main_program(words: list[str]) -> tuple[str, list[str]]:
    """The first program that is no guard and no wrapper, and its words."""
    best: tuple[str, list[str]] = ("", [])
    place = 0
    while place < len(words):
        start = _after_wrappers(words, place)
        if start >= len(words):
            break
        end = next((at for at in range(start, len(words)) if words[at] in _ENDS), len(words))
        program = words[start]
        if program and program not in _BEFORE_PROGRAMS:
            is_question = program in _GUARDS or (start > 0 and words[start - 1] == "-v")
            if not is_question:
                return program, words[start + 1 : end]
            if not best[0]:
                best = (program, words[start + 1 : end])
        place = max(end, start) + 1
    return best


def _after_wrappers(words: list[str], place: int) -> int:
    """Where the program that really works begins."""
    while place < len(words):
        word = words[place]
        name = word.rpartition("/")[2]
        if word in _BEFORE_PROGRAMS or _ASSIGNMENT.fullmatch(word):
            place += 1
        elif name in _WRAPPERS and place + 1 < len(words) and words[place + 1] not in _ENDS:
            with_value, own_words = _WRAPPERS[name]
            place += 1
            while place < len(words) and words[place].startswith("-") and words[place] != "-v":
                takes_value = len(words[place]) == 2 and words[place][1] in with_value
                place += 2 if takes_value else 1
            place += own_words
            if place < len(words) and words[place] == "-v":  # command -v PROGRAM asks, and runs nothing
                return place + 1
        else:
            return place
    return place


def _argument_slug(word: str) -> str:
    if word.startswith(("-", ">", "<", "2>", "1>", "$")) or _ASSIGNMENT.fullmatch(word) or word in _ENDS:
        return ""
    return slug_of(_SUFFIXES.sub("", word.rstrip("/").rpartition("/")[2]))[:40]
