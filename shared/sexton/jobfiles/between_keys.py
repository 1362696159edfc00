"""What is wrong between the keys of one job, though each alone is right: which keys go with which target, and which
promises contradict each other.

Only what the job itself writes is refused for its target: `defaults` hold for the jobs that can use them. A
contradiction of which one side comes from `defaults` is told at the side that the job wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Mapping as Values
from dataclasses import dataclass
from typing import Any

from sexton.claims import OnLeaseLost, OnWorkerLost, Overlap
from sexton.job_rules import RetryRules
from sexton.jobfiles.key_tables import place_of
from sexton.jobfiles.nodes import Mapping, Node, Scalar, Sequence
from sexton.jobfiles.problems import FileProblems, shown
from sexton.jobfiles.remedies import entry, node_from
from sexton.jobs import JobDefinition

TARGETS = ("command", "shell", "python", "http", "celery")
SENT_TARGETS = ("http", "celery")
PROCESS_KEYS: Values[str, object] = {"env": {}, "cwd": None, "stdin": None, "success_codes": (0,), "limits": {}}
"""What only a process can have, with what it is where nothing is said."""

_INSTEAD = {
    ("http", "env"): "write what the request needs into headers, url or body",
    ("http", "stdin"): "write what is sent as http: {body: ...}",
    ("http", "success_codes"): "write the status codes that count as success as http: {expect: [...]}",
    ("http", "limits"): "max_runtime and the timeout in http limit a request",
    ("celery", "env"): "the task runs in its Celery worker's environment; hand it values by kwargs",
    ("celery", "stdin"): "hand the task its input by args or kwargs",
    ("celery", "limits"): "limits of a task belong to its Celery worker",
}


_SECRET = re.compile(r"\$\{secret:(?![0-9]+\})[^}]*\}")  # digits: a part of a variable, in bash
_FILLED = "a secret is filled into values of env, into http and into broker and backend of celery: let env carry it"


@dataclass(frozen=True, slots=True)
class JobNode:
    """One job as it stands in its file."""

    name: str
    node: Mapping


def check_targets(job: JobNode, own: Values[str, Any], problems: FileProblems) -> None:
    """Exactly one target, and beside it only keys that it can use."""
    given = [name for name in TARGETS if name in own]
    if not given:
        problems.add(job.node, f"the job {job.name} has no target; write one of {', '.join(TARGETS)}")
        return
    if len(given) > 1:
        second = job.node.entries[given[1]][0]
        problems.add(second, f"the job {job.name} has the targets {' and '.join(given)}; keep exactly one")
    if "python" not in given and "celery" not in given:
        for name in ("args", "kwargs"):
            if name not in own:
                continue
            place = job.node.entries[name][0]
            problems.add(
                place, f"{name} goes with 'python' and 'celery' only; put what '{given[0]}' needs into '{given[0]}'"
            )
    if len(given) == 1 and given[0] in SENT_TARGETS:
        _check_process_keys(job, own, given[0], problems)


def check_unfilled(job: JobNode, problems: FileProblems) -> None:
    """``${secret:NAME}`` where nobody fills it: the run would take it for the secret itself."""
    for name in ("command", "shell", "args", "kwargs", "cwd", "stdin"):
        if name in job.node.entries:
            for scalar in _texts_in(job.node.entries[name][1]):
                if found := _SECRET.search(scalar.text):
                    problems.add(scalar, f"{name}: {shown(found[0])} is not filled here; {_FILLED}")


def _texts_in(node: Node) -> Iterator[Scalar]:
    match node:
        case Scalar():
            yield node
        case Sequence():
            for item in node.items:
                yield from _texts_in(item)
        case Mapping():
            for _, value in node.entries.values():
                yield from _texts_in(value)


def _check_process_keys(job: JobNode, own: Values[str, Any], target: str, problems: FileProblems) -> None:
    for name, nothing in PROCESS_KEYS.items():
        if own.get(name, nothing) == nothing:
            continue
        instead = _INSTEAD.get((target, name))
        what = f"{name} is for processes (command, shell, python), and {target!r} starts none"
        problems.add(job.node.entries[name][0], f"{what}; {instead or 'remove it'}")


def check_request(job: JobNode, request: Values[str, Any], problems: FileProblems) -> None:
    """What is wrong between the keys of `http`, each of which was read."""
    node = job.node.entries["http"][1]
    if not isinstance(node, Mapping):
        return
    if request.get("method") == "HEAD" and request.get("expect_body") is not None:
        place = place_of(node, "expect_body")
        problems.add(
            place, "http.expect_body: the answer to HEAD has no body; write method: GET, or remove expect_body"
        )
    first: dict[str, str] = {}
    for name in request.get("headers", {}):
        if first.setdefault(name.lower(), name) != name:
            headers = node.entries["headers"][1]
            place = headers.entries[name][0] if isinstance(headers, Mapping) else headers
            problems.add(
                place, f"http.headers: {shown(name)} is the same header as {first[name.lower()]}; keep one of them"
            )


def without_idle_defaults(values: Values[str, Any], own: Values[str, Any]) -> Values[str, Any]:
    """The values of a job without those from `defaults` that are for jobs of another kind."""
    idle = set(PROCESS_KEYS) if any(name in values for name in SENT_TARGETS) else set()
    if values.get("overlap") is not Overlap.QUEUE:
        idle.add("queue_limit")
    idle = (idle & values.keys()) - own.keys()
    return {name: value for name, value in values.items() if name not in idle} if idle else values


def check_promises(job: JobNode, own: Values[str, Any], definition: JobDefinition, problems: FileProblems) -> None:
    """What a job promises of its runs, taken together."""
    _check_retries(job, definition.retries, problems)
    _check_allow(job, definition, problems)
    if own.get("on_lease_lost") is OnLeaseLost.CONTINUE:
        _check_continue(job, definition, problems)


def _check_retries(job: JobNode, retries: RetryRules, problems: FileProblems) -> None:
    if retries.max and retries.max_delay < retries.delay:
        place = place_of(job.node, "retries")
        problems.add(place, "retries: max_delay is shorter than delay; raise max_delay or lower delay")


def _check_allow(job: JobNode, definition: JobDefinition, problems: FileProblems) -> None:
    key = definition.concurrency_key
    if key is None or definition.overlap is not Overlap.ALLOW:
        return
    queue = _written("overlap", "queue", problems)
    why = f"overlap: allow lets any number run, and concurrency_key {shown(key.key)} lets {key.limit}"
    if "overlap" not in job.node.entries:
        why += f"; the job has its overlap from defaults: write {queue} here"
    else:
        why += f"; write {queue}, or {_written('overlap', 'skip', problems)}, or remove the concurrency_key"
    problems.add(place_of(job.node, "overlap", "concurrency_key"), why)


def _check_continue(job: JobNode, definition: JobDefinition, problems: FileProblems) -> None:
    """`continue`, where the job promises what only holds if a run that lost its lease is ended."""
    fail = definition.on_worker_lost is OnWorkerLost.FAIL
    reasons = {
        "on_worker_lost": "on_worker_lost: fail" if fail else "",
        "overlap": "overlap: replace" if definition.overlap is Overlap.REPLACE else "",
        "concurrency_key": "a concurrency_key" if definition.concurrency_key is not None else "",
    }
    given = {name: reason for name, reason in reasons.items() if reason}
    if not given:
        return
    inherited = "" if any(name in job.node.entries for name in given) else " (from defaults)"
    problems.add(
        place_of(job.node, "on_lease_lost"),
        f"on_lease_lost: continue contradicts {' and '.join(given.values())}{inherited}, under which a run ends with "
        f"its lease; remove it, or write {_written('on_lease_lost', 'kill', problems)}",
    )


def _written(key: str, value: str, problems: FileProblems) -> str:
    node: Node = node_from(value)
    return entry(key, node, problems)
