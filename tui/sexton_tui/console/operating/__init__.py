"""The keys that change something: asked for, confirmed, carried out on a thread, and answered with a sentence."""

from __future__ import annotations

from textual.binding import Binding, BindingType
from textual.events import Key
from textual.screen import ModalScreen

from sexton_tui.console.core.offers import why_not
from sexton_tui.console.operating.cluster_keys import ClusterKeys
from sexton_tui.console.operating.job_keys import JobKeys
from sexton_tui.console.operating.tick_keys import TickKeys

OPERATING_BINDINGS: list[BindingType] = [
    Binding("e", "explain", "explain"),
    Binding("a", "approve", "approve"),
    Binding("x", "reject", "reject"),
    Binding("p", "pause", "pause"),
    Binding("r", "resume", "resume"),
    Binding("t", "trigger", "trigger"),
    Binding("s", "skip_next", "skip next"),
    Binding("b", "backfill", "backfill"),
    Binding("c", "cancel", "cancel"),
    Binding("o", "run_again", "once more"),
    Binding("d", "drain", "drain"),
    Binding("u", "undo", "undo"),
    Binding("P", "pause_all", "pause all", show=False),
    Binding("R", "resign", "resign"),
    Binding("h", "halt", "halt", show=False),
    Binding("F", "force_leader", "force", show=False),
    Binding("C", "accept_clock", "accept the clock", show=False),
    Binding("K", "kill_leader", "kill"),
]


_ACTIONS = {one.key: one.action for one in OPERATING_BINDINGS if isinstance(one, Binding)}


class Operating(JobKeys, TickKeys, ClusterKeys):
    """What an operator can do. Of a key that can do nothing here it is said what it wants; what is typed behind it was
    meant for its dialog, and is no key of a pane."""

    def on_key(self, event: Key) -> None:
        action = _ACTIONS.get(event.key, "")
        if action and self.offers(action) is False and not self._is_elsewhere and (why := why_not(action)):
            self.say(why, is_error=True)
            self.swallow_keys()

    @property
    def _is_elsewhere(self) -> bool:
        """Whether keys are letters, or this console offers none that changes anything."""
        return self.options.read_only or isinstance(self.screen, ModalScreen)


__all__ = ["OPERATING_BINDINGS", "Operating"]
