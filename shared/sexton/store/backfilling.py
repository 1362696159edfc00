"""A backfill from the reading to the writing, the same on both databases: plan, and write while the plan holds."""

from __future__ import annotations

from datetime import datetime

from sexton.backfill_plan import MOST_TICKS, BackfillPlan, plan_backfill
from sexton.errors import MovedOn, Refused
from sexton.inputs import own_inputs
from sexton.resolutions import Resolved
from sexton.store.protocol import Store
from sexton.tick_view import MICROSECOND

_TRIES = 20


def read_backfill(store: Store, job_id: int, begin: datetime, end: datetime, *, rerun: bool = False) -> BackfillPlan:
    """What a backfill of ``[begin, end)`` would do now; nothing is written. Raises what ``plan_backfill`` does."""
    if begin >= end:
        raise Refused("the stretch to backfill ends before it begins", hint="give a --to that is later than --from")
    stretch = store.backfills.stretch(job_id, begin - MICROSECOND, end - MICROSECOND, MOST_TICKS + 1)
    return plan_backfill(stretch, own_inputs().inputs_id, rerun=rerun)


def carry_out(
    store: Store, plan: BackfillPlan, begin: datetime, end: datetime, actor: str, note: str, *, rerun: bool = False
) -> Resolved:
    """Write ``plan``; where the ledger has moved meanwhile, only if the same ticks would still run.

    Raises ``MovedOn`` where they would not, and what ``read_backfill`` does.
    """
    for _ in range(_TRIES):
        done = store.backfills.backfill(plan.resolution, actor, note)
        if done is not None:
            return done
        again = read_backfill(store, plan.job_id, begin, end, rerun=rerun)
        if again.runs != plan.runs:
            raise MovedOn(
                f"ticks of {plan.job} in there were decided, run or answered meanwhile",
                job_id=plan.job_id,
                hint="nothing was changed; look at it again with --dry-run",
            )
        plan = again
    raise Refused(f"{plan.job} changed through {_TRIES} tries to backfill it", hint="try again")
