"""The end of a run, told from what became of its process."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from sexton.settings import format_duration
from sexton_worker.core.runs import EndedRun, Ending, StopReason
from sexton_worker.execution import RunOrder
from sexton_worker.targets.outputs import Outputs
from sexton_worker.targets.process_group import end_of, survivors
from sexton_worker.targets.supervision import ENDINGS, Supervision

__all__ = [
    "ENDINGS", "ended_process", "listed", "machine_fault", "not_started", "stopped_before", "vanished", "why_stopped",
]  # fmt: skip

LISTED = 10  # survivors named one by one
_KILLED = 128 + signal.SIGKILL


def not_started(order: RunOrder, now: float, why: str, exit_code: int | None = None) -> EndedRun:
    """Nothing ran, for the reason ``why``."""
    return EndedRun(order.token, Ending.NOT_STARTED, None, now, exit_code, why)


def stopped_before(order: RunOrder, now: float, reason: StopReason) -> EndedRun:
    """It was stopped before it started, and never will."""
    return EndedRun(order.token, ENDINGS[reason], None, now, error=f"{reason} before it started")


def machine_fault(order: RunOrder, now: float, why: str, started: float | None = None) -> EndedRun:
    """The machine could not start it, for the reason ``why``. ``started``: it may have run for a moment even so."""
    advice = "raise the worker's limits (ulimit -n, -u), free memory or use fewer slots"
    error = f"given back: the worker's machine could not start it ({why}); {advice}"
    return EndedRun(order.token, Ending.MACHINE_FAULT, started, now, error=error)


def vanished(order: RunOrder, now: float, why: str, started: float, *, is_suspect: bool) -> EndedRun:
    """It began, and what became of it nobody knows, for the reason ``why``; nothing of it runs any more.
    ``is_suspect``: the run may be to blame; else the machine is."""
    ending = Ending.VANISHED if is_suspect else Ending.MACHINE_FAULT
    error = f"{why}; what became of the run is unknown, and what was left of it has been ended"
    return EndedRun(order.token, ending, started, now, error=error)


def ended_process(
    order: RunOrder,
    supervision: Supervision,
    code: int,
    outputs: Outputs,
    started: float,
    ended: float,
    by_itself: Ending,
) -> EndedRun:
    """The run's process exited with ``code``, stopped by the supervision or ``by_itself``."""
    ending = supervision.forced or by_itself
    if supervision.forced is None:
        error = "" if code == 0 or code in order.rules.success_codes else end_of(code)
    else:
        error = why_stopped(order, ending, code, is_killed=supervision.is_killed) + _who_survived(order.token, started)
    return outputs.told(EndedRun(order.token, ending, started, ended, code, error))


def why_stopped(order: RunOrder, ending: Ending, code: int, *, is_killed: bool) -> str:
    """Why and how a run was stopped, as the beginning of a sentence."""
    rules = order.rules
    reasons = {
        Ending.TIMED_OUT: f"ran longer than max_runtime {format_duration(rules.max_runtime)}",
        Ending.CANCELLED: "cancelled on request",
        Ending.LEASE_LOST: "stopped: the worker lost the claim's lease",
        Ending.GIVEN_BACK: "given back: the worker stopped",
    }
    how = "SIGTERM"
    if is_killed and code == _KILLED:
        how = "SIGKILL, for it did not end on SIGTERM"
    elif is_killed:
        how = "SIGTERM, and what it had started by SIGKILL"
    return f"{reasons[ending]}; ended by {how}"


def _who_survived(token: int, since: float) -> str:
    left = survivors(token, since)
    if not left:
        return ""
    return f"; {len(left)} process{'' if len(left) == 1 else 'es'} left its group and live on: {listed(left)}"


def listed(pids: Sequence[int]) -> str:
    """The first of them by name."""
    return ", ".join(map(str, pids[:LISTED])) + (", ..." if len(pids) > LISTED else "")
