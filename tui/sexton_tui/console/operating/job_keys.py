"""Keys that act on the job under the cursor, or on all jobs."""

from __future__ import annotations

import uuid

from textual import work

from sexton_tui.console.acts import jobs
from sexton_tui.console.operating.acting import Acting
from sexton_tui.console.widgets.dialogs import AskLine, Choose, Confirm

_MISSED = (("s", "stay undone"), ("d", "are decided by the job's policy"))


class JobKeys(Acting):
    """Pause, resume and trigger."""

    @work
    async def action_pause(self) -> None:
        if (job := self.job_under_cursor) is not None:
            why = await self.push_screen_wait(AskLine(f"Pause {job}: why?"))
            if why is not None:
                await self.act(jobs.pause(job, why, self.options.actor))

    @work
    async def action_resume(self) -> None:
        if (job := self.job_under_cursor) is None:
            return
        found = await self.read(lambda store: store.edits.find_job(job))
        if found is None:
            return
        if not found.is_paused:
            await self.act(jobs.resume(job, self.options.actor))
            return
        choice = await self.push_screen_wait(Choose(f"Resume {job}: ticks that fell due in its pause", _MISSED))
        if choice == "d":
            await self.act(jobs.resume_and_run_missed(job, self.options.actor))
        elif choice == "s":
            await self.act(jobs.resume(job, self.options.actor))

    @work
    async def action_trigger(self) -> None:
        if (job := self.job_under_cursor) is not None and await self.push_screen_wait(
            Confirm(f"Run {job} once, now?", "It runs beside its schedule. This cannot be undone.")
        ):
            await self.act(jobs.trigger(job, self.options.actor, f"console-{uuid.uuid4()}"))

    @work
    async def action_pause_all(self) -> None:
        # A tuple, for None says that nothing was read.
        found = await self.read(lambda store: (store.pauses.pause_of_all(),))
        if found is None:
            return
        if found[0] is None:
            why = await self.push_screen_wait(AskLine("Pause ALL jobs, and those applied meanwhile: why?"))
            if why is not None:
                await self.act(jobs.pause_all(why, self.options.actor))
            return
        question = f"Resume all jobs, paused by {found[0].who} ({found[0].why}): ticks that fell due meanwhile"
        choice = await self.push_screen_wait(
            Choose(question, _MISSED, "Jobs that were paused on their own stay paused.")
        )
        if choice is not None:
            await self.act(jobs.resume_all(self.options.actor, run_missed=choice == "d"))
