"""What both stores say of operations on claims and workers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from sexton.claims import ENDED, State
from sexton.errors import NotFound, Refused
from sexton.store.protocol.operations import StopOutcome, StoppedClaim, WorkerChoice

HEARD_WITHIN = timedelta(minutes=10)  # a worker silent for longer is dead, or comes back as another
CANCELLED_AT_ONCE = 2000
"""Claims that one transaction cancels: nobody waits long for it, and it waits for this process never for long."""
TOLD = 50
"""Ticks, or workers, named in one event."""


def instant_text(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def stop_outcome(state: State, is_asked: bool) -> StopOutcome:
    """What becomes of a claim in this state, when somebody asks to cancel it."""
    if state in (State.READY, State.PARKED):
        return StopOutcome.CANCELLED
    if state is State.RUNNING:
        return StopOutcome.ASKED_BEFORE if is_asked else StopOutcome.ASKED
    return StopOutcome.OVER


def stop_reason(outcome: StopOutcome, actor: str, reason: str) -> str:
    """What stands in the claim: true however its run ends."""
    what = "cancelled" if outcome is StopOutcome.CANCELLED else "asked to stop"
    return f"{what} by {actor}" + (f": {reason}" if reason else "")


def cancel_detail(job: str, stopped: Sequence[StoppedClaim], reason: str) -> dict[str, object] | None:
    """The event of a request to cancel; None where it changed nothing."""
    ended = [one.scheduled_at for one in stopped if one.outcome is StopOutcome.CANCELLED]
    asked = [one.scheduled_at for one in stopped if one.outcome is StopOutcome.ASKED]
    if not ended and not asked:
        return None
    return {
        "job": job,
        "reason": reason,
        "cancelled": len(ended),
        "asked_to_stop": len(asked),
        "ticks": [instant_text(at) for at in sorted([*ended, *asked])[:TOLD]],
    }


def no_claim(job: str, tick: datetime, now: datetime) -> NotFound:
    what = f"{job} has no claim for {instant_text(tick)}"
    if tick > now:
        return NotFound(
            f"{what} yet",
            hint="the claims of ticks to come are written shortly before they fall due:"
            f" `sexton ticks {job}` lists them; to keep the job from running meanwhile, `sexton pause {job}`",
        )
    return NotFound(what, hint=f"`sexton ticks {job}` lists its ticks, to the microsecond")


def check_rerun(job: str, tick: datetime, state: State, is_retired: bool) -> None:
    """Raises ``Refused`` where this claim cannot be run again."""
    at = instant_text(tick)
    if is_retired:
        raise Refused(f"the job {job} is retired", hint="apply a job file that has it, to have it again")
    if state is State.HELD:
        raise Refused(f"the tick {at} of {job} is held for an answer", hint="answer its proposal instead")
    if state not in ENDED:
        hint = "wait for its end" if state is State.RUNNING else "it runs by itself once its turn has come"
        raise Refused(f"the tick {at} of {job} has not ended: it is {state.word}", hint=hint)


def is_chosen(choice: WorkerChoice, name: str, version: str, queues: str) -> bool:
    """Whether a worker is one of those; ``queues`` as its row has them."""
    if choice.name is not None:
        return name == choice.name
    if choice.version is not None:
        return version == choice.version
    return choice.queue in json.loads(queues)


def drain_action(asked: bool) -> str:
    return "workers.asked_to_drain" if asked else "workers.drain_taken_back"


def drain_detail(choice: WorkerChoice, names: Sequence[str]) -> dict[str, object]:
    by = {"name": choice.name, "version": choice.version, "queue": choice.queue}
    return {"workers": list(names)[:TOLD], **{key: value for key, value in by.items() if value is not None}}
