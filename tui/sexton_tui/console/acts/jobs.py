"""Acts on jobs: pause, resume, trigger; of one or of all."""

from __future__ import annotations

from datetime import datetime

from sexton.errors import Refused
from sexton.store.protocol import ChangeKind, JobChange, Store
from sexton.store.resuming import resume_missed, resume_together
from sexton_tui.console.acts import Act, Done, Undo
from sexton_tui.console.core.words import plural


def pause(job: str, why: str, actor: str) -> Act:
    """Pause a job: its ticks are recorded as paused until it is resumed. Undone while it is this pause that stands."""

    def act(store: Store) -> Done:
        found = store.edits.find_job(job)
        if found.is_paused:
            raise Refused(f"job {found.name} is paused already", hint="r resumes it")
        (done,) = store.edits.edit([JobChange(ChangeKind.PAUSE, found.job_id, why=why)], actor)
        undo = Undo(f"the pause of {found.name}", _end_of(found.job_id, done.effective_at, actor))
        return Done(f"{found.name} is paused", undo)

    return act


def _end_of(job_id: int, since: datetime, actor: str) -> Act:
    """End the pause that began then, and no other."""

    def act(store: Store) -> Done:
        change = JobChange(ChangeKind.RESUME, job_id, why="its pause was undone", expected_pause=since)
        (done,) = store.edits.edit([change], actor)
        return Done(f"{done.name} is resumed")

    return act


def resume(job: str, actor: str) -> Act:
    """Resume a paused or quarantined job; ticks of the pause are not run."""

    def act(store: Store) -> Done:
        found = store.edits.find_job(job)
        if not found.is_paused and not found.is_quarantined:
            raise Refused(f"job {found.name} is neither paused nor quarantined")
        why = f"paused again by {actor}"
        store.edits.edit([JobChange(ChangeKind.RESUME, found.job_id, why="resumed in the console")], actor)
        undo = Undo(f"the end of the pause of {found.name}", pause(found.name, why, actor)) if found.is_paused else None
        return Done(f"{found.name} is resumed", undo)

    return act


def resume_and_run_missed(job: str, actor: str) -> Act:
    """Resume a paused job; what fell due in the pause is decided by its policy."""

    def act(store: Store) -> Done:
        found = store.edits.find_job(job)
        done = resume_missed(store, found.job_id, actor)
        held = f"; {plural(done.held, 'tick')} held: pane 3" if done.held else ""
        return Done(f"{found.name} is resumed: {done.reason or 'nothing fell due in the pause'}{held}")

    return act


def trigger(job: str, actor: str, request_id: str) -> Act:
    """Write a manual claim; the same ``request_id`` writes no second one."""

    def act(store: Store) -> Done:
        found = store.edits.find_job(job)
        triggered = store.edits.trigger(found.job_id, actor, request_id)
        state = "paused" if found.is_paused else "quarantined" if found.is_quarantined else ""
        note = f"; it stays {state}, and runs this once" if state else ""
        return Done(f"{triggered.name} is triggered: claim {triggered.scheduled_at:%H:%M:%S} UTC{note}")

    return act


def pause_all(why: str, actor: str) -> Act:
    """Pause every job, and those that are applied meanwhile."""

    def act(store: Store) -> Done:
        if (standing := store.pauses.pause_of_all()) is not None:
            raise Refused(f"all jobs are paused already, by {standing.who}: {standing.why}", hint="P resumes them")
        done = store.pauses.pause_all(actor, why)
        return Done(f"all jobs are paused, {plural(len(done.jobs), 'job')} by this; P ends it")

    return act


def resume_all(actor: str, *, run_missed: bool = False) -> Act:
    """End the pause of all; jobs that were paused on their own stay paused."""

    def act(store: Store) -> Done:
        if store.pauses.pause_of_all() is None:
            raise Refused("the jobs are not paused as a whole", hint="r resumes the one under the cursor")
        paused = store.pauses.paused_with_all() if run_missed else ()
        resumed = resume_together(store, paused, actor, with_all=True)
        fired, held = sum(one.fired for one in resumed), sum(one.held for one in resumed)
        done = store.pauses.resume_all(actor)
        missed = f"; {plural(fired, 'missed tick')} to run, {plural(held, 'tick')} held" if run_missed else ""
        return Done(f"{plural(len(done.jobs) + len(paused), 'job')} resumed{missed}")

    return act
