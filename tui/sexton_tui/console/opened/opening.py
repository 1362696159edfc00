"""Which screen a subject opens into."""

from __future__ import annotations

from sexton_tui.console.calls import Calling
from sexton_tui.console.core.subjects import OfJob, OfRun, Subject
from sexton_tui.console.opened.job import JobScreen
from sexton_tui.console.opened.run import RunScreen
from sexton_tui.console.opened.screen import OpenedScreen


def screen_for(subject: Subject, writes: Calling | None, *, ascii_only: bool) -> OpenedScreen | None:
    """The screen; None where the subject is all that there is to see of it. ``writes`` None: nothing may be changed."""
    match subject:
        case OfJob(job):
            return JobScreen(job, ascii_only=ascii_only)
        case OfRun():
            return RunScreen(subject, writes, ascii_only=ascii_only)
        case _:
            return None
