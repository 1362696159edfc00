"""``ExecStart=`` of systemd.service(5): prefixes, words and variables, as an argument vector or as shell text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sexton.jobfiles.importers.findings import shown
from sexton.jobfiles.importers.shell_words import Part, Variable, as_argument, as_text
from sexton.jobfiles.importers.unit_files import words_of

_VARIABLE = re.compile(r"\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_WHOLE_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_PREFIXES = "@-:+!|"


class NotCommand(ValueError):
    """Why a line is no command."""


@dataclass(frozen=True, slots=True)
class ExecLine:
    """One program with its arguments. ``may_fail``: its failure is no failure of the service."""

    words: tuple[tuple[Part, ...], ...]
    may_fail: bool
    remarks: tuple[str, ...] = ()


def read_exec(text: str) -> list[ExecLine]:
    """The commands of one line (``;`` separates them). Raises NotCommand and NotWords."""
    commands: list[list[str]] = [[]]
    for word in words_of(text):
        if word == ";":
            commands.append([])
        else:
            commands[-1].append(";" if word == "\\;" else word)
    read = [_command(words) for words in commands if words]
    if not read:
        raise NotCommand("is empty; write a program and its arguments")
    return read


def argv_of(lines: Sequence[ExecLine]) -> list[str] | None:
    """The argument vector of a single command without variables; else None."""
    if len(lines) != 1 or lines[0].may_fail:
        return None
    texts = [as_text(word) for word in lines[0].words]
    argv = [text for text in texts if text is not None]
    return argv if len(argv) == len(texts) else None


def script_of(lines: Sequence[ExecLine]) -> str:
    """Shell text that runs all of them, each when the one before has succeeded (or may fail)."""
    commands = []
    for line in lines:
        command = " ".join(as_argument(word) for word in line.words)
        commands.append(f"{{ {command} || true; }}" if line.may_fail else command)
    return " && ".join(commands)


def _command(words: list[str]) -> ExecLine:
    program = words[0].lstrip(_PREFIXES)
    prefixes = words[0][: len(words[0]) - len(program)]
    arguments = words[1:]
    remarks: list[str] = []
    if not program:
        raise NotCommand(f"{shown(' '.join(words))} names no program after its prefix")
    if "@" in prefixes:
        remarks.append(
            f"@ gives the program another name ({shown(arguments[0]) if arguments else 'none'}); it runs under its own"
        )
        arguments = arguments[1:]
    if "+" in prefixes or "!" in prefixes:
        remarks.append(f"{prefixes} runs this with full privileges; in Sexton it has those of the worker's user")
    if "|" in prefixes:
        remarks.append("| runs this in the user's shell; in Sexton it is started as it stands")
    if "-" in prefixes:
        remarks.append("- lets this command fail, which the shell's '|| true' does here")
    expands = ":" not in prefixes
    parts: list[tuple[Part, ...]] = [(program,)]
    parts += [_parts(argument) if expands else (argument,) for argument in arguments]
    if any(isinstance(part, Variable) for word in parts for part in word):
        remarks.append("systemd fills in $VARIABLES; a shell does it here, from env and the worker's environment")
    return ExecLine(tuple(parts), "-" in prefixes, tuple(remarks))


def _parts(argument: str) -> tuple[Part, ...]:
    if whole := _WHOLE_VARIABLE.fullmatch(argument):
        return (Variable(whole[1], splits=True),)
    parts: list[Part] = []
    end = 0
    for match in _VARIABLE.finditer(argument):
        if match.start() > end:
            parts.append(argument[end : match.start()])
        parts.append("$" if match[1] is None else Variable(match[1]))
        end = match.end()
    if end < len(argument) or not parts:
        parts.append(argument[end:])
    return tuple(parts)
