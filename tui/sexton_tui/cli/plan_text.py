"""A plan on the terminal: what `plan` shows, and `apply`, in short, before it asks.

Signs carry the meaning, colours only repeat it: `+` comes, `~` changes, `-` goes, `→` is renamed, `!` warns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sexton_tui.cli.output import printable
from sexton_tui.cli.plan_paint import Paint, paint_for_stdout
from sexton_tui.cli.plan_time_text import about, claim_lines, claim_total, tick_lines, tick_total
from sexton_tui.cli.plan_warning_text import warning_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sexton.jobfiles.differences import Difference
    from sexton.jobfiles.plan import ApplyPlan
    from sexton.jobfiles.plan_report import PlannedJob, PlanReport
    from sexton.jobfiles.plan_warnings import PlanWarning
    from sexton.jobs import JobDefinition

_KEPT_NAMES = 10


def show_plan(plan: ApplyPlan) -> None:
    """The definitions of a plan in short, with no word about time: a line a job, and one a changed key."""
    paint = paint_for_stdout()
    for line in _definitions(plan, paint, None, brief=True):
        print(line)
    print(f"Plan: {plan.summary()}.")


def show_report(report: PlanReport, warnings: Sequence[PlanWarning], *, brief: bool = False) -> None:
    """The whole plan; ``brief``: definitions, sums and the facts of the warnings."""
    for line in report_lines(report, warnings, paint_for_stdout(), brief=brief):
        print(line)


def report_lines(
    report: PlanReport, warnings: Sequence[PlanWarning], paint: Paint, *, brief: bool = False
) -> Iterator[str]:
    """The lines of ``show_report``."""
    yield from _definitions(report.plan, paint, report, brief=brief)
    if report.is_empty:
        yield f"Nothing to change: {report.plan.summary()}."
        return
    if brief:
        yield tick_total(report)
        yield from filter(None, [claim_total(report)])
    else:
        yield ""
        yield from tick_lines(report, paint)
        if claims := list(claim_lines(report, paint)):
            yield from ("", *claims)
    if warnings:
        yield from [] if brief else [""]
        yield from warning_lines(warnings, report.crowds, paint, brief=brief)
    yield from [] if brief else [""]
    yield f"Plan: {report.plan.summary()}."


def _definitions(plan: ApplyPlan, paint: Paint, report: PlanReport | None, *, brief: bool) -> Iterator[str]:
    """The jobs of a plan with what changes in each; with a report also what the new ones say, and who made the present
    revision of the others."""
    of_jobs = {} if report is None else {job.name: job.differences for job in report.jobs}
    made = {} if report is None else {job.standing.job_id: _made(job, report.now, paint) for job in report.jobs}
    for definition in plan.added:
        yield f"{paint('+', '+')} {paint('bold', definition.name)}  {_schedule(definition)}"
        if not brief:
            headline = ("schedule", "timezone")
            yield from _differences([one for one in of_jobs.get(definition.name, ()) if one.key not in headline], paint)
    for one in plan.revised:
        sign, arrow = ("→", f"{one.current.name} → ") if one.renamed else ("~", "")
        yield f"{paint(sign, sign)} {arrow}{paint('bold', one.definition.name)}{made.get(one.current.job_id, '')}"
        yield from _differences([each for each in one.differences if each.key != "name"], paint, brief=brief)
    for job in plan.retired:
        told = f"{_schedule(job.definition)}; retired{made.get(job.job_id, '')}"
        yield f"{paint('-', '-')} {paint('bold', job.name)}  {told}"
    if plan.kept:
        names = ", ".join(job.name for job in plan.kept[:_KEPT_NAMES])
        more = f" and {len(plan.kept) - _KEPT_NAMES} more" if len(plan.kept) > _KEPT_NAMES else ""
        yield from paint.prose(f"not in the files, and kept (--prune retires them): {names}{more}", "  ", "    ")


def _made(job: PlannedJob, now: datetime, paint: Paint) -> str:
    """Who made the revision that the plan would end, and how long ago; empty where that is not known."""
    if job.standing.made_by is None or job.standing.made_at is None:
        return ""
    ago = about(now - job.standing.made_at)
    return "  " + paint("dim", printable(f"(revision {job.revision} by {job.standing.made_by}, {ago} ago)"))


def _schedule(definition: JobDefinition) -> str:
    from sexton.jobfiles.differences import schedule_summary

    return printable(f"{schedule_summary(definition.schedule_parts)} ({definition.timezone})")


def _differences(differences: Sequence[Difference], paint: Paint, *, brief: bool = False) -> Iterator[str]:
    for one in differences:
        sign = paint(one.sign, one.sign)
        if one.is_long and not brief:
            yield f"    {sign} {printable(one.key)}:"
            lines = one.lines() or ("(only what is hidden differs)",)
            yield from (f"        {paint(line[:1], printable(line))}" for line in lines)
            continue
        values = [_value(text, brief) for text in (one.old, one.new) if text is not None]
        yield f"    {sign} {printable(one.key)}: {' → '.join(values)}"


def _value(text: str, brief: bool) -> str:
    text = printable(text) or '""'
    return text if len(text) <= 100 or not brief else text[:99] + "…"
