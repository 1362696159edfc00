"""Which screen a subject opens into."""

from __future__ import annotations

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
from sexton_tui.console.opened.decisions import DecisionsScreen
from sexton_tui.console.opened.event import EventScreen
from sexton_tui.console.opened.job import JobScreen
from sexton_tui.console.opened.node import NodeScreen
from sexton_tui.console.opened.proposal import ProposalScreen
from sexton_tui.console.opened.queue import QueueScreen
from sexton_tui.console.opened.revision import RevisionScreen
from sexton_tui.console.opened.run import RunScreen
from sexton_tui.console.opened.screen import OpenedScreen
from sexton_tui.console.opened.setting import SettingScreen
from sexton_tui.console.opened.takeover import TakeoverScreen
from sexton_tui.console.opened.tick import TickScreen
from sexton_tui.console.opened.worker import WorkerScreen


def screen_for(subject: Subject, writes: Calling | None, *, ascii_only: bool) -> OpenedScreen | None:
    """The screen; None where the subject is all that there is to see of it. ``writes`` None: nothing may be changed."""
    match subject:
        case OfJob(job):
            return JobScreen(job, ascii_only=ascii_only)
        case OfRun():
            return RunScreen(subject, writes, ascii_only=ascii_only)
        case OfRevision():
            return RevisionScreen(subject, ascii_only=ascii_only)
        case OfTick():
            return TickScreen(subject, ascii_only=ascii_only)
        case OfTakeover():
            return TakeoverScreen(subject, ascii_only=ascii_only)
        case OfDecisions():
            return DecisionsScreen(subject, ascii_only=ascii_only)
        case OfProposal():
            return ProposalScreen(subject, ascii_only=ascii_only)
        case OfWorker():
            return WorkerScreen(subject, ascii_only=ascii_only)
        case OfQueue():
            return QueueScreen(subject, ascii_only=ascii_only)
        case OfNode():
            return NodeScreen(subject, ascii_only=ascii_only)
        case OfEvent():
            return EventScreen(subject, ascii_only=ascii_only)
        case OfSetting():
            return SettingScreen(subject, ascii_only=ascii_only)
        case _:
            return None
