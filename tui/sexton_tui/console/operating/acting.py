"""How an act is carried out: on a thread of its own, answered with a sentence, and undone where anything undoes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from sexton.errors import DatabaseUnreachable, SextonError
from sexton_tui.console.acts import Act, Undo
from sexton_tui.console.acts.sending import Sending
from sexton_tui.console.calls import Calls
from sexton_tui.console.core.lines import line
from sexton_tui.console.core.offers import offered
from sexton_tui.console.core.standing import forceable
from sexton_tui.console.core.subjects import Subject, job_of
from sexton_tui.console.operating.asking import Asking, asks
from sexton_tui.console.options import ConsoleOptions
from sexton_tui.console.widgets.dialogs import Confirm

if TYPE_CHECKING:  # the first screen waits for none of it
    from sexton.cluster_views import Overview
    from sexton.store.protocol import Store

WRITE_WITHIN = 8.0
_NOT_SENT = "not done: the database cannot be reached, and nothing of it was sent"
_UNKNOWN = "outcome unknown: the answer did not come. Pane 8 lists what was done, once the database answers"
_MOST_UNDONE = 20


class Acting(Asking):
    """Acts have threads of their own: no read can hold them up."""

    def __init__(self, options: ConsoleOptions, open_store: Callable[[], Store]) -> None:
        super().__init__()
        self.options = options
        self._writes = Calls(open_store, "console actions")
        self._errands: Calls[None] = Calls(lambda: None, "console errands")
        self._wake = asyncio.Event()  # set: read now
        self._overview: Overview | None = None
        self._undos: list[Undo] = []

    @property
    def subject(self) -> Subject | None:
        """What an act would be about."""
        return None

    @property
    def job_under_cursor(self) -> str | None:
        """The job that an act would be about."""
        return job_of(self.subject)

    def offers(self, action: str) -> bool | None:
        """Whether the key of this action is offered now; None where it changes nothing."""
        return offered(
            action,
            self.subject,
            read_only=self.options.read_only,
            can_kill=self.options.kill_leader is not None,
            can_undo=bool(self._undos),
            can_force=self._overview is None or bool(forceable(self._overview)),
        )

    async def act(self, act: Act) -> None:
        """Carry out an act and say what became of it."""
        if self.options.read_only:
            self.say("started read-only: nothing was changed", is_error=True)
            return
        sending = Sending(act)
        try:
            done = await self._writes(sending, WRITE_WITHIN)
        except (TimeoutError, DatabaseUnreachable):
            self.say(_NOT_SENT if sending.give_up() else _UNKNOWN, is_error=True)
        except SextonError as error:
            self.say(str(error), is_error=True)
        except Exception as error:  # a role that may only read, say: told, and the console goes on
            self.say(f"not done: {type(error).__name__}: {error}".partition("\n")[0], is_error=True)
        else:
            if done.undo is not None:
                self._undos = [*self._undos[1 - _MOST_UNDONE :], done.undo]
            self.say(done.sentence + ("; u undoes it" if done.undo is not None else ""))
        self.refresh_bindings()
        self._wake.set()

    @asks
    async def action_undo(self) -> Act | None:
        if not self._undos:
            return None
        undo = self._undos[-1]
        if not await self.ask(Confirm(f"Undo {undo.what}?", "It is recorded as an act of its own.")):
            return None
        self._undos = [one for one in self._undos if one is not undo]
        return undo.act

    async def action_quit(self) -> None:
        """Leave; where more ends with the console than itself, only after a yes."""
        if self.options.leaving_ends:
            self._ask_to_leave()
        else:
            self.exit()

    @asks
    async def _ask_to_leave(self) -> None:
        if await self.ask(Confirm("Leave, and stop the cluster?", self.options.leaving_ends)):
            self.exit()

    def say(self, text: str, *, is_error: bool = False) -> None:
        """A toast; its text is cleaned and never markup."""
        severity: Literal["error", "information"] = "error" if is_error else "information"
        seconds = self.options.toast_seconds * (1.6 if is_error else 1)
        self.notify(line(text).text, severity=severity, markup=False, timeout=seconds)
