"""``sexton leader``: ask the leader to hand over, or force a node to lead."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Annotated

import typer

from sexton.cluster_views import NodeView, Overview
from sexton.errors import NotFound, Refused
from sexton.store.protocol import Store
from sexton.terms import ClusterState
from sexton_tui.actor import actor
from sexton_tui.cli.completing import complete_node
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.output import Output, OutputOption, print_json
from sexton_tui.console.core.standing import is_race

WAIT_SECONDS = 10.0
_LOOK_SECONDS = 0.1
_FRESH = timedelta(seconds=15)  # whoever was not heard of for longer cannot be forced

leader = typer.Typer(
    help="Ask the leader to hand over, or force a node to lead.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@leader.callback()
def _leader() -> None:
    """Commands about who leads."""


@leader.command("resign")
def resign(ctx: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Ask the leader to hand over to another node; it does so within its next step."""
    with open_cluster(ctx) as store:
        _refuse_in_race(store.reads.overview())
        name = store.edits.request_resign(actor())
    if name is None:
        raise Refused("nobody leads, so nobody can resign", hint="`sexton cluster` shows the nodes")
    if output is Output.TABLE:
        print(f"{name} is asked to resign; `sexton takeovers` shows who follows")
    else:
        print_json({"asked": name})


@leader.command("force")
def force(
    ctx: typer.Context,
    node: Annotated[
        str,
        typer.Argument(
            metavar="[NODE]", help="As `sexton cluster` names it.", autocompletion=complete_node, show_default=False
        ),
    ] = "",
    lift: Annotated[bool, typer.Option("--lift", help="End the force that stands instead.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Have this node lead, whatever ZooKeeper says, and wait up to 10 s until it does.

    The others stand aside until ZooKeeper has confirmed it. The force lapses by itself when the node is not heard of
    for 15 s; `--lift` ends it while its node lives.
    """
    if lift == bool(node):
        raise typer.BadParameter("name the node to force, or give --lift alone")
    if lift:
        _lift(ctx, output)
        return
    with open_cluster(ctx) as store:
        overview = store.reads.overview()
        _refuse_in_race(overview)
        _check(overview, node)
        if overview.leader == node and overview.confirmation == "confirmed":
            _tell(store.terms.cluster(), output, already=True)
            return
        if not store.edits.force_leader(node, actor()):
            _check(store.reads.overview(), node)
            raise Refused(f"{node} could not be forced", hint="`sexton cluster` shows the nodes; try again")
        _tell(_await(store, node), output)


def _lift(ctx: typer.Context, output: Output) -> None:
    with open_cluster(ctx) as store:
        node = store.edits.lift_force(actor())
    if output is not Output.TABLE:
        print_json({"lifted": node})
    elif node is None:
        print("no force stands; nothing was changed")
    else:
        print(f"the force to {node} is lifted: the coordinator decides again who leads")


def _refuse_in_race(overview: Overview) -> None:
    if is_race(overview):
        raise Refused("the strategy is race: nobody leads", hint="`sexton strategy leader` has one node lead")


def _check(overview: Overview, name: str) -> None:
    """Raise NotFound or Refused where this node could not lead."""
    able = ", ".join(node.name for node in overview.nodes if _why_not(overview, node) is None)
    hint = f"these could lead: {able}" if able else "no node could lead; start `sexton scheduler`"
    found = next((node for node in overview.nodes if node.name == name), None)
    if found is None:
        raise NotFound(f"no node {name} was heard of in the last 10 minutes", hint=hint)
    if why_not := _why_not(overview, found):
        raise Refused(why_not, hint=hint)


def _why_not(overview: Overview, node: NodeView) -> str | None:
    if node.age > _FRESH:
        return f"node {node.name} was last heard of {node.age.total_seconds():.0f} s ago"
    if node.inputs_id != overview.inputs_id:
        return f"node {node.name} may not lead: its inputs are {node.inputs_id}, the cluster's are {overview.inputs_id}"
    return None


def _await(store: Store, node: str) -> ClusterState:
    """The cluster once the node leads; raises Refused after 10 s."""
    until = time.monotonic() + WAIT_SECONDS
    while True:
        state = store.terms.cluster()
        if state.leader == node:
            return state
        if time.monotonic() >= until:
            break
        time.sleep(_LOOK_SECONDS)
    leads = f"{state.leader} leads" if state.leader else "nobody leads"
    stands = "the force stands" if state.forced_to == node else "the force has lapsed, or another led meanwhile"
    raise Refused(
        f"{node} does not lead after {WAIT_SECONDS:.0f} s: {leads}, term {state.term}, and {stands}",
        hint=f"look at {node}'s log and at `sexton cluster`",
    )


def _tell(state: ClusterState, output: Output, *, already: bool = False) -> None:
    if output is not Output.TABLE:
        waits = state.forced_to is not None
        print_json({"leader": state.leader, "term": state.term, "already": already, "awaits_confirmation": waits})
        return
    print(f"{state.leader} leads{' already' if already else ''}, term {state.term}")
