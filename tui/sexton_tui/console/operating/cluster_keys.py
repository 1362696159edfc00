"""Keys that act on the whole cluster, its nodes and its workers."""

from __future__ import annotations

from textual import work

from sexton.errors import SextonError
from sexton_tui.console.acts import cluster
from sexton_tui.console.core.standing import ahead_words, forceable_words
from sexton_tui.console.core.subjects import OfNode, OfWorker
from sexton_tui.console.operating.acting import WRITE_WITHIN, Acting
from sexton_tui.console.widgets.dialogs import AskLine, Confirm


class ClusterKeys(Acting):
    """Leadership, the halt, the clock; a worker's drain."""

    @work
    async def action_drain(self) -> None:
        if isinstance(about := self.subject, OfWorker):
            consequence = "It takes no more claims, finishes its runs and ends; a supervisor may start it again."
            if await self.push_screen_wait(Confirm(f"Drain worker {about.worker}?", consequence)):
                await self.act(cluster.drain(about.worker, self.options.actor))

    @work
    async def action_resign(self) -> None:
        leader = None if self._overview is None else self._overview.leader
        question = f"Ask {leader or 'the leader'} to hand over?"
        if await self.push_screen_wait(Confirm(question, "Another node takes over within milliseconds.")):
            await self.act(cluster.resign(self.options.actor))

    @work
    async def action_halt(self) -> None:
        if self._overview is not None and self._overview.is_halted:
            consequence = (
                "What fell due meanwhile runs late if it is within its grace; older ticks go by each job's policy."
            )
            if await self.push_screen_wait(Confirm("Lift the halt?", consequence)):
                await self.act(cluster.lift(self.options.actor))
            return
        why = await self.push_screen_wait(AskLine("Halt the cluster: no tick decided, no claim granted. Why?"))
        if why is not None:
            await self.act(cluster.halt(why, self.options.actor))

    @work
    async def action_force_leader(self) -> None:
        about = "" if self._overview is None else forceable_words(self._overview)
        question = "Force which node to lead, whatever ZooKeeper says?"
        under_cursor = self.subject.node if isinstance(self.subject, OfNode) else ""
        node = await self.push_screen_wait(AskLine(question, value=under_cursor, about=about))
        if node is not None and await self.push_screen_wait(
            Confirm(f"Force {node.strip()} to lead?", "The others stand aside until it is confirmed.")
        ):
            await self.act(cluster.force(node.strip(), self.options.actor))

    @work
    async def action_accept_clock(self) -> None:
        if self._overview is not None and all(node.clock_jump is None for node in self._overview.nodes):
            self.say("no node doubts the database's clock: there is nothing to accept")
            return
        consequence = "Look at the clock of its machine first: ticks up to what it reads are decided."
        if await self.push_screen_wait(Confirm("Take the database's clock for the truth?", consequence)):
            await self.act(cluster.accept_clock(self.options.actor))

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
                self.say(await self._errands(lambda _: kill(), WRITE_WITHIN))
            except TimeoutError:
                self.say("killing the leader takes long; whether it is dead is not known yet", is_error=True)
            except (SextonError, OSError) as error:
                self.say(str(error), is_error=True)
            self._wake.set()
