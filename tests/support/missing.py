"""The error of a test whose server is not installed."""

from __future__ import annotations


class MissingServerError(RuntimeError):
    """A program that the tests need is not installed; the message names the Debian package."""
