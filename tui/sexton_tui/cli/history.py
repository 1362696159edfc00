"""``sexton history`` and ``sexton revert``: what was done to jobs, and a job taken back to a revision it had."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sexton_tui.actor import actor
from sexton_tui.cli.asking import ask
from sexton_tui.cli.completing import complete_job
from sexton_tui.cli.invocation import open_cluster
from sexton_tui.cli.job_arguments import JobArgument
from sexton_tui.cli.listings.printing import print_lines
from sexton_tui.cli.output import (
    Column,
    Output,
    OutputOption,
    instant_text,
    print_json,
    print_record,
    print_rows,
    printable,
)
from sexton_tui.cli.plan_text import show_plan
from sexton_tui.cli.watching import watchable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sexton.history_views import HistoryEntry
    from sexton.jobfiles.differences import Difference
    from sexton.store.protocol import Store

LARGEST_REVISION = 2**31 - 1  # what the database's integers hold

_COLUMNS = (
    "at",
    Column("job", folds=True),
    Column("revision", "rev", align="right"),
    "what",
    Column("who", folds=True),
    Column("in_force_since", "in force from", gives_way=2, same_as="at"),
    Column("in_force_until", "until", gives_way=3),
    Column("changed", is_note=True),
    Column("why", is_note=True),
)


@watchable
def history(
    ctx: typer.Context,
    job: Annotated[
        str | None, typer.Argument(metavar="[JOB]", help="One job; else all of them.", autocompletion=complete_job)
    ] = None,
    diff: Annotated[bool, typer.Option("--diff", help="Show each change with its old and new value.")] = False,
    revision: Annotated[
        int | None,
        typer.Option(
            "--revision", min=1, max=LARGEST_REVISION, metavar="N", help="One revision of a JOB, with all it changed."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, metavar="N", help="How many entries at most.")] = 50,
    output: OutputOption = Output.TABLE,
) -> None:
    """What was done to a job, or to all: its revisions, when each was in force, who made it and why; newest first.

    Retired jobs keep their history, and a job that was renamed has it under its new name.
    """
    if revision is not None and job is None:
        raise typer.BadParameter("--revision is one of a JOB: name it")
    with open_cluster(ctx, read_only=True) as store:
        if job is not None and revision is not None:
            _print_revision(store, job, revision, output)
            return
        found = store.reads.history(job, limit)
    entries = [(entry, changes_of(entry)) for entry in found.entries]
    if output is Output.TABLE and diff:
        for entry, changes in entries:
            show_entry(entry, changes)
    else:
        rows = [_row(entry, changes, is_table=output is Output.TABLE) for entry, changes in entries]
        print_rows(rows, output, _COLUMNS, empty="No job was ever applied.")
    if output is Output.TABLE and not found.is_whole:
        print(f"... and older ones: --limit {limit * 2} shows more")


def _print_revision(store: Store, job: str, revision: int, output: Output) -> None:
    found = store.reads.opened_revision(job, revision)
    changes = changes_of(found.entry)
    if output is not Output.TABLE:
        print_record({**_row(found.entry, changes, is_table=False), "newest": found.newest}, output)
        return
    from sexton_tui.console.core.job_rows import revision_lines

    print_lines(revision_lines(found, changes, store.now()), coloured=True)


def changes_of(entry: HistoryEntry) -> tuple[Difference, ...]:
    """What a revision changed of the one before it; nothing for the first, and for what is no revision."""
    from sexton.jobfiles.differences import differences_between

    if entry.definition is None or entry.before is None:
        return ()
    return differences_between(entry.before, entry.definition)


def _row(entry: HistoryEntry, changes: Sequence[Difference], *, is_table: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "at": entry.at.replace(microsecond=0) if is_table else entry.at,
        "job": entry.job,
        "job_id": entry.job_id,
        "revision": entry.revision,
        "what": entry.kind,
        "who": entry.who,
        "why": entry.why,
        "in_force_since": entry.in_force_since,
        "in_force_until": entry.in_force_until,
    }
    if is_table:
        seconds = {key: value.replace(microsecond=0) for key in _INTERVAL if (value := row[key]) is not None}
        return {**row, **seconds, "changed": ", ".join(change.key for change in changes)}
    changed = [{"key": change.key, "old": change.old, "new": change.new} for change in changes]
    return {**row, "changes": changed}


_INTERVAL = ("in_force_since", "in_force_until")


def show_entry(entry: HistoryEntry, changes: Sequence[Difference]) -> None:
    """Print an entry with each change's old and new value."""
    number = f"  revision {entry.revision}" if entry.revision is not None else ""
    why = f"  ({printable(entry.why)})" if entry.why else ""
    at = instant_text(entry.at.replace(microsecond=0))
    print(f"{at}  {printable(entry.job)}{number}  {entry.kind.value} by {printable(entry.who)}{why}")
    if entry.in_force_since is not None:
        until = "now" if entry.in_force_until is None else instant_text(entry.in_force_until)
        print(f"    in force from {instant_text(entry.in_force_since)} until {until}")
    for change in changes:
        print(f"    {change.key}: {_short(change.old)} → {_short(change.new)}")


def _short(text: str | None) -> str:
    shown = "-" if text is None else printable(text)
    return shown if len(shown) <= 200 else shown[:199] + "…"


def revert(
    ctx: typer.Context,
    job: JobArgument,
    revision: Annotated[int, typer.Argument(metavar="REVISION", min=1, help="As `sexton history JOB` numbers them.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the history.")] = "",
    with_name: Annotated[bool, typer.Option("--with-name", help="Take back the name it had then, too.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make a job what it was in a past revision: a new revision with the definition of then, from now on.

    The name stays that of now unless --with-name is given. A retired job comes back as a new job. The job files still
    say what they said: change them too, or the next apply takes the revert back.
    """
    from sexton.jobfiles.reverting import plan_reversion

    if output is not Output.TABLE and not yes:
        raise typer.BadParameter(f"--output {output.value} goes with --yes: it shows no plan to say yes to")
    with open_cluster(ctx) as store:
        past = store.reads.past_revision(job, revision)
    reversion = plan_reversion(past, reason, with_name=with_name)
    if output is Output.TABLE:
        if past.is_retired:
            print(f"The job {past.name} is retired: it comes back as a new job, whose ticks count from now on.")
        if reversion.keeps_name:
            print(f"The name stays {past.name}; it was {past.definition.name} then (--with-name takes that back too).")
        show_plan(reversion.plan)
    if reversion.change is None:
        if output is Output.TABLE:
            print(f"Nothing to change: {past.name} is what it was in revision {revision}.")
        else:
            print_json([]) if output is Output.JSON else None
        return
    if not yes:
        ask(f"Take {past.name} back to revision {revision}?")
    with open_cluster(ctx) as store:
        (done,) = store.edits.edit([reversion.change], actor())
    if output is not Output.TABLE:
        print_rows([done], output, ())
        return
    print(f"{done.name} is at revision {done.revision}, in force from {instant_text(done.effective_at)}.")
    print("The job files may still say otherwise: change them too, or the next apply takes this back.")
