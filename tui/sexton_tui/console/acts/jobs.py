"""Acts on jobs: pause, resume, trigger; of one or of all."""

from __future__ import annotations

from datetime import datetime

from sexton.cluster_views import PauseOfAll
from sexton.errors import Refused
from sexton.store.edit_plan import pause_words
from sexton.store.protocol import ChangeKind, CurrentJob, JobChange, PauseSeen, Store
from sexton.store.resuming import resume_missed, resume_together
from sexton_tui.console.acts import Act, Done, Undo
from sexton_tui.console.core.words import plural


def pause(job: str, why: str, actor: str) -> Act:
    """Pause a job: its ticks are recorded as paused until it is resumed. Undone while it is this pause that stands."""

    def act(store: Store) -> Done:
        found = store.edits.find_job(job)
        if found.is_paused:
            raise Refused(f"{found.name} is {pause_words('paused already,', found.pause)}", hint="r resumes it")
        change = JobChange(ChangeKind.PAUSE, found.job_id, why=why, expected_pause=found.pause)
        return _paused(store, change, actor)

    return act


def _paused(store: Store, change: JobChange, actor: str) -> Done:
    (done,) = store.edits.edit([change], actor)
    by_this = PauseSeen(done.effective_at, actor, change.why)
    return Done(f"{done.name} is paused", Undo(f"the pause of {done.name}", _end_of(done.job_id, by_this, actor)))


def _end_of(job_id: int, pause: PauseSeen, actor: str) -> Act:
    """End this pause, and no other."""

    def act(store: Store) -> Done:
        change = JobChange(ChangeKind.RESUME, job_id, why="its pause was undone", expected_pause=pause)
        (done,) = store.edits.edit([change], actor)
        return Done(f"{done.name} is resumed")

    return act


def resume(found: CurrentJob, actor: str) -> Act:
    """Resume a job that is paused or in quarantine, if it still stands as it was found; ticks of the pause are not run.
    Undone while it was not paused again."""

    def act(store: Store) -> Done:
        change = JobChange(ChangeKind.RESUME, found.job_id, why="resumed in the console", expected_pause=found.pause)
        (done,) = store.edits.edit([change], actor)
        again = _pause_again(found.job_id, done.effective_at, actor)
        return Done(
            f"{done.name} is resumed", Undo(f"the end of the pause of {done.name}", again) if found.is_paused else None
        )

    return act


def _pause_again(job_id: int, resumed_at: datetime, actor: str) -> Act:
    """Pause a job that runs since it was resumed then."""
    why = f"paused again by {actor}"
    return lambda store: _paused(store, JobChange(ChangeKind.PAUSE, job_id, why=why, expected_resume=resumed_at), actor)


def resume_and_run_missed(found: CurrentJob, actor: str) -> Act:
    """Resume a paused job, if it still stands as it was found; what fell due in the pause is decided by its policy."""

    def act(store: Store) -> Done:
        done = resume_missed(store, found.job_id, actor, expected=found.pause)
        held = f"; {plural(done.held, 'tick')} held: pane 3" if done.held else ""
        return Done(f"{done.done.name} is resumed: {done.reason or 'nothing fell due in the pause'}{held}")

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


def resume_all(pause: PauseOfAll, actor: str, *, run_missed: bool = False) -> Act:
    """End this pause of all, and no other; jobs that were paused on their own stay paused."""

    def act(store: Store) -> Done:
        paused = store.pauses.paused_with_all() if run_missed else ()
        resumed = resume_together(store, paused, actor, with_all=True, expected=pause)
        fired, held = sum(one.fired for one in resumed), sum(one.held for one in resumed)
        done = store.pauses.resume_all(actor, pause)
        missed = f"; {plural(fired, 'missed tick')} to run, {plural(held, 'tick')} held" if run_missed else ""
        return Done(f"{plural(len(done.jobs) + len(paused), 'job')} resumed{missed}")

    return act
