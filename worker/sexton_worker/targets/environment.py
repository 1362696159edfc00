"""The environment of a run: clean, the same wherever it runs, plus what the run should know of itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime

from sexton_worker.execution import RunOrder

WORKER_NAME = "SEXTON_WORKER"  # what the worker is called
# Of the worker's own environment a job sees only these: no credentials, no settings of Sexton's.
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", WORKER_NAME)
# What the interpreter of a Python job needs to find the same modules as the worker.
INHERITED_BY_PYTHON = (*INHERITED, "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "PYTHONUTF8", "PYTHONSAFEPATH")

TOKEN = "SEXTON_TOKEN"  # noqa: S105 - a variable's name, no secret
WORKER_PID = "SEXTON_WORKER_PID"  # tells a run's processes from those of another cluster's run under the same token


def clean_environment(worker: Mapping[str, str], names: tuple[str, ...] = INHERITED) -> dict[str, str]:
    """What is left of the worker's environment for a job."""
    kept = {name: worker[name] for name in names if name in worker}
    return {"PATH": os.defpath, **kept}


def job_environment(order: RunOrder) -> dict[str, str]:
    """The job's ``env`` and the run's identity, which ``env`` cannot override."""
    return {**revision_environment(order), **run_environment(order)}


def revision_environment(order: RunOrder) -> dict[str, str]:
    """What all runs of the order's revision have in common here."""
    return {**order.rules.env, "SEXTON_JOB": order.job, WORKER_PID: str(os.getpid())}


def run_environment(order: RunOrder) -> dict[str, str]:
    """What this run alone has."""
    return {
        "SEXTON_TICK": iso(order.grant.scheduled_at),
        "SEXTON_ATTEMPT": str(order.grant.attempt),
        TOKEN: str(order.token),
        "SEXTON_DEADLINE": iso(order.deadline),
    }


def iso(instant: datetime) -> str:
    """``2026-03-29T01:00:00Z``, with a fraction only where there is one."""
    if instant.tzinfo is not UTC:
        instant = instant.astimezone(UTC)
    return f"{instant.isoformat()[:-6]}Z"
