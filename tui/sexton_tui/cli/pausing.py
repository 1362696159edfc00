"""``sexton pause`` and ``sexton resume``: of single jobs, or of all for maintenance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sexton.errors import InvalidInput, Refused
from sexton_tui.actor import actor
from sexton_tui.cli.invocation import find_job, open_cluster
from sexton_tui.cli.job_arguments import JobsArgument
from sexton_tui.cli.output import Output, OutputOption, counted, instant_text, print_json, print_record

if TYPE_CHECKING:
    from sexton.store.protocol import AllChanged, ChangeDone, CurrentJob, Store
    from sexton.store.resuming import ResumedMissed

_LONGEST_REASON = 1_000


def pause(
    ctx: typer.Context,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; shown wherever the jobs are.")],
    jobs: JobsArgument = None,
    everything: Annotated[bool, typer.Option("--all", help="All jobs, and those applied meanwhile.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Stop the grants and claims of jobs until they are resumed, of one, several, or (--all) of every job.

    Runs that run go on; what they would retry waits. `sexton trigger` still runs a paused job. What falls due is not
    run: `sexton resume --run-missed` decides it by each job's policy. A job that was paused on its own stays paused
    when `sexton resume --all` ends a pause of all.
    """
    names = _chosen(jobs, everything=everything)
    if not reason.isprintable():
        raise InvalidInput("--reason holds a line break or a control character", hint="write it on one line")
    if not reason.strip() or len(reason) > _LONGEST_REASON:
        raise typer.BadParameter(f"--reason says nothing, or more than {_LONGEST_REASON} characters")
    with open_cluster(ctx) as store:
        if everything:
            _pause_all(store, reason, output)
        else:
            _pause(store, names, reason, output)


def resume(
    ctx: typer.Context,
    jobs: JobsArgument = None,
    everything: Annotated[bool, typer.Option("--all", help="End `pause --all`.")] = False,
    run_missed: Annotated[
        bool, typer.Option("--run-missed", help="Decide what fell due in the pause by each job's policy.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """End the pause of jobs, or lift their quarantine. What fell due in a pause stays undone.

    With --run-missed each job's `missed` policy decides it, as after an outage: it runs what it would have run, at the
    pace of the catch-up budget, and `hold` makes a proposal. --all ends the pause of all; jobs paused on their own
    stay paused.
    """
    names = _chosen(jobs, everything=everything)
    with open_cluster(ctx) as store:
        if everything:
            _resume_all(store, output, run_missed=run_missed)
        else:
            _resume(store, names, output, run_missed=run_missed)


def _chosen(jobs: Sequence[str] | None, *, everything: bool) -> list[str]:
    if bool(jobs) == everything:
        raise typer.BadParameter("name one job or more, or say --all" if not jobs else "--all goes without names")
    return list(jobs or ())


def _found(store: Store, names: Sequence[str]) -> list[CurrentJob]:
    """Each job once, in the order named."""
    found = {job.job_id: job for job in (find_job(store, name) for name in names)}
    return list(found.values())


# --- pause ----------------------------------------------------------------------------------------


def _pause(store: Store, names: Sequence[str], reason: str, output: Output) -> None:
    from sexton.store.protocol import ChangeKind, JobChange

    jobs, with_all = _found(store, names), set(store.pauses.paused_with_all())
    for job in jobs:
        if job.is_paused and job.job_id not in with_all:
            others = "" if len(jobs) == 1 else "; nothing was changed"
            raise Refused(f"{job.name} is paused already{others}", hint=f"`sexton resume {job.name}` ends the pause")
    standings = store.reads.standings([job.job_id for job in jobs])
    done = store.edits.edit([JobChange(ChangeKind.PAUSE, job.job_id, why=reason) for job in jobs], actor())
    if _as_record(done, output):
        return
    for one in done:
        if one.job_id in with_all:
            print(f"{one.name} was paused with all; now it stays paused when `sexton resume --all` ends that")
        else:
            named = ", ".join(instant_text(named.tick) for named in standings.of(one.job_id).named)
            taken_back = f"; a skip-next is taken back: {named}" if named else ""
            print(f"{one.name} paused from {instant_text(one.effective_at)}{_withdrawn(one)}{taken_back}")


def _pause_all(store: Store, reason: str, output: Output) -> None:
    before = sum(job.is_paused for job in store.edits.current_jobs())
    done = store.pauses.pause_all(actor(), reason)
    if output is not Output.TABLE:
        print_record(_all_record(done), output)
        return
    if done.pause is not None and done.pause.why != reason:
        print(
            f"all jobs are paused already, since {instant_text(done.pause.since)} by {done.pause.who}: {done.pause.why}"
        )
    own = f"; {before:,} {'was' if before == 1 else 'were'} paused before" if before else ""
    print(f"{counted(len(done.jobs), 'job')} paused{own}; what is applied meanwhile will be too")
    print("`sexton resume --all` ends it")


# --- resume ---------------------------------------------------------------------------------------


def _resume(store: Store, names: Sequence[str], output: Output, *, run_missed: bool) -> None:
    from sexton.store.protocol import ChangeKind, JobChange

    jobs = _found(store, names)
    for job in jobs:
        if not (job.is_paused or (job.is_quarantined and not run_missed)):
            what = "not paused" if run_missed else "neither paused nor quarantined"
            raise Refused(f"{job.name} is {what}", hint="there is nothing to resume")
    if run_missed:
        _say_missed(_run_missed(store, [job.job_id for job in jobs], with_all=False), output)
        return
    done = store.edits.edit([JobChange(ChangeKind.RESUME, job.job_id) for job in jobs], actor())
    if not _as_record(done, output):
        for one in done:
            print(f"{one.name} resumed from {instant_text(one.effective_at)}{_withdrawn(one)}")


def _resume_all(store: Store, output: Output, *, run_missed: bool) -> None:
    paused = store.pauses.paused_with_all()
    if not paused and store.pauses.pause_of_all() is None:
        raise Refused("the jobs are not paused as a whole", hint="`sexton resume JOB` ends the pause of one")
    missed = _run_missed(store, paused, with_all=True) if run_missed else []
    done = store.pauses.resume_all(actor())
    if output is not Output.TABLE:
        record = _all_record(done)
        record["jobs"] = [*(one.done for one in missed), *done.jobs]
        print_record(record | ({"missed": missed} if run_missed else {}), output)
        return
    if run_missed:
        _say_missed(missed, output)
    left = sum(job.is_paused for job in store.edits.current_jobs())
    own = f"; {left:,} paused on {'its' if left == 1 else 'their'} own {'stays' if left == 1 else 'stay'} so"
    print(f"{counted(len(done.jobs) + len(missed), 'job')} resumed{own if left else ''}")


def _run_missed(store: Store, job_ids: Sequence[int], *, with_all: bool) -> Sequence[ResumedMissed]:
    from sexton.store.resuming import resume_together

    return resume_together(store, job_ids, actor(), with_all=with_all)


def _say_missed(resumed: Sequence[ResumedMissed], output: Output) -> None:
    if output is not Output.TABLE:
        print_json([{**_change_record(one.done), "reason": one.reason} for one in resumed])
        return
    for one in resumed:
        print(f"{one.done.name} resumed from {instant_text(one.done.effective_at)}")
        print(f"  {one.reason or 'nothing fell due in the pause'}")
        if one.held:
            print(f"  {counted(one.held, 'tick')} held: `sexton holds list` shows what waits for an answer")


# --- what is said ---------------------------------------------------------------------------------


def _as_record(done: Sequence[ChangeDone], output: Output) -> bool:
    """Print one change as an object, several as a list; False where a table is wanted."""
    if output is Output.TABLE:
        return False
    if len(done) == 1:
        print_record(done[0], output)
    else:
        print_json(list(done))
    return True


def _change_record(done: ChangeDone) -> dict[str, Any]:
    return {"job_id": done.job_id, "name": done.name, "kind": done.kind, "effective_at": done.effective_at}


def _all_record(done: AllChanged) -> dict[str, Any]:
    return {"pause": done.pause, "jobs": list(done.jobs)}


def _withdrawn(done: ChangeDone) -> str:
    return f"; claims written ahead and withdrawn: {done.withdrawn}" if done.withdrawn else ""
