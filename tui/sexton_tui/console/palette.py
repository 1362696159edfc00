"""The command palette, and what it finds: panes, the acts that are offered now, and jobs by their name, fuzzily. Names
are cleaned, and never markup."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from textual.await_complete import AwaitComplete
from textual.binding import Binding
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.fuzzy import FuzzySearch

from sexton_tui.console.core.keys import PANES
from sexton_tui.console.core.lines import clean
from sexton_tui.console.core.subjects import OfJob

if TYPE_CHECKING:
    from sexton_tui.console.polling import Polling

_MOST = 20


class SextonPalette(CommandPalette):
    """Textual's palette, that bears to be answered twice in one breath, and to have no line to show its list in."""

    def dismiss(self, result: None = None) -> AwaitComplete:
        return super().dismiss(result) if self.is_current else AwaitComplete()

    def _action_command_list(self, action: str) -> None:
        if self.query_one(CommandList).scrollable_content_region:
            super()._action_command_list(action)


class SextonCommands(Provider):
    """Panes, acts and jobs."""

    @property
    def _console(self) -> Polling:
        from sexton_tui.console.polling import Polling

        console = self.app
        assert isinstance(console, Polling)  # noqa: S101 - it is the console's palette
        return console

    def _commands(self) -> Iterator[tuple[str, str, str]]:
        """Title, action and help of the panes, and of what the keys would do now."""
        for pane in PANES:
            yield pane.title, f"pane('{pane.id}')", f"the pane of key {pane.key}"
        for binding in self.app.BINDINGS:
            is_plain = isinstance(binding, Binding) and "(" not in binding.action
            if isinstance(binding, Binding) and is_plain and self.app.check_action(binding.action, ()):
                yield binding.description, binding.action, f"key {self.app.get_key_display(binding)}"

    async def discover(self) -> Hits:
        for title, action, told in self._commands():
            yield DiscoveryHit(title, partial(self.app.run_action, action), help=told)

    async def search(self, query: str) -> Hits:
        fuzzy = FuzzySearch()
        for title, action, told in self._commands():
            score, places = fuzzy.match(query, title)
            if score:
                yield Hit(score, _marked(title, places), partial(self.app.run_action, action), help=told)
        for name in await self._console.find_jobs(query, _MOST):
            score, places = fuzzy.match(query, clean(name))
            open_job = partial(self._console.open, OfJob(name))
            yield Hit(score or 0.1, _marked(clean(name), places), open_job, text=clean(name), help="open the job")


def _marked(text: str, places: object) -> Content:
    content = Content(text)
    for place in places if isinstance(places, tuple | list) else ():
        content = content.stylize("bold", place, place + 1)
    return content
