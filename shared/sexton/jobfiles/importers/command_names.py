"""What a shell command could be called: after the program that does its work, its folder, and its arguments."""

from __future__ import annotations

import re

from sexton.jobfiles.importers.job_names import slug_of
from sexton.jobfiles.importers.shell_commands import commands_of, inner_command_line, unwrapped

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
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
# Folders that say nothing about what is in them.
_ANYWHERE = frozenset(
    {"bin", "current", "etc", "home", "lib", "lib64", "libexec", "local", "opt", "root", "sbin", "script", "scripts"}
    | {"share", "srv", "tmp", "usr", "var", "www", ".", "..", "~", ""}
)


def names_for_command(command: str) -> list[str]:
    """Candidates, the shortest first: the program, with its folder, with an argument or two, with all its words."""
    program, rest, at = _main_program(command)
    if program.rpartition("/")[2] in _RUNNERS:
        place = next((at for at, word in enumerate(rest) if not word.startswith("-")), None)
        if place is not None and _argument_slug(rest[place]):
            program, rest = rest[place], rest[place + 1 :]
    name = _SUFFIXES.sub("", program.rpartition("/")[2]) or "job"
    arguments = [slug for word in rest if (slug := _argument_slug(word))]
    folder = _folder_slug(program, at)
    is_unspecific = program.rpartition("/")[2] in _INTERPRETERS and bool(arguments)
    names = [] if is_unspecific else [name]
    if is_unspecific:
        names.append(f"{name}-{arguments[0]}")
    if folder:
        names.append("-".join([folder, *(names or [name])[-1:]]))
    names += ["-".join([name, *arguments[:count]])[:60] for count in (1, 2) if len(arguments) >= count]
    everything = "-".join(slug for word in [name, *rest] if (slug := slug_of(word, _LONGEST_READ)))
    path = slug_of(_path(program, at).rpartition("/")[0])
    more = [everything, f"{folder}-{everything}", f"{path}-{name}", f"{path}-{everything}"]
    return names + more


def _path(program: str, at: str) -> str:
    return program if program.startswith("/") else f"{at}/{program}"


def _folder_slug(program: str, at: str) -> str:
    """The nearest folder of the program that says something; ``at``: where the command goes before it."""
    folders = [
        slug for folder in _path(program, at).split("/")[:-1] if folder not in _ANYWHERE and (slug := slug_of(folder))
    ]
    return folders[-1][:40] if folders else ""


def _main_program(text: str, at: str = "", depth: int = 0) -> tuple[str, list[str], str]:
    """The first program that is no guard and no wrapper, its words, and its folder; of guards alone, the first."""
    best: tuple[str, list[str], str] = ("", [], at)
    for command in commands_of(text[:_LONGEST_READ]):
        words = unwrapped(command.words)
        if not words or words[0] in _ENDS:
            continue
        if words[0] == "cd" and len(words) > 1:
            at = words[1]
        found = (words[0], words[1:], at)
        is_question = command.words[0] in _QUESTIONS or words[0] in _GUARDS or words[:2] == ["command", "-v"]
        if (inner := inner_command_line(words)) is not None and depth < _DEEPEST:
            found = _main_program(inner, at, depth + 1)
        if not is_question and found[0]:
            return found
        if not best[0]:
            best = found
    return best


def _argument_slug(word: str) -> str:
    if word.startswith(("-", "$", "`")) or _ASSIGNMENT.fullmatch(word):
        return ""
    return slug_of(_SUFFIXES.sub("", word.rstrip("/").rpartition("/")[2]))[:40]
