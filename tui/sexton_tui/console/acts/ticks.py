"""Acts on single ticks: skip one ahead, run past ones, stop what runs, run one again."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from sexton.backfill_plan import BackfillPlan
from sexton.errors import Refused
from sexton.skip_ahead import Named
from sexton.store.backfilling import carry_out, read_backfill
from sexton.store.protocol import StopOutcome, Store
from sexton.store.resuming import skip_tick, unskip_tick
from sexton_tui.console.acts import Act, Done, Undo
from sexton_tui.console.core.words import iso_instant, plural


def skip_next(job: str, tick: datetime | None, why: str, actor: str) -> Act:
    """Name a tick ahead that is not to run; without ``tick`` the next one."""

    def act(store: Store) -> Done:
        found = store.edits.find_job(job)
        if found.is_quarantined:
            raise Refused(f"{found.name} is in quarantine: no tick of it runs", hint="r lifts it")
        plan, _ = skip_tick(store, found.job_id, tick, actor, why)
        undo = Undo(
            f"the skip of {found.name} {iso_instant(plan.changed)}",
            _run_after_all(found.job_id, plan.named[plan.changed], actor),
        )
        return Done(f"{found.name} {iso_instant(plan.changed)} will not run; the ticks around it do", undo)

    return act


def _run_after_all(job_id: int, named: Named, actor: str) -> Act:
    """Take back this naming of a tick, and no other."""

    def act(store: Store) -> Done:
        plan, _ = unskip_tick(store, job_id, named.tick, actor, named)
        return Done(f"{plan.name} {iso_instant(plan.changed)} will run")

    return act


@dataclass(frozen=True, slots=True)
class Stretch:
    """Ticks of a job in ``[begin, end)``; ``rerun``: those that ran, too."""

    job: str
    begin: datetime
    end: datetime
    rerun: bool = False


def planned_backfill(stretch: Stretch) -> Callable[[Store], BackfillPlan]:
    """Reads what a backfill would do."""

    def read(store: Store) -> BackfillPlan:
        found = store.edits.find_job(stretch.job)
        return read_backfill(store, found.job_id, stretch.begin, stretch.end, rerun=stretch.rerun)

    return read


def backfill(plan: BackfillPlan, stretch: Stretch, note: str, actor: str) -> Act:
    """Carry the plan out, as it was shown."""

    def act(store: Store) -> Done:
        done = carry_out(store, plan, stretch.begin, stretch.end, actor, note, rerun=stretch.rerun)
        waits = f"; {done.name} is paused: they wait for its resume" if done.is_paused else ""
        return Done(f"{done.name}: {plural(done.count, 'tick')} to run, at the pace of the catch-up budget{waits}")

    return act


def cancel(job: str, tick: datetime | None, told: Collection[datetime], why: str, actor: str) -> Act:
    """Stop a tick's run; without ``tick`` those of the job that were ``told``, and none that came since."""

    def act(store: Store) -> Done:
        found = store.edits.find_job(job)
        stopped = store.operations.cancel(found.job_id, actor, why, tick, among=told)
        outcomes = [one.outcome for one in stopped]
        if tick is not None and outcomes[0] is StopOutcome.OVER:
            raise Refused(f"the tick {iso_instant(tick)} of {found.name} had ended before: {stopped[0].state.word}")
        asked = sum(one in (StopOutcome.ASKED, StopOutcome.ASKED_BEFORE) for one in outcomes)
        ended = outcomes.count(StopOutcome.CANCELLED)
        if not asked and not ended:
            return Done(f"nothing of {found.name} runs or waits now")
        parts = [f"{plural(asked, 'run')} asked to stop"] if asked else []
        parts += [f"{plural(ended, 'waiting tick')} cancelled"] if ended else []
        return Done(f"{found.name}: {', '.join(parts)}")

    return act


def run_again(job: str, tick: datetime, why: str, actor: str) -> Act:
    """Make an ended claim ready once more; its runs are kept."""

    def act(store: Store) -> Done:
        found = store.edits.find_job(job)
        done = store.operations.rerun(found.job_id, tick, actor, why)
        waits = f"; {found.name} is paused: this waits for its resume" if done.is_paused else ""
        return Done(f"{found.name} {iso_instant(tick)} runs again; it had ended as {done.was.word}{waits}")

    return act
