"""Keys that act on the whole cluster, its nodes and its workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import work

from sexton.errors import SextonError
from sexton_tui.console.acts import Act
from sexton_tui.console.core.standing import ahead_words, forceable_words, halt_words
from sexton_tui.console.core.subjects import OfNode, OfWorker
from sexton_tui.console.loading import later
from sexton_tui.console.operating.acting import WRITE_WITHIN, Acting
from sexton_tui.console.operating.asking import asks
from sexton_tui.console.widgets.dialogs import AskLine, Confirm

if TYPE_CHECKING:
    from sexton_tui.console.acts import cluster
else:  # the first screen waits for none of it
    cluster = later("sexton_tui.console.acts.cluster")


class ClusterKeys(Acting):
    """Leadership, the halt, the clock; a worker's drain."""

    @asks
    async def action_drain(self) -> Act | None:
        if not isinstance(about := self.subject, OfWorker):
            return None
        consequence = "It takes no more claims, finishes its runs and ends; a supervisor may start it again."
        is_sure = await self.ask(Confirm(f"Drain worker {about.worker}?", consequence))
        return cluster.drain(about.worker, self.options.actor) if is_sure else None

    @asks
    async def action_resign(self) -> Act | None:
        leader = None if self._overview is None else self._overview.leader
        question = f"Ask {leader or 'the leader'} to hand over?"
        is_sure = await self.ask(Confirm(question, "Another node takes over within milliseconds."))
        return cluster.resign(leader, self.options.actor) if is_sure else None

    @asks
    async def action_halt(self) -> Act | None:
        if self._overview is not None and self._overview.is_halted:
            halt, who = self._overview.halt, halt_words(self._overview)
            told = f"It is halted{who}. " if who else ""
            late = "What fell due meanwhile runs late if it is within its grace; older ticks go by each job's policy."
            is_sure = await self.ask(Confirm("Lift the halt?", told + late))
            return cluster.lift(halt, self.options.actor) if is_sure else None
        why = await self.ask(AskLine("Halt the cluster: no tick decided, no claim granted. Why?"))
        return None if why is None else cluster.halt(why, self.options.actor)

    @asks
    async def action_force_leader(self) -> Act | None:
        about = "" if self._overview is None else forceable_words(self._overview)
        question = "Force which node to lead, whatever ZooKeeper says?"
        under_cursor = self.subject.node if isinstance(self.subject, OfNode) else ""
        node = await self.ask(AskLine(question, value=under_cursor, about=about, is_followed=True))
        if node is None:
            return None
        is_sure = await self.ask(Confirm(f"Force {node} to lead?", "The others stand aside until it is confirmed."))
        return cluster.force(node, self.options.actor) if is_sure else None

    @asks
    async def action_accept_clock(self) -> Act | None:
        if self._overview is not None and all(node.clock_jump is None for node in self._overview.nodes):
            self.say("no node doubts the database's clock: there is nothing to accept")
            return None
        consequence = "Look at the clock of its machine first: ticks up to what it reads are decided."
        is_sure = await self.ask(Confirm("Take the database's clock for the truth?", consequence))
        return cluster.accept_clock(self.options.actor) if is_sure else None

    @asks
    async def action_kill_leader(self) -> None:
        if (kill := self.options.kill_leader) is None:
            return
        leader = None if self._overview is None else self._overview.leader
        ahead = "" if self._overview is None else ahead_words(self._overview)
        if await self.ask(Confirm(f"Kill {leader or 'the leader'}?", f"With SIGKILL, as a crash would. {ahead}")):
            self._kill(kill)

    @work
    async def _kill(self, kill: Callable[[], str]) -> None:
        try:
            self.say(await self._errands(lambda _: kill(), WRITE_WITHIN))
        except TimeoutError:
            self.say("killing the leader takes long; whether it is dead is not known yet", is_error=True)
        except (SextonError, OSError) as error:
            self.say(str(error), is_error=True)
        self._wake.set()
