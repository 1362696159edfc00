"""The keys that change something: asked for, confirmed, carried out on a thread, and answered with a sentence."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any, Literal

from textual import work
from textual.app import App
from textual.binding import Binding, BindingType

from sexton.cluster_views import Overview
from sexton.errors import DatabaseUnreachable, SextonError
from sexton.hold_views import HoldDetail
from sexton.store.protocol import Store
from sexton_tui.console import actions
from sexton_tui.console.calls import Calls
from sexton_tui.console.core.lines import line
from sexton_tui.console.core.standing import ahead_words, forceable_words
from sexton_tui.console.core.subjects import OfProposal, Subject, crumb, job_of
from sexton_tui.console.options import ConsoleOptions
from sexton_tui.console.widgets.dialogs import AskLine, Confirm
from sexton_tui.console.widgets.hold_dialog import ApproveDialog

WRITE_WITHIN = 8.0
OPERATING_BINDINGS: list[BindingType] = [
    Binding("p", "pause", "pause"),
    Binding("r", "resume", "resume"),
    Binding("t", "trigger", "trigger"),
    Binding("a", "approve", "approve"),
    Binding("x", "reject", "reject"),
    Binding("R", "resign", "resign"),
    Binding("h", "halt", "halt", show=False),
    Binding("F", "force_leader", "force", show=False),
    Binding("C", "accept_clock", "accept the clock", show=False),
    Binding("K", "kill_leader", "kill"),
]
_OF_A_JOB = ("pause", "resume", "trigger")
_OF_THE_CLUSTER = ("resign", "halt", "force_leader", "accept_clock")


class Operating(App[None]):
    """What an operator can do. Actions have threads of their own: no read can hold them up."""

    def __init__(self, options: ConsoleOptions, open_store: Callable[[], Store]) -> None:
        super().__init__()
        self.options = options
        self._writes = Calls(open_store, "console actions")
        self._errands: Calls[None] = Calls(lambda: None, "console errands")
        self._wake = asyncio.Event()  # set: read now
        self._overview: Overview | None = None

    @property
    def subject(self) -> Subject | None:
        """What an action would be about."""
        return None

    @property
    def job_under_cursor(self) -> str | None:
        """The job that an action would be about."""
        return job_of(self.subject)

    def offers(self, action: str) -> bool | None:
        """Whether the key of this action is offered now; None where it changes nothing."""
        if action in _OF_A_JOB:
            return not self.options.read_only and self.job_under_cursor is not None
        if action in ("approve", "reject"):
            return not self.options.read_only and isinstance(self.subject, OfProposal)
        if action in _OF_THE_CLUSTER:
            return not self.options.read_only
        if action == "kill_leader":
            return not self.options.read_only and self.options.kill_leader is not None
        return None

    async def read(self, request: Callable[[Store], Any]) -> Any:
        """What was read; None after saying why not."""
        raise NotImplementedError

    @work
    async def action_pause(self) -> None:
        if (job := self.job_under_cursor) is not None:
            why = await self.push_screen_wait(AskLine(f"Pause {job}: why?"))
            if why is not None:
                await self._act(actions.pause(job, why, self.options.actor))

    @work
    async def action_resume(self) -> None:
        if (job := self.job_under_cursor) is not None:
            await self._act(actions.resume(job, self.options.actor))

    @work
    async def action_trigger(self) -> None:
        if (job := self.job_under_cursor) is not None and await self.push_screen_wait(
            Confirm(f"Run {job} once, now?", "It runs beside its schedule. This cannot be undone.")
        ):
            await self._act(actions.trigger(job, self.options.actor, f"console-{uuid.uuid4()}"))

    @work
    async def action_approve(self) -> None:
        if not isinstance(proposal := self.subject, OfProposal) or self._overview is None:
            return
        found: HoldDetail | None = await self.read(lambda store: store.reads.hold(proposal.proposal_id))
        if found is None:
            return
        if found.ticks is None:
            self._say(f"proposal {proposal.proposal_id} is {found.hold.state.value} already", is_error=True)
            return
        answer = await self.push_screen_wait(ApproveDialog(found, self._overview.now))
        if answer is not None:
            await self._act(actions.approve(found, *answer, self.options.actor))

    @work
    async def action_reject(self) -> None:
        if isinstance(proposal := self.subject, OfProposal):
            question = f"Reject {crumb(proposal)}: none of its ticks runs. Why?"
            note = await self.push_screen_wait(AskLine(question))
            if note is not None:
                await self._act(actions.reject(proposal.proposal_id, note, self.options.actor))

    @work
    async def action_resign(self) -> None:
        leader = None if self._overview is None else self._overview.leader
        question = f"Ask {leader or 'the leader'} to hand over?"
        if await self.push_screen_wait(Confirm(question, "Another node takes over within milliseconds.")):
            await self._act(actions.resign(self.options.actor))

    @work
    async def action_halt(self) -> None:
        if self._overview is not None and self._overview.is_halted:
            consequence = (
                "What fell due meanwhile runs late if it is within its grace; older ticks go by each job's policy."
            )
            if await self.push_screen_wait(Confirm("Lift the halt?", consequence)):
                await self._act(actions.lift(self.options.actor))
            return
        why = await self.push_screen_wait(AskLine("Halt the cluster: no tick decided, no claim granted. Why?"))
        if why is not None:
            await self._act(actions.halt(why, self.options.actor))

    @work
    async def action_force_leader(self) -> None:
        about = "" if self._overview is None else forceable_words(self._overview)
        question = "Force which node to lead, whatever ZooKeeper says?"
        node = await self.push_screen_wait(AskLine(question, about=about))
        if node is not None:
            await self._act(actions.force(node.strip(), self.options.actor))

    @work
    async def action_accept_clock(self) -> None:
        if self._overview is not None and all(node.clock_jump is None for node in self._overview.nodes):
            self._say("no node doubts the database's clock: there is nothing to accept")
            return
        consequence = "Look at the clock of its machine first: ticks up to what it reads are decided."
        if await self.push_screen_wait(Confirm("Take the database's clock for the truth?", consequence)):
            await self._act(actions.accept_clock(self.options.actor))

    @work
    async def action_kill_leader(self) -> None:
        kill = self.options.kill_leader
        if kill is None:
            return
        leader = None if self._overview is None else self._overview.leader
        ahead = "" if self._overview is None else ahead_words(self._overview)
        consequence = f"With SIGKILL, as a crash would. {ahead}"
        if await self.push_screen_wait(Confirm(f"Kill {leader or 'the leader'}?", consequence)):
            try:
                self._say(await self._errands(lambda _: kill(), WRITE_WITHIN))
            except TimeoutError:
                self._say("killing the leader takes long; whether it is dead is not known yet", is_error=True)
            except (SextonError, OSError) as error:
                self._say(str(error), is_error=True)
            self._wake.set()

    async def _act(self, action: actions.Action) -> None:
        """Carry out an action and say what became of it."""
        if self.options.read_only:
            self._say("started read-only: nothing was changed", is_error=True)
            return
        try:
            self._say(await self._writes(action, WRITE_WITHIN))
        except (TimeoutError, DatabaseUnreachable):
            self._say("outcome unknown: the answer did not come. Pane 8 lists what was done", is_error=True)
        except SextonError as error:
            self._say(str(error), is_error=True)
        self._wake.set()

    def _say(self, text: str, *, is_error: bool = False) -> None:
        """A toast; its text is cleaned and never markup."""
        severity: Literal["error", "information"] = "error" if is_error else "information"
        self.notify(line(text).text, severity=severity, markup=False, timeout=8 if is_error else 5)
