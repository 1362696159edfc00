"""``sexton holds list|show|approve|reject``: missed ticks that wait for an operator, and the answers to them."""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sexton.errors import InvalidInput, NotFound, Refused
from sexton.hold_views import HoldDetail, HoldView
from sexton.holds import ALL, HeldTick, HeldTicks, Part, ProposalState
from sexton_tui.actor import actor
from sexton_tui.cli.asking import ask
from sexton_tui.cli.completing import complete_job
from sexton_tui.cli.instants import parse_instant
from sexton_tui.cli.invocation import find_job, open_cluster
from sexton_tui.cli.listings.options import JobOption, LimitOption
from sexton_tui.cli.output import Column, Output, OutputOption, print_record, print_rows
from sexton_tui.cli.watching import watchable
from sexton_tui.console.core.hold_words import (
    answer_text,
    approval_text,
    count_text,
    hold_lines,
    lost_text,
    rejection_text,
)

if TYPE_CHECKING:
    from sexton.store.protocol import HoldAnswer, Store

_LONGEST_NOTE = 1_000
_LARGEST_ID = 2**63 - 1  # what a database's integers hold

_OPEN_COLUMNS: tuple[Column | str, ...] = (
    *(Column("proposal_id", "id", align="right"), Column("job", folds=True), Column("count", "ticks", align="right")),
    *(Column("first", in_seconds=True, gives_way=2), Column("last", in_seconds=True, gives_way=3)),
    *(Column("span", gives_way=6), "waits", Column("lapses_in", "lapses in", gives_way=4)),
    *(Column("drain", "would take", gives_way=5), Column("order", gives_way=7, usual="oldest")),
    Column("reason", "why", is_note=True),
)
_ALL_COLUMNS: tuple[Column | str, ...] = (
    *(Column("proposal_id", "id", align="right"), Column("job", folds=True), Column("count", "ticks", align="right")),
    *("state", Column("approved", align="right", gives_way=1, usual="0"), Column("answered_by", "by", folds=True)),
    *(Column("answered_at", "at", in_seconds=True, gives_way=2), Column("first", in_seconds=True, gives_way=3)),
    *(Column("note", is_note=True), Column("reason", "why", is_note=True, gives_way=4)),
)
_TICK_COLUMNS: tuple[Column | str, ...] = (
    *(Column("job", folds=True), Column("scheduled_at", "tick")),
    Column("starts_at", "would start", in_seconds=True),
)

holds = typer.Typer(
    help="Missed ticks that wait for an operator; without a command, list them.",
    add_completion=False,
    rich_markup_mode=None,
)

TargetsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="ID|JOB...", help="Proposals by id, or all open ones of a job by its name.", autocompletion=complete_job
    ),
]
NoteOption = Annotated[str, typer.Option("--note", metavar="TEXT", help="Why; kept with the answer.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@holds.callback(invoke_without_command=True)
@watchable
def _list_without_a_command(ctx: typer.Context, output: OutputOption = Output.TABLE) -> None:
    if ctx.invoked_subcommand is None:
        list_holds(ctx, output=output)


@holds.command("list")
@watchable
def list_holds(
    ctx: typer.Context,
    job: JobOption = "",
    answered: Annotated[bool, typer.Option("--all", help="Answered and lapsed ones too, newest first.")] = False,
    limit: LimitOption = 100,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the proposals that wait for an answer, oldest first: how many ticks, since when, why, how long they'd take.

    `would take`: until all of them have run if they are approved now, by the catch-up budget's pace and the job's last
    runs; live ticks go first, so it may be longer.
    """
    with open_cluster(ctx, read_only=True) as store:
        job_id = store.reads.job(job, 0).job.job_id if job else None
        found, now = store.reads.holds(job_id, limit, answered=answered), store.now()
    of_job = f" of {job}" if job else ""
    empty = f"there are no proposals{of_job}" if answered else f"nothing{of_job} is held"
    print_rows([_row(one, now) for one in found], output, _ALL_COLUMNS if answered else _OPEN_COLUMNS, empty=empty)


@holds.command("show")
@watchable
def show(
    ctx: typer.Context,
    proposal: Annotated[str, typer.Argument(metavar="ID", help="The proposal's id.")],
    limit: LimitOption = 20,
    output: OutputOption = Output.TABLE,
) -> None:
    """One proposal: the ticks that would run if it were approved now, and when each could start."""
    with open_cluster(ctx, read_only=True) as store:
        found, now = store.reads.hold(_id_of(proposal)), store.now()
    ticks = _plan(found, found.first_to_start(limit)) if found.ticks is not None else []
    if output is not Output.TABLE:
        print_record({**_row(found.hold, now), "ticks": ticks, "is_whole": len(ticks) == found.hold.count}, output)
        return
    print("\n".join(hold_lines(found.hold, now)))
    if ticks:
        print()
        print_rows(ticks, output, _TICK_COLUMNS[1:])
        if len(ticks) < found.hold.count:
            print(f"... and {found.hold.count - len(ticks):,} more; --limit shows more")


@holds.command("approve")
def approve(
    ctx: typer.Context,
    targets: TargetsArgument,
    newest: Annotated[
        int | None, typer.Option("--newest", metavar="N", min=1, help="Only the newest N ticks; the rest is rejected.")
    ] = None,
    begin: Annotated[
        str | None, typer.Option("--from", metavar="T", help="Only ticks from T on; the rest is rejected.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="T", help="Only ticks before T; the rest is rejected.")
    ] = None,
    note: NoteOption = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would run, and change nothing.")] = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> int:
    """Run held ticks after all: as claims of origin held, at the pace of the catch-up budget, live ticks first.

    They run under the revision that they were due by. A proposal is answered once: approving a part of it rejects the
    rest. Exit code 1 where somebody else was before; it says who, when and how.
    """
    from sexton.store.protocol.holds import approval_of

    part = _part(newest, begin, end)
    _check_note(note)
    with open_cluster(ctx, read_only=dry_run) as store:
        found = _open_ones(store, targets)
        if not part.is_all and len(found) > 1:
            raise Refused(
                f"{len(found)} proposals are named, and a part is one of a single proposal",
                hint="name one by its id; `sexton holds list` has them",
            )
        chosen = [(one, _ticks(one).chosen(part)) for one in found if one.ticks is not None]
        if dry_run:
            return _print_plan(chosen, output)
        if not yes and chosen:
            for one, ticks in chosen:
                print(approval_text(one, ticks), file=sys.stderr)
            ask(f"Approve {count_text(sum(len(ticks) for _, ticks in chosen))}?")
        answers = _lost_before(found)
        answers += [store.holds.approve(approval_of(one, ticks, note), actor()) for one, ticks in chosen]
        is_halted = store.terms.cluster().halted
    if is_halted and output is Output.TABLE:
        print("the cluster is halted: they run once `sexton halt --lift` has ended that", file=sys.stderr)
    return _print_answers(answers, output)


@holds.command("reject")
def reject(
    ctx: typer.Context,
    targets: TargetsArgument,
    note: NoteOption = "",
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> int:
    """Let held ticks not run. Exit code 1 where somebody else was before; it says who, when and how."""
    _check_note(note)
    with open_cluster(ctx) as store:
        found = _open_ones(store, targets)
        waiting = [one for one in found if one.ticks is not None]
        if not yes and waiting:
            for one in waiting:
                print(rejection_text(one.hold), file=sys.stderr)
            ask(f"Reject {count_text(sum(one.hold.count for one in waiting))}?")
        answers = _lost_before(found)
        answers += [store.holds.reject(one.hold.proposal_id, actor(), note) for one in waiting]
    return _print_answers(answers, output)


# --- what is answered -----------------------------------------------------------------------------


def _open_ones(store: Store, targets: Sequence[str]) -> list[HoldDetail]:
    """The proposals that the arguments name, each once; an answered one too where its id is given."""
    found: dict[int, HoldDetail] = {}
    for target in targets:
        if target.isdecimal():
            ids = [_id_of(target)]
        else:
            job = find_job(store, target)
            ids = [one.proposal_id for one in store.reads.holds(job.job_id, 1000)]
            if not ids:
                raise Refused(f"nothing of {job.name} is held", hint="`sexton holds list` has what is")
        for proposal_id in ids:
            found.setdefault(proposal_id, store.reads.hold(proposal_id))
    return list(found.values())


def _id_of(text: str) -> int:
    if not text.isdecimal():
        raise typer.BadParameter(f"{text!r} is no id of a proposal; `sexton holds list` has them")
    if int(text) > _LARGEST_ID:
        raise NotFound(f"there is no proposal {text}", hint="`sexton holds list --all` lists what there is")
    return int(text)


def _ticks(found: HoldDetail) -> HeldTicks:
    assert found.ticks is not None  # noqa: S101 - it is open
    return found.ticks


def _lost_before(found: Iterable[HoldDetail]) -> list[HoldAnswer]:
    """The answers that others had given before this command looked."""
    from sexton.store.protocol import HoldAnswer

    return [
        HoldAnswer(
            proposal_id=hold.proposal_id,
            job_id=hold.job_id,
            job=hold.job,
            is_done=False,
            state=hold.state,
            count=hold.count,
            approved=hold.approved,
            answered_at=hold.answered_at,
            answered_by=hold.answered_by,
            note=hold.note,
        )
        for hold in (one.hold for one in found)
        if hold.state is not ProposalState.OPEN
    ]


def _part(newest: int | None, begin: str | None, end: str | None) -> Part:
    if newest is not None and (begin is not None or end is not None):
        raise typer.BadParameter("--newest goes without --from and --to: each names the part by itself")
    if begin is None and end is None:
        return ALL if newest is None else Part(newest=newest)
    first = None if begin is None else parse_instant(begin, "--from")
    last = None if end is None else parse_instant(end, "--to")
    if first is not None and last is not None and first >= last:
        raise typer.BadParameter("--from is not before --to: the range is from --from on, and ends before --to")
    return Part(begin=first, end=last)


def _check_note(note: str) -> None:
    if not note.isprintable():
        raise InvalidInput("--note holds a line break or a control character", hint="write it on one line")
    if len(note) > _LONGEST_NOTE:
        raise typer.BadParameter(f"--note has more than {_LONGEST_NOTE} characters")


# --- what is printed ------------------------------------------------------------------------------


def _row(hold: HoldView, now: datetime) -> dict[str, Any]:
    row = {field.name: getattr(hold, field.name) for field in dataclasses.fields(hold)}
    is_open = hold.state is ProposalState.OPEN
    return {
        **row,
        "span": hold.span,
        "drain": None if hold.drain is None else max(_in_seconds(hold.drain), timedelta(seconds=1)),
        "usual_run": None if hold.usual_run is None else _rounded(hold.usual_run),
        "waits": _in_seconds(now - hold.made_at) if is_open else None,
        "lapses_in": _in_seconds(max(hold.lapses_at - now, timedelta(0))) if is_open else None,
    }


def _plan(found: HoldDetail, ticks: Sequence[HeldTick], before: int = 0) -> list[dict[str, Any]]:
    """The first ticks to start, with when they could; ``before``: starts drawn for others first."""
    starts = found.pace.starts(_ticks(found).firing, ticks, before)
    hold = found.hold
    return [
        {"proposal_id": hold.proposal_id, "job": hold.job, "scheduled_at": tick.scheduled_at, "starts_at": starts_at}
        for tick, starts_at in starts
    ]


def _print_plan(chosen: Sequence[tuple[HoldDetail, Sequence[HeldTick]]], output: Output) -> int:
    offsets = itertools.accumulate((len(ticks) for _, ticks in chosen), initial=0)
    rows = [row for (one, ticks), before in zip(chosen, offsets, strict=False) for row in _plan(one, ticks, before)]
    if output is Output.TABLE:
        for one, ticks in chosen:
            print(approval_text(one, ticks))
        print()
    print_rows(rows, output, _TICK_COLUMNS, empty="nothing of this is held any more")
    if output is Output.TABLE:
        print("nothing was changed")
    return 0


def _print_answers(answers: Sequence[HoldAnswer], output: Output) -> int:
    """Every answer; 1 where one of them was not this command's."""
    if output is not Output.TABLE:
        print_rows(answers, output, ())
        return int(any(not one.is_done for one in answers))
    for one in answers:
        if one.is_done:
            print(answer_text(one))
        else:
            print(f"sexton: {lost_text(one)}", file=sys.stderr)
    return int(any(not one.is_done for one in answers))


def _in_seconds(duration: timedelta) -> timedelta:
    return timedelta(seconds=round(duration.total_seconds()))


def _rounded(duration: timedelta) -> timedelta:
    return timedelta(milliseconds=round(duration.total_seconds() * 1000))
