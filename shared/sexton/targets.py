"""What a job runs: its target, and the JSON in which revisions keep it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
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


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """One request. Texts may hold ``${secret:NAME}``, which a worker resolves and nobody stores; ``body`` is a template
    of the run's context. ``expect``: status codes that count as success; ``redirects``: same-host, all or none."""

    url: str
    method: str = "POST"
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    expect: tuple[int, ...] = (200, 202, 204)
    expect_body: str | None = None
    timeout: timedelta = timedelta(seconds=30)
    redirects: str = "same-host"


@dataclass(frozen=True, slots=True)
class CeleryTarget:
    """A task of a Celery deployment, sent to its broker; ``wait``: the run lasts until the task has ended, which
    ``backend`` tells; None: the broker keeps results too."""

    broker: str
    task: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    queue: str = "celery"
    wait: bool = False
    backend: str | None = None


Target = CommandTarget | ShellTarget | PythonTarget | HttpTarget | CeleryTarget


def target_to_json(target: Target) -> dict[str, Any]:
    """A target as JSON values."""
    match target:
        case CommandTarget(argv):
            return {"command": list(argv)}
        case ShellTarget(script):
            return {"shell": script}
        case PythonTarget(reference, args, kwargs):
            return {"python": reference, "args": list(args), "kwargs": kwargs}
        case HttpTarget():
            return {
                "http": target.url,
                "method": target.method,
                "headers": target.headers,
                "body": target.body,
                "expect": list(target.expect),
                "expect_body": target.expect_body,
                "timeout_ms": target.timeout // timedelta(milliseconds=1),
                "redirects": target.redirects,
            }
        case CeleryTarget():
            return {
                "celery": target.task,
                "broker": target.broker,
                "args": list(target.args),
                "kwargs": target.kwargs,
                "queue": target.queue,
                "wait": target.wait,
                "backend": target.backend,
            }


def target_from_json(data: dict[str, Any]) -> Target:
    """The target that ``target_to_json`` wrote."""
    if "command" in data:
        return CommandTarget(tuple(data["command"]))
    if "shell" in data:
        return ShellTarget(data["shell"])
    if "http" in data:
        return HttpTarget(
            url=data["http"],
            method=data["method"],
            headers=data["headers"],
            body=data["body"],
            expect=tuple(data["expect"]),
            expect_body=data["expect_body"],
            timeout=timedelta(milliseconds=data["timeout_ms"]),
            redirects=data["redirects"],
        )
    if "celery" in data:
        return CeleryTarget(
            broker=data["broker"],
            task=data["celery"],
            args=tuple(data["args"]),
            kwargs=data["kwargs"],
            queue=data["queue"],
            wait=data["wait"],
            backend=data.get("backend"),
        )
    return PythonTarget(data["python"], tuple(data["args"]), data["kwargs"])
