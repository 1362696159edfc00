"""What a Python job may ask about its own run: ``from sexton_worker.context import context``; ``context().token``."""

from sexton.run_context import RunContext, context

__all__ = ["RunContext", "context"]
