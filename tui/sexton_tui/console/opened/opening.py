"""Which screen a subject opens into. A screen's module loads when the first of its kind is opened."""

from __future__ import annotations

from collections.abc import Mapping

from sexton_tui.console.calls import Calling
from sexton_tui.console.core.subjects import (
    OfDecisions,
    OfEvent,
    OfJob,
    OfNode,
    OfProposal,
    OfQueue,
    OfRevision,
    OfRun,
    OfSetting,
    OfTakeover,
    OfTick,
    OfWorker,
    Subject,
)
from sexton_tui.console.loading import part
from sexton_tui.console.opened.screen import OpenedScreen

_HERE = "sexton_tui.console.opened"
SCREEN_PARTS: Mapping[type[Subject], str] = {
    OfJob: f"{_HERE}.job:JobScreen",
    OfRun: f"{_HERE}.run:RunScreen",
    OfTick: f"{_HERE}.tick:TickScreen",
    OfProposal: f"{_HERE}.proposal:ProposalScreen",
    OfTakeover: f"{_HERE}.takeover:TakeoverScreen",
    OfDecisions: f"{_HERE}.decisions:DecisionsScreen",
    OfWorker: f"{_HERE}.worker:WorkerScreen",
    OfQueue: f"{_HERE}.queue:QueueScreen",
    OfNode: f"{_HERE}.node:NodeScreen",
    OfEvent: f"{_HERE}.event:EventScreen",
    OfSetting: f"{_HERE}.setting:SettingScreen",
    OfRevision: f"{_HERE}.revision:RevisionScreen",
}
"""By the kind of subject; what has none is all that there is to see of it."""


def screen_for(subject: Subject, writes: Calling | None, *, ascii_only: bool) -> OpenedScreen | None:
    """The screen; None where the subject has none. ``writes`` None: nothing may be changed."""
    where = SCREEN_PARTS.get(type(subject))
    if where is None:
        return None
    screen = part(where)
    given = (subject, writes) if isinstance(subject, OfRun) else (subject,)
    opened: OpenedScreen = screen(*given, ascii_only=ascii_only)
    return opened
