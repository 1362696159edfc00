"""``sexton strategy``: whether one node leads or all of them race, and the switch between the two."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from sexton.cluster_views import Overview
from sexton.errors import Refused
from sexton.store.protocol import Store
from sexton.terms import Strategy
from sexton_tui.actor import actor
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.output import Output, OutputOption, print_record
from sexton_tui.console.core.leadership import race_cost, race_counts
from sexton_tui.console.core.standing import living, racers
from sexton_tui.console.core.words import plural

WAIT_SECONDS = 10.0
_LOOK_SECONDS = 0.1


def strategy(
    ctx: typer.Context,
    wanted: Annotated[
        Strategy | None, typer.Argument(metavar="[leader|race]", help="The strategy to switch to.", show_default=False)
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the cluster's strategy, or switch it while everything runs.

    leader: one node, elected, decides all ticks; the others stand by. race: every node decides, without a coordinator,
    and the database says whose decision counts. The switch raises the term, so that what was begun under the other
    strategy writes nothing more; it is recorded, and waited for up to 10 s.
    """
    if wanted is None:
        with open_cluster(ctx, read_only=True) as store:
            overview = store.reads.overview()
        _tell(overview, output)
        return
    with open_cluster(ctx) as store:
        if store.terms.cluster().strategy is not wanted:
            store.edits.set_setting("strategy", wanted.value, actor())
        _tell(_await(store, wanted), output)


def _await(store: Store, wanted: Strategy) -> Overview:
    """The cluster once its nodes go by the new strategy, or after 10 s; raises Refused where another was set then."""
    until = time.monotonic() + WAIT_SECONDS
    while True:
        overview = store.reads.overview()
        if overview.strategy != wanted.value:
            raise Refused(f"the strategy is {overview.strategy} again: somebody set it meanwhile", hint="sexton events")
        if _is_at_work(overview) or not living(overview) or time.monotonic() >= until:
            return overview
        time.sleep(_LOOK_SECONDS)


def _is_at_work(overview: Overview) -> bool:
    """Somebody decides ticks by the strategy that is set."""
    if overview.strategy == Strategy.RACE:
        able = [node for node in living(overview) if node.inputs_id == overview.inputs_id]
        return bool(able) and len(racers(overview)) >= len(able)
    return overview.leader is not None


def _tell(overview: Overview, output: Output) -> None:
    if output is not Output.TABLE:
        print_record(_record(overview), output)
        return
    print(f"{overview.strategy}, term {overview.term}: {_who(overview)}")
    if overview.strategy == Strategy.RACE and race_counts(overview).attempts:
        print(race_cost(overview))


def _who(overview: Overview) -> str:
    others = plural(len(living(overview)), "node")
    if overview.strategy == Strategy.RACE:
        count = len(racers(overview))
        return f"{plural(count, 'node')} race{'s' if count == 1 else ''}" + ("" if count else f" yet, of {others}")
    if overview.leader is not None:
        return f"{overview.leader} leads"
    before = f"now, {overview.predecessor} did before" if overview.predecessor else "yet"
    if not living(overview):
        return f"nobody leads {before}: no node lives"
    return f"nobody leads {before}, of {others}; `sexton cluster` shows them"


def _record(overview: Overview) -> dict[str, Any]:
    return {
        "strategy": overview.strategy,
        "term": overview.term,
        "since": overview.leader_since if overview.strategy == Strategy.RACE else None,
        "leader": overview.leader,
        "racers": [node.name for node in racers(overview)],
        "race": race_record(overview),
    }


def race_record(overview: Overview) -> dict[str, Any]:
    """What racing has cost this cluster in all."""
    counts = race_counts(overview)
    return {
        "attempts": counts.attempts,
        "conflicts": counts.conflicts,
        "ticks": counts.ticks,
        "attempts_a_tick": counts.attempts_a_tick,
    }
