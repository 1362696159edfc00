"""Keys that act on ticks: those under the cursor, or those of the job under it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from sexton.claims import State
from sexton.errors import Refused
from sexton_tui.console.acts import Act
from sexton_tui.console.core.subjects import OfProposal, OfRun, OfTick, Subject
from sexton_tui.console.core.words import instant, iso_instant, plural
from sexton_tui.console.loading import later
from sexton_tui.console.operating.acting import Acting
from sexton_tui.console.operating.asking import asks
from sexton_tui.console.widgets.dialogs import AskLine, Confirm

if TYPE_CHECKING:
    from sexton import tick_explanation
    from sexton.hold_views import HoldDetail
    from sexton.store.protocol import OperationStore, Store
    from sexton_tui.console.acts import proposals, ticks
    from sexton_tui.console.core import backfill_words, hold_words
    from sexton_tui.console.widgets import hold_dialog
else:  # the first screen waits for none of it
    tick_explanation = later("sexton.tick_explanation")
    proposals = later("sexton_tui.console.acts.proposals")
    ticks = later("sexton_tui.console.acts.ticks")
    backfill_words = later("sexton_tui.console.core.backfill_words")
    hold_words = later("sexton_tui.console.core.hold_words")
    hold_dialog = later("sexton_tui.console.widgets.hold_dialog")

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

    @asks
    async def action_approve(self) -> Act | None:
        found = await self._proposal("Approve held ticks")
        if found is None or self._overview is None:
            return None
        known, tick, part, note = self._overview, self._held_tick, "all", ""

        def now() -> datetime:
            return (self._overview or known).now

        while True:
            answer = await self.ask(hold_dialog.ApproveDialog(found, now, part=part, note=note, tick=tick))
            if answer is None:
                return None
            part, chosen, note = answer
            if len(chosen) == found.hold.count:
                break
            question = f"{hold_words.part_text(found.hold, len(chosen))}?"
            is_sure = await self.ask(Confirm(question, "What is rejected never runs. n: back to what was typed."))
            if is_sure is None:
                return None
            if is_sure:
                break
        return proposals.approve(found, chosen, note, self.options.actor)

    @asks
    async def action_reject(self) -> Act | None:
        if (found := await self._proposal("Reject held ticks")) is None:
            return None
        note = await self.ask(AskLine(f"{hold_words.rejection_text(found.hold)}. Why?"))
        return None if note is None else proposals.reject(found, note, self.options.actor)

    async def _proposal(self, title: str) -> HoldDetail | None:
        """The proposal under the cursor, or that of the held tick there, if it is open still."""
        match self.subject:
            case OfProposal(_, proposal_id):
                reading = _proposal_by_id(proposal_id)
            case OfTick(job, scheduled_at, is_held=True):
                reading = _proposal_of_tick(job, scheduled_at)
            case _:
                return None
        found: HoldDetail | None = await self.read_for(title, reading)
        if found is not None and found.ticks is None:
            self.say(f"proposal {found.hold.proposal_id} is {found.hold.state.value} already", is_error=True)
            return None
        return found

    @asks
    async def action_skip_next(self) -> Act | None:
        if (job := self.job_under_cursor) is None or self._overview is None:
            return None
        tick = self._tick
        if tick is not None and tick <= self._overview.now:
            tick = None  # it is not ahead: the job's next one is meant
        which = "the next tick" if tick is None else f"the tick {iso_instant(tick)}"
        why = await self.ask(AskLine(f"Let {which} of {job} not run: why?"))
        return None if why is None else ticks.skip_next(job, tick, why, self.options.actor)

    @asks
    async def action_backfill(self) -> Act | None:
        if (job := self.job_under_cursor) is None or self._overview is None:
            return None
        now = self._overview.now
        question = f"Backfill {job}: which ticks?"
        text = await self.ask(
            AskLine(
                question, about=_RANGE, take=lambda typed: backfill_words.parse_stretch(typed, now), is_followed=True
            )
        )
        if text is None:
            return None
        stretch = ticks.Stretch(job, *backfill_words.parse_stretch(text, now))
        plan = await self.read_for(f"Backfill {job}", ticks.planned_backfill(stretch))
        if plan is None:
            return None
        words = backfill_words.plan_words(plan, self._overview.now, self._overview.settings)
        if not plan.runs:
            self.say(words)
            return None
        note = await self.ask(AskLine(f"{words}. Why?"))
        return None if note is None else ticks.backfill(plan, stretch, note, self.options.actor)

    @asks
    async def action_cancel(self) -> Act | None:
        if (job := self.job_under_cursor) is None or self._overview is None:
            return None
        tick = self._tick
        found = await self.read_for(
            f"Cancel what runs of {job}",
            lambda store: _states_of(store.operations, store.edits.find_job(job).job_id, tick),
        )
        if not found:
            if found is not None:
                self.say(f"nothing of {job} runs or waits now")
            return None
        what = (
            f"the tick {instant(tick, self._overview.now)}" if tick is not None else _what_stops(list(found.values()))
        )
        consequence = "SIGTERM, then SIGKILL after its kill_after. Not to be undone."
        is_sure = await self.ask(Confirm(f"Cancel {what} of {job}?", consequence))
        return ticks.cancel(job, tick, list(found), "cancelled in the console", self.options.actor) if is_sure else None

    @asks
    async def action_run_again(self) -> Act | None:
        job, tick = self.job_under_cursor, self._tick
        if job is None or tick is None:
            return None
        why = await self.ask(AskLine(f"Run {job} {iso_instant(tick)} once more: why?"))
        return None if why is None else ticks.run_again(job, tick, why, self.options.actor)

    @property
    def _held_tick(self) -> datetime | None:
        """The held tick under the cursor."""
        return self.subject.tick if isinstance(self.subject, OfProposal) else self._tick

    @property
    def _tick(self) -> datetime | None:
        """The tick under the cursor; None where a whole job is."""
        match self.subject:
            case OfTick(_, scheduled_at) | OfRun(_, scheduled_at):
                return scheduled_at
            case _:
                return None


def _proposal_by_id(proposal_id: int) -> Callable[[Store], HoldDetail]:
    return lambda store: store.reads.hold(proposal_id)


def _proposal_of_tick(job: str, scheduled_at: datetime) -> Callable[[Store], HoldDetail]:
    """Reads the proposal that holds a tick."""

    def read(store: Store) -> HoldDetail:
        proposal = tick_explanation.explain(store.reads.tick_facts(job, scheduled_at)).proposal
        if proposal is None:
            raise Refused(f"the tick {iso_instant(scheduled_at)} of {job} is not held")
        return store.reads.hold(proposal.proposal_id)

    return read


def _states_of(operations: OperationStore, job_id: int, tick: datetime | None) -> dict[datetime, State]:
    """Of the tick's claim, or of all of the job's that could be stopped."""
    return operations.states(job_id, None if tick is None else [tick])


def _what_stops(states: Sequence[State]) -> str:
    running = states.count(State.RUNNING)
    parts = [plural(running, "run")] if running else []
    parts += [f"{plural(len(states) - running, 'waiting tick')}"] if len(states) > running else []
    return " and ".join(parts)
