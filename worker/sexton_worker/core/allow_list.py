"""Which targets this worker may run: the ``allow`` setting of a process.

An entry is a command as jobs write it (``billing``, ``/usr/bin/billing``), a
Python package or module (``billing`` admits ``billing.jobs:nightly``), or one
function (``billing.jobs:nightly``). Shell scripts can run anything, so they need
the entry ``/bin/sh``. The beginning of an address (``https://billing.internal/``,
``redis://broker/``) admits requests and brokers; those are checked where they are
sent, for redirects count too. No list (None): everything may run.
"""

from __future__ import annotations

from collections.abc import Sequence

from sexton.targets import CeleryTarget, CommandTarget, HttpTarget, PythonTarget, ShellTarget, Target

SHELL = "/bin/sh"


def refusal(target: Target, allow: Sequence[str] | None) -> str:
    """Why this worker does not run the target, as one sentence; empty: it may run."""
    if allow is None:
        return ""
    match target:
        case CommandTarget(argv):
            what, names = f"command {argv[0]!r}", {argv[0]}
        case ShellTarget():
            what, names = "a shell script", {SHELL}
        case PythonTarget(reference):
            what, names = f"python {reference!r}", _python_names(reference)
        case HttpTarget() | CeleryTarget():
            return ""
    if names & set(allow):
        return ""
    return (
        f"{what} is not among what this worker may run ({', '.join(allow) or 'nothing'}); "
        "add it to `allow` in the worker's settings, or give the job the queue of another worker"
    )


def _python_names(reference: str) -> set[str]:
    module = reference.partition(":")[0]
    parts = module.split(".")
    return {reference, *(".".join(parts[: n + 1]) for n in range(len(parts)))}
