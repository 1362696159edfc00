"""A job, opened: its parts side by side, one of them shown."""

from sexton_tui.console.opened.job.screen import JobScreen

__all__ = ["JobScreen"]
