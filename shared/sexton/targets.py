"""What a job runs: its target, and the JSON in which revisions keep it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class CommandTarget:
    """An argument vector, started without a shell."""

    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShellTarget:
    """A script for ``/bin/sh -c``."""

    script: str


@dataclass(frozen=True, slots=True)
class PythonTarget:
    """``module:function``, called with JSON values."""

    reference: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


Target = CommandTarget | ShellTarget | PythonTarget


def target_to_json(target: Target) -> dict[str, Any]:
    """A target as JSON values."""
    match target:
        case CommandTarget(argv):
            return {"command": list(argv)}
        case ShellTarget(script):
            return {"shell": script}
        case PythonTarget(reference, args, kwargs):
            return {"python": reference, "args": list(args), "kwargs": kwargs}


def target_from_json(data: dict[str, Any]) -> Target:
    """The target that ``target_to_json`` wrote."""
    if "command" in data:
        return CommandTarget(tuple(data["command"]))
    if "shell" in data:
        return ShellTarget(data["shell"])
    return PythonTarget(data["python"], tuple(data["args"]), data["kwargs"])
