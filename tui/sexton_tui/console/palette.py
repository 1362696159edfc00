"""What the command palette finds: jobs by their name, fuzzily, and the panes. Names are cleaned, and never markup."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.fuzzy import FuzzySearch

from sexton_tui.console.core.keys import PANES
from sexton_tui.console.core.lines import clean
from sexton_tui.console.core.subjects import OfJob

if TYPE_CHECKING:
    from sexton_tui.console.polling import Polling

_MOST = 20


class SextonCommands(Provider):
    """Jobs and panes."""

    @property
    def _console(self) -> Polling:
        from sexton_tui.console.polling import Polling

        console = self.app
        assert isinstance(console, Polling)  # noqa: S101 - it is the console's palette
        return console

    async def discover(self) -> Hits:
        for pane in PANES:
            choose = partial(self.app.run_action, f"pane('{pane.id}')")
            yield DiscoveryHit(pane.title, choose, help=f"the pane of key {pane.key}")

    async def search(self, query: str) -> Hits:
        fuzzy = FuzzySearch()
        for pane in PANES:
            score, places = fuzzy.match(query, pane.title)
            if score:
                choose = partial(self.app.run_action, f"pane('{pane.id}')")
                yield Hit(score, _marked(pane.title, places), choose, help=f"the pane of key {pane.key}")
        for name in await self._console.find_jobs(query, _MOST):
            score, places = fuzzy.match(query, clean(name))
            open_job = partial(self._console.open, OfJob(name))
            yield Hit(score or 0.1, _marked(clean(name), places), open_job, text=clean(name), help="open the job")


def _marked(text: str, places: object) -> Content:
    content = Content(text)
    for place in places if isinstance(places, tuple | list) else ():
        content = content.stylize("bold", place, place + 1)
    return content
