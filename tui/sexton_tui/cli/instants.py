"""Instants as they are typed on a command line."""

from __future__ import annotations

from datetime import UTC, datetime

import typer


def parse_instant(text: str, option: str) -> datetime:
    """A UTC instant from ISO 8601 text with a zone; raises a usage error that names the option."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{option}: {text!r} is not an instant; write e.g. 2026-03-29T01:00:00Z") from None
    if instant.tzinfo is None:
        in_utc = instant.isoformat()  # a date alone is its midnight
        raise typer.BadParameter(f"{option}: {text!r} has no zone; write {in_utc}Z for UTC, or an offset like +01:00")
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise typer.BadParameter(f"{option}: {text!r} lies outside the years 1 to 9999 in UTC") from None
