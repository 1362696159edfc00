"""Keys that act on the job under the cursor, or on all jobs."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from sexton_tui.console.acts import Act
from sexton_tui.console.loading import later
from sexton_tui.console.operating.acting import Acting
from sexton_tui.console.operating.asking import asks
from sexton_tui.console.widgets.dialogs import AskLine, Choose, Confirm

if TYPE_CHECKING:
    from sexton_tui.console.acts import jobs
else:  # the first screen waits for none of it
    jobs = later("sexton_tui.console.acts.jobs")

_MISSED = (("s", "stay undone"), ("d", "are decided by the job's policy"))


class JobKeys(Acting):
    """Pause, resume and trigger."""

    @asks
    async def action_pause(self) -> Act | None:
        if (job := self.job_under_cursor) is None:
            return None
        why = await self.ask(AskLine(f"Pause {job}: why?"))
        return None if why is None else jobs.pause(job, why, self.options.actor)

    @asks
    async def action_resume(self) -> Act | None:
        if (job := self.job_under_cursor) is None:
            return None
        found = await self.read_for(f"Resume {job}", lambda store: store.edits.find_job(job))
        if found is None:
            return None
        if not found.is_paused:
            if not found.is_quarantined:
                self.say(f"job {found.name} is neither paused nor quarantined", is_error=True)
                return None
            return jobs.resume(found, self.options.actor)
        why = f" ({found.pause.why})" if found.pause.why else ""
        also = ", and in quarantine" if found.is_quarantined else ""
        question = f"Resume {job}, paused by {found.pause.who}{why}{also}: ticks that fell due in its pause"
        choice = await self.ask(Choose(question, _MISSED))
        acts = {"d": jobs.resume_and_run_missed, "s": jobs.resume}
        return None if choice is None else acts[choice](found, self.options.actor)

    @asks
    async def action_trigger(self) -> Act | None:
        if (job := self.job_under_cursor) is None:
            return None
        consequence = "It runs beside its schedule. This cannot be undone."
        is_sure = await self.ask(Confirm(f"Run {job} once, now?", consequence))
        return jobs.trigger(job, self.options.actor, f"console-{uuid.uuid4()}") if is_sure else None

    @asks
    async def action_pause_all(self) -> Act | None:
        # A tuple, for None says that nothing was read.
        found = await self.read_for("Pause all jobs, or end that", lambda store: (store.pauses.pause_of_all(),))
        if found is None:
            return None
        if found[0] is None:
            why = await self.ask(AskLine("Pause ALL jobs, and those applied meanwhile: why?"))
            return None if why is None else jobs.pause_all(why, self.options.actor)
        question = f"Resume all jobs, paused by {found[0].who} ({found[0].why}): ticks that fell due meanwhile"
        choice = await self.ask(Choose(question, _MISSED, "Jobs that were paused on their own stay paused."))
        return None if choice is None else jobs.resume_all(found[0], self.options.actor, run_missed=choice == "d")
