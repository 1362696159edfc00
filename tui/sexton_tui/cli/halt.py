"""``sexton halt``: stop all decisions and grants, durably, until the halt is lifted."""

from __future__ import annotations

from typing import Annotated

import typer

from sexton.cluster_views import Halt
from sexton.errors import InvalidInput
from sexton.store.protocol import HaltChange
from sexton_tui.actor import actor
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.output import Output, OutputOption, instant_text, print_record

_LONGEST_REASON = 1_000


def halt(
    ctx: typer.Context,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; shown wherever the halt is.")] = "",
    lift: Annotated[bool, typer.Option("--lift", help="End the halt instead.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Decide no tick and grant no claim from now on, whoever leads, until `sexton halt --lift`.

    Runs that run go on, and their results count. Edits and triggers are taken, and wait. Once the halt is lifted,
    what fell due meanwhile runs late if it is within its job's grace; older ticks go by the policy for missed ticks.
    """
    if lift and reason:
        raise typer.BadParameter("--reason says why the cluster is halted; it does not go with --lift")
    if not reason.isprintable():
        raise InvalidInput("--reason holds a line break or a control character", hint="write it on one line")
    if len(reason) > _LONGEST_REASON:
        raise typer.BadParameter(f"--reason has more than {_LONGEST_REASON} characters")
    with open_cluster(ctx) as store:
        done = store.edits.lift_halt(actor()) if lift else store.edits.halt(actor(), reason)
    if output is not Output.TABLE:
        print_record({"is_halted": not lift, "changed": done.changed, "halt": done.halt}, output)
    elif lift:
        print(_lifted(done))
    else:
        print(_halted(done))


def halt_text(halt: Halt | None) -> str:
    """Since when, by whom and why; empty where that is not known."""
    if halt is None:
        return ""
    why = f": {halt.reason}" if halt.reason else ""
    return f", since {instant_text(halt.at)} by {halt.by}{why}"


def _halted(done: HaltChange) -> str:
    if not done.changed:
        return f"the cluster is halted already{halt_text(done.halt)}; `sexton halt --lift` ends it"
    return "the cluster is halted: no tick is decided and no claim is granted until `sexton halt --lift`"


def _lifted(done: HaltChange) -> str:
    if not done.changed:
        return "the cluster is not halted; nothing was changed"
    return (
        f"the halt is lifted (it stood{halt_text(done.halt).removeprefix(',')})" if done.halt else "the halt is lifted"
    )
