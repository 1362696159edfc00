"""``sexton cursors``: where each job's decisions stand, and setting them by hand after a restore."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sexton.cursor_moves import CursorStand, CursorStep, plan_step
from sexton.errors import InvalidInput, Refused
from sexton_tui.actor import actor
from sexton_tui.cli.asking import ask
from sexton_tui.cli.instants import parse_instant
from sexton_tui.cli.invocation import find_job, open_cluster
from sexton_tui.cli.job_arguments import JobsArgument
from sexton_tui.cli.output import Column, Output, OutputOption, counted, instant_text, print_rows
from sexton_tui.cli.watching import watchable

if TYPE_CHECKING:
    from sexton.store.protocol import Store

cursors = typer.Typer(
    help="Where each job's decisions stand: every tick up to its cursor is decided.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
)
_NOW = "now"
_LONGEST_REASON = 1_000
_TRIES = 5  # a leader that decides meanwhile moves cursors too
_SHOWN_REFUSALS = 5
_LIST_COLUMNS: tuple[Column | str, ...] = (
    *(Column("job", folds=True), "cursor", Column("ahead", gives_way=2)),
    *(Column("undecided", align="right"), Column("next_undecided", gives_way=1)),
)
_SET_COLUMNS: tuple[Column | str, ...] = (
    *(Column("job", folds=True), Column("from", in_seconds=True), Column("to", in_seconds=True, gives_way=1)),
    Column("what", is_note=True),
)


@cursors.command("list")
@watchable
def list_cursors(ctx: typer.Context, jobs: JobsArgument = None, output: OutputOption = Output.TABLE) -> None:
    """Each job's cursor, how far ahead of now it is, and the ticks that fell due and are undecided."""
    with open_cluster(ctx, read_only=True) as store:
        job_ids = [find_job(store, name).job_id for name in jobs] if jobs else None
        found = store.restores.cursor_stands(None, job_ids)
    rows = [_list_row(stand, found.now) for stand in found.stands]
    print_rows(rows, output, _LIST_COLUMNS, empty="there are no jobs yet: `sexton apply` brings them")


@cursors.command("set")
def set_cursors(
    ctx: typer.Context,
    jobs: JobsArgument = None,
    every: Annotated[bool, typer.Option("--all", help="All jobs.")] = False,
    to: Annotated[str, typer.Option("--to", metavar="now|INSTANT", help="Where the decisions shall stand.")] = ...,  # type: ignore[assignment]  # Typer's mark of what is required
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; kept with what is skipped.")] = ...,  # type: ignore[assignment]  # the same
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what it would do, and do nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Set cursors by hand: for a restored database. `sexton halt` first.

    Forward, the ticks stepped over are skipped, with the reason, one record a job. `now` steps forward only. Back, the
    ticks between are decided anew, by each job's policy: claims never granted are deleted, skip records removed. A job
    one of whose claims there was granted, or has an open proposal there, cannot be set back: nothing is changed then.
    """
    if bool(jobs) == every:
        raise typer.BadParameter("name the jobs, or say --all")
    _check_reason(reason)
    at = None if to == _NOW else parse_instant(to, "--to")
    with open_cluster(ctx) as store:
        job_ids = [find_job(store, name).job_id for name in jobs] if jobs else None
        planned = _plan(store, at, job_ids)
        if output is Output.TABLE:
            print_rows([_set_row(step) for step in planned.steps], output, _SET_COLUMNS)
        if planned.steps and not (dry_run or yes):
            ask(f"Set {counted(len(planned.steps), 'cursor')}?")
        done = [] if dry_run else _carry_out(store, planned, actor(), reason)
    if output is not Output.TABLE:
        print_rows([_set_row(step) for step in (planned.steps if dry_run else done)], output, _SET_COLUMNS)
        return
    print(_told(planned, done, dry_run=dry_run))


@dataclass(frozen=True, slots=True)
class _Plan:
    to: datetime
    forward_only: bool
    steps: tuple[CursorStep, ...]


def _plan(store: Store, at: datetime | None, job_ids: Sequence[int] | None) -> _Plan:
    """What is to be done to bring these cursors to ``at`` (None: now). Raises ``Refused`` where one job bars it."""
    to = store.now() if at is None else at
    found = store.restores.cursor_stands(to, job_ids)
    if to > found.now:
        raise Refused(
            f"{instant_text(to)} is ahead of the database's now, {instant_text(found.now)}",
            hint="the future is the leader's to decide; `--to now` is the latest",
        )
    steps: list[CursorStep] = []
    refused: list[str] = []
    for stand in found.stands:
        if stand.is_retired and to < stand.at:
            continue  # nothing would decide it anew
        planned = plan_step(stand, to, forward_only=at is None, pruned_before=found.pruned_before)
        if isinstance(planned, CursorStep):
            steps.append(planned)
        elif planned is not None:
            refused.append(f"{stand.name}: {planned}")
    if refused:
        shown = "; ".join(refused[:_SHOWN_REFUSALS])
        more = f"; and {len(refused) - _SHOWN_REFUSALS} more jobs" if len(refused) > _SHOWN_REFUSALS else ""
        raise Refused(f"nothing was changed: {shown}{more}", hint="name the jobs that can be set")
    return _Plan(to, at is None, tuple(steps))


def _carry_out(store: Store, planned: _Plan, who: str, why: str) -> list[CursorStep]:
    """The steps that were made. What moved meanwhile is planned again; a leader may have decided it all."""
    done: list[CursorStep] = []
    left = planned.steps
    for _ in range(_TRIES):
        moved = store.restores.step_cursors(left, who, why)
        done += [step for step in left if step.job_id in moved]
        missed = [step.job_id for step in left if step.job_id not in moved]
        if not missed:
            return done
        found = store.restores.cursor_stands(planned.to, missed)
        again = [plan_step(stand, planned.to, forward_only=planned.forward_only) for stand in found.stands]
        barred = [text for text in again if isinstance(text, str)]
        if barred:
            raise Refused(f"{counted(len(done), 'cursor')} set, {len(barred)} not: {barred[0]}", hint="look, try again")
        left = tuple(step for step in again if isinstance(step, CursorStep))
    raise Refused(
        f"{counted(len(left), 'cursor')} moved on through {_TRIES} tries, {len(done)} are set",
        hint='a leader is deciding: `sexton halt --reason "..."` first, then again',
    )


def _list_row(stand: CursorStand, now: datetime) -> dict[str, Any]:
    return {
        "job": stand.name,
        "cursor": stand.at,
        "ahead": stand.at - now,
        "undecided": stand.count(stand.at, now) if stand.at < now else 0,
        "next_undecided": stand.next_tick(),
        "is_retired": stand.is_retired,
        "fault": stand.fault or None,
    }


def _set_row(step: CursorStep) -> dict[str, Any]:
    return {
        "job": step.name,
        "from": step.was,
        "to": step.to,
        "what": _what(step),
        "skipped": step.skipped,
        "withdrawn": step.withdrawn,
        "reopened": step.reopened,
    }


def _what(step: CursorStep) -> str:
    if step.is_forward:
        return f"{_ticks(step.skipped)} skipped"
    claims = f", {counted(step.withdrawn, 'claim')} withdrawn" if step.withdrawn else ""
    return f"{_ticks(step.reopened)} to be decided anew{claims}"


def _ticks(count: int) -> str:
    return f"{count:,} tick{'' if count == 1 else 's'}"


def _told(planned: _Plan, done: Sequence[CursorStep], *, dry_run: bool) -> str:
    if not planned.steps:
        return f"nothing to do: no tick lies between these cursors and {instant_text(planned.to)}"
    steps = planned.steps if dry_run else done
    skipped = sum(step.skipped for step in steps)
    anew = sum(step.reopened for step in steps)
    what = [f"{_ticks(skipped)} skipped"] if skipped else []
    what += [f"{_ticks(anew)} to be decided anew"] if anew else []
    where = f"to {instant_text(planned.to)}: {', '.join(what) or 'nothing decided there'}"
    if dry_run:
        return f"would set {counted(len(steps), 'cursor')} {where}; nothing was changed"
    return f"set {counted(len(steps), 'cursor')} {where}"


def _check_reason(reason: str) -> None:
    if not reason.isprintable():
        raise InvalidInput("--reason holds a line break or a control character", hint="write it on one line")
    if not reason.strip() or len(reason) > _LONGEST_REASON:
        raise typer.BadParameter(f"--reason says nothing, or more than {_LONGEST_REASON} characters")
