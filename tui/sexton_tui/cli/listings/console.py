"""``sexton console``: the operator's screen."""

from __future__ import annotations

from typing import Annotated

import typer

from sexton_tui.actor import actor
from sexton_tui.cli.invocation import checked_database


def console(
    ctx: typer.Context,
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer no action.")] = False,
    ascii: Annotated[bool, typer.Option("--ascii", help="Draw with ASCII alone.")] = False,  # noqa: A002 - the option
) -> int:
    """Watch the cluster, and operate it. `?` tells the keys."""
    from sexton_tui.console.app import ConsoleOptions, run_console

    url = checked_database(ctx)
    return run_console(ConsoleOptions(database_url=url, read_only=read_only, ascii=ascii, actor=actor()))
