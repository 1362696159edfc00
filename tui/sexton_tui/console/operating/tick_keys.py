"""Keys that act on ticks: those under the cursor, or those of the job under it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from textual import work

from sexton.claims import State
from sexton.errors import SextonError
from sexton.hold_views import HoldDetail
from sexton.store.protocol import OperationStore
from sexton_tui.console.acts import proposals, ticks
from sexton_tui.console.core.backfill_words import parse_stretch, plan_words
from sexton_tui.console.core.hold_words import rejection_text
from sexton_tui.console.core.subjects import OfProposal, OfRun, OfTick, Subject
from sexton_tui.console.core.words import instant, iso_instant, plural
from sexton_tui.console.operating.acting import Acting
from sexton_tui.console.widgets.dialogs import AskLine, Confirm
from sexton_tui.console.widgets.hold_dialog import ApproveDialog

_RANGE = "FROM to BEFORE, such as 02:00 to 03:30 or 2026-03-28 02:00 to 2026-03-29 02:00; `again` behind it reruns"


class TickKeys(Acting):
    """Answer proposals, skip a tick ahead, backfill, cancel, run again."""

    def open(self, subject: Subject) -> None:
        """Show the subject on a screen of its own, where it has one."""

    def action_explain(self) -> None:
        match self.subject:
            case OfRun(job, scheduled_at):
                self.open(OfTick(job, scheduled_at))
            case OfTick() as tick:
                self.open(tick)
            case _:
                return

    @work
    async def action_approve(self) -> None:
        found = await self._proposal()
        if found is not None and self._overview is not None:
            answer = await self.push_screen_wait(ApproveDialog(found, self._overview.now))
            if answer is not None:
                await self.act(proposals.approve(found, *answer, self.options.actor))

    @work
    async def action_reject(self) -> None:
        if (found := await self._proposal()) is not None:
            note = await self.push_screen_wait(AskLine(f"{rejection_text(found.hold)}. Why?"))
            if note is not None:
                await self.act(proposals.reject(found.hold.proposal_id, note, self.options.actor))

    async def _proposal(self) -> HoldDetail | None:
        """The proposal under the cursor, if it is open still."""
        if not isinstance(proposal := self.subject, OfProposal):
            return None
        found: HoldDetail | None = await self.read(lambda store: store.reads.hold(proposal.proposal_id))
        if found is not None and found.ticks is None:
            self.say(f"proposal {proposal.proposal_id} is {found.hold.state.value} already", is_error=True)
            return None
        return found

    @work
    async def action_skip_next(self) -> None:
        if (job := self.job_under_cursor) is None or self._overview is None:
            return
        tick = self._tick
        if tick is not None and tick <= self._overview.now:
            tick = None  # it is not ahead: the job's next one is meant
        which = "the next tick" if tick is None else f"the tick {iso_instant(tick)}"
        why = await self.push_screen_wait(AskLine(f"Let {which} of {job} not run: why?"))
        if why is not None:
            await self.act(ticks.skip_next(job, tick, why, self.options.actor))

    @work
    async def action_backfill(self) -> None:
        if (job := self.job_under_cursor) is None or self._overview is None:
            return
        text = await self.push_screen_wait(AskLine(f"Backfill {job}: which ticks?", about=_RANGE))
        if text is None:
            return
        try:
            stretch = ticks.Stretch(job, *parse_stretch(text, self._overview.now))
        except SextonError as error:
            self.say(str(error), is_error=True)
            return
        plan = await self.read(ticks.planned_backfill(stretch))
        if plan is None:
            return
        words = plan_words(plan, self._overview.now, self._overview.settings)
        if not plan.runs:
            self.say(words)
            return
        note = await self.push_screen_wait(AskLine(f"{words}. Why?"))
        if note is not None:
            await self.act(ticks.backfill(plan, stretch, note, self.options.actor))

    @work
    async def action_cancel(self) -> None:
        if (job := self.job_under_cursor) is None or self._overview is None:
            return
        tick = self._tick
        found = await self.read(lambda store: _states_of(store.operations, store.edits.find_job(job).job_id, tick))
        if found is None:
            return
        if not found:
            self.say(f"nothing of {job} runs or waits now")
            return
        what = f"the tick {instant(tick, self._overview.now)}" if tick is not None else _what_stops(found)
        question = Confirm(f"Cancel {what} of {job}?", "SIGTERM, then SIGKILL after its kill_after. Not to be undone.")
        if await self.push_screen_wait(question):
            await self.act(ticks.cancel(job, tick, "cancelled in the console", self.options.actor))

    @work
    async def action_run_again(self) -> None:
        job, tick = self.job_under_cursor, self._tick
        if job is not None and tick is not None:
            why = await self.push_screen_wait(AskLine(f"Run {job} {iso_instant(tick)} once more: why?"))
            if why is not None:
                await self.act(ticks.run_again(job, tick, why, self.options.actor))

    @property
    def _tick(self) -> datetime | None:
        """The tick under the cursor; None where a whole job is."""
        match self.subject:
            case OfTick(_, scheduled_at) | OfRun(_, scheduled_at):
                return scheduled_at
            case _:
                return None


def _states_of(operations: OperationStore, job_id: int, tick: datetime | None) -> list[State]:
    """Of the tick's claim, or of all of the job's that could be stopped."""
    return list(operations.states(job_id, None if tick is None else [tick]).values())


def _what_stops(states: Sequence[State]) -> str:
    running = states.count(State.RUNNING)
    parts = [plural(running, "run")] if running else []
    parts += [f"{plural(len(states) - running, 'waiting tick')}"] if len(states) > running else []
    return " and ".join(parts)
