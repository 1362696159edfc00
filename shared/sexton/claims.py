"""The states of a claim, its origins, and the one table of allowed arrows.

A claim is the row keyed ``(job_id, scheduled_at)``: the duplicate guard and the
work item in one. Both stores' behavioural suite checks every state change they
make against ``ARROWS``; a change that is not in the table does not exist.

    ready ──grant──▶ running ──▶ succeeded | failed | timed_out | cancelled | lost
      │  ▲              │
      │  └── retry, given back, lease lost (on_worker_lost: retry)
      ├──▶ parked ──promotion──▶ ready
      └──▶ skipped | merged | expired | held | cancelled      (decided without a run)
"""

from __future__ import annotations

from enum import IntEnum, StrEnum


class State(IntEnum):
    """Stored as a small integer; the order is part of the schema."""

    READY = 0
    RUNNING = 1
    PARKED = 2
    SUCCEEDED = 3
    FAILED = 4
    TIMED_OUT = 5
    LOST = 6
    CANCELLED = 7
    SKIPPED = 8
    MERGED = 9
    EXPIRED = 10
    HELD = 11

    @property
    def word(self) -> str:
        """The state as screens, commands and docs say it."""
        return self.name.lower()


class Origin(IntEnum):
    """Why the claim exists. All but ``SCHEDULE`` and ``MANUAL`` are paced, and pulled last."""

    SCHEDULE = 0
    CATCH_UP = 1
    HELD = 2
    BACKFILL = 3
    MANUAL = 4

    @property
    def word(self) -> str:
        return self.name.lower()

    @property
    def is_paced(self) -> bool:
        """Whether its claims draw on the catch-up budget, and are pulled last."""
        return self not in (Origin.SCHEDULE, Origin.MANUAL)


class Overlap(IntEnum):
    """What a grant does when the claim's slot is busy."""

    ALLOW = 0
    SKIP = 1
    QUEUE = 2
    REPLACE = 3


class OnWorkerLost(StrEnum):
    """What becomes of a running claim whose lease ran out."""

    RETRY = "retry"
    FAIL = "fail"


class OnLeaseLost(StrEnum):
    """What becomes of a run, still going on, whose worker could not renew its lease."""

    CONTINUE = "continue"
    KILL = "kill"


POISON_AFTER = 3  # losses: it may be the claim's run that ends what runs it
PACED_ORIGINS = frozenset({Origin.CATCH_UP, Origin.HELD, Origin.BACKFILL})

ENDED = frozenset(
    {
        State.SUCCEEDED,
        State.FAILED,
        State.TIMED_OUT,
        State.LOST,
        State.CANCELLED,
        State.SKIPPED,
        State.MERGED,
        State.EXPIRED,
        State.HELD,
    }
)
ENDED_BY_RUN = frozenset({State.SUCCEEDED, State.FAILED, State.TIMED_OUT, State.LOST, State.CANCELLED})

# A rerun (an ended claim back to READY, on request only) is listed apart.
ARROWS: frozenset[tuple[State, State]] = frozenset(
    {
        (State.READY, State.RUNNING),
        (State.READY, State.PARKED),
        (State.READY, State.SKIPPED),
        (State.READY, State.MERGED),
        (State.READY, State.EXPIRED),
        (State.READY, State.HELD),
        (State.READY, State.CANCELLED),
        (State.PARKED, State.READY),
        (State.PARKED, State.SKIPPED),
        (State.PARKED, State.CANCELLED),
        (State.RUNNING, State.SUCCEEDED),
        (State.RUNNING, State.FAILED),
        (State.RUNNING, State.TIMED_OUT),
        (State.RUNNING, State.CANCELLED),
        (State.RUNNING, State.READY),
        (State.RUNNING, State.LOST),
        (State.HELD, State.READY),
        (State.HELD, State.SKIPPED),
    }
)
RERUN_ARROWS: frozenset[tuple[State, State]] = frozenset((ended, State.READY) for ended in ENDED)


def is_allowed(old: State, new: State, *, on_request: bool = False) -> bool:
    """Whether a claim may go from ``old`` to ``new``; ``on_request`` admits reruns."""
    return (old, new) in ARROWS or (on_request and (old, new) in RERUN_ARROWS)
