"""A plan on the terminal: what `plan` shows, and `apply` before it asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sexton_tui.cli.output import printable

if TYPE_CHECKING:
    from sexton.jobfiles.differences import Difference
    from sexton.jobfiles.plan import ApplyPlan
    from sexton.jobs import JobDefinition


def show_plan(plan: ApplyPlan) -> None:
    """The plan in short: a line a job, and one a changed key."""
    for definition in plan.added:
        print(f"+ {definition.name}  {_schedule(definition)}")
    for one in plan.revised:
        sign, arrow = ("→", f"{one.current.name} → ") if one.renamed else ("~", "")
        print(f"{sign} {arrow}{one.definition.name}")
        for difference in one.differences:
            if difference.key != "name":
                print(f"    {_difference(difference)}")
    for job in plan.retired:
        print(f"- {job.name}")
    staying = [job.name for job in plan.missing if job not in plan.retired]
    if staying:
        names = ", ".join(staying[:10]) + (", ..." if len(staying) > 10 else "")
        print(f"  not in the files, and kept (--prune retires them): {names}")
    for old, new in plan.likely_renames:
        print(f"  {new} does what {old} does, and both would run; if {old} was renamed, add `renamed_from: {old}`")
    print(f"Plan: {plan.summary()}.")


def _schedule(definition: JobDefinition) -> str:
    from sexton.jobfiles.differences import schedule_summary

    return f"{schedule_summary(definition.schedule_parts)} ({definition.timezone})"


def _difference(difference: Difference) -> str:
    return f"{difference.key}: {_short(difference.old)} → {_short(difference.new)}"


def _short(text: str) -> str:
    text = printable(text)
    return text if len(text) <= 100 else text[:99] + "…"
