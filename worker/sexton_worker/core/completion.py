"""What becomes of a claim when its run has ended: the outcome, and whether it is tried again.

    exited with a success code ───────────────▶ succeeded
    exited otherwise, raised, not started ────▶ ready (a retry is left) | failed
    timed out ────────────────────────────────▶ ready (a retry is left) | timed_out
    cancelled ────────────────────────────────▶ cancelled
    given back, lease lost ───────────────────▶ ready, no retry used | lost (at most once, and it had started)
    fault of the machine ─────────────────────▶ the same, but ready a little later
    vanished ─────────────────────────────────▶ the same, and a loss of the claim: lost, if it is the third

*Had started* is said of the process, not of the started write before it: of a run that certainly never began nothing
was done, so it may be started again even at most once.

Randomness and time are arguments, so that the simulator repeats every delay.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sexton.claims import POISON_AFTER, State
from sexton.job_rules import RetryRules
from sexton.jobs import RunRules
from sexton_worker.core.machine_faults import return_delay
from sexton_worker.core.runs import EndedRun, Ending

# A run that was stopped at its deadline counts as this exception for `retries.on`.
TIMEOUT_NAMES = ("TimeoutError", "timed_out")
LEAST_JITTER = 0.5


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a run. READY: back to the queue, not before ``retry_at`` (UTC) if it is set, else at once."""

    outcome: State
    error: str = ""
    retry_at: datetime | None = None
    uses_retry: bool = False
    is_loss: bool = False


SUCCEEDED = Verdict(State.SUCCEEDED)


def has_succeeded(ended: EndedRun, rules: RunRules) -> bool:
    return ended.ending is Ending.EXITED and ended.exit_code in rules.success_codes


def conclude(
    ended: EndedRun,
    rules: RunRules,
    *,
    retries_used: int,
    losses: int,
    at_most_once: bool,
    finished_at: datetime,
    draw: float,
) -> Verdict:
    """What the end of a run means for its claim. ``draw`` in [0, 1) decides the jitter of its delay."""
    if has_succeeded(ended, rules):
        return SUCCEEDED
    match ended.ending:
        case Ending.EXITED | Ending.RAISED | Ending.NOT_STARTED:
            outcome = State.FAILED
        case Ending.TIMED_OUT:
            outcome = State.TIMED_OUT
        case Ending.CANCELLED:
            return Verdict(State.CANCELLED, ended.error)
        case Ending.LEASE_LOST | Ending.GIVEN_BACK | Ending.MACHINE_FAULT:
            if at_most_once and ended.started is not None:
                return Verdict(State.LOST, ended.error)
            is_fault = ended.ending is Ending.MACHINE_FAULT
            return Verdict(State.READY, ended.error, retry_at=finished_at + return_delay(draw) if is_fault else None)
        case Ending.VANISHED if at_most_once:
            return Verdict(State.LOST, ended.error, is_loss=True)
        case Ending.VANISHED if losses + 1 >= POISON_AFTER:
            poison = f"{losses + 1} losses of its claim, it may be what ends that process"
            return Verdict(State.LOST, f"{ended.error}; {poison}", is_loss=True)
        case Ending.VANISHED:
            return Verdict(State.READY, ended.error, retry_at=finished_at + return_delay(draw), is_loss=True)
    if retries_used < rules.retries.max and is_retried(ended, rules.retries):
        delay = retry_delay(rules.retries, retries_used, draw)
        return Verdict(State.READY, ended.error, retry_at=finished_at + delay, uses_retry=True)
    return Verdict(outcome, ended.error)


def is_retried(ended: EndedRun, rules: RetryRules) -> bool:
    """Whether ``retries.on`` names this failure: by exit code, exception, or a base class of the exception."""
    if rules.on is None:
        return True
    names = TIMEOUT_NAMES if ended.ending is Ending.TIMED_OUT else ended.exceptions
    return any(name in rules.on for name in names) or (ended.exit_code is not None and ended.exit_code in rules.on)


def retry_delay(rules: RetryRules, retries_used: int, draw: float) -> timedelta:
    """``delay`` × ``factor`` for each retry used, at most ``max_delay``; with jitter half of that to all of it."""
    try:
        seconds = rules.delay.total_seconds() * rules.factor**retries_used
    except OverflowError:
        seconds = float("inf")
    seconds = min(seconds, rules.max_delay.total_seconds())
    if rules.jitter:
        seconds *= LEAST_JITTER + (1 - LEAST_JITTER) * draw
    return timedelta(seconds=seconds)


def storable(text: str) -> str:
    """``text`` as every database takes it: no NUL, and no half of a character; a job's error may hold either."""
    if not text:
        return text
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
