"""A plan as data: what ``--output json`` prints, stable and complete. Docs: docs/plan-and-apply.md.

Instants and durations are left as values for the printer; whatever looks like a secret is hidden already. Keys are
never renamed or taken away within one ``format``; new ones may come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sexton.jobfiles.differences import Difference
from sexton.jobfiles.plan_crowds import Crowds
from sexton.jobfiles.plan_report import PlannedJob, PlanReport
from sexton.jobfiles.plan_ticks import Firing, TickChange
from sexton.jobfiles.plan_warnings import PlanWarning

FORMAT = 1


def plan_document(report: PlanReport, warnings: Sequence[PlanWarning]) -> dict[str, Any]:
    """All of a plan as one mapping."""
    return {
        "format": FORMAT,
        **summary_of(report),
        "changes": [change_of(job) for job in report.jobs],
        "unchanged": list(report.plan.unchanged),
        "kept": [job.name for job in report.plan.kept],
        "warnings": [warning_of(one) for one in warnings],
        "crowds": None if report.crowds is None else _crowds(report.crowds),
    }


def summary_of(report: PlanReport) -> dict[str, Any]:
    """The plan's moment, its window, and its numbers."""
    plan = report.plan
    renamed = sum(one.renamed for one in plan.revised)
    return {
        "now": report.now,
        "until": report.until,
        "is_empty": plan.is_empty,
        "summary": {
            "added": len(plan.added),
            "changed": len(plan.revised) - renamed,
            "renamed": renamed,
            "retired": len(plan.retired),
            "unchanged": len(plan.unchanged),
            "kept": len(plan.kept),
        },
        "ticks": {
            "jobs": report.totals.jobs,
            "appear": report.totals.appear,
            "vanish": report.totals.vanish,
            "move": report.totals.move,
            "keep": report.totals.keep,
        },
    }


def change_of(job: PlannedJob) -> dict[str, Any]:
    """One job of a plan."""
    return {
        "change": job.kind,
        "job": job.name,
        "renamed_from": job.old_name,
        "job_id": job.standing.job_id or None,
        "revision": job.revision or None,
        "revision_by": job.standing.made_by,
        "revision_at": job.standing.made_at,
        "hash_seed": job.seed,
        "differences": [_difference(one) for one in job.differences],
        "before": None if job.before is None else _firing(job.fired),
        "after": None if job.after is None else _firing(job.fires),
        "ticks": _ticks(job.ticks),
        "claims": {
            "withdrawn": job.withdrawn,
            "withdrawn_upto": job.standing.ahead_upto,
            "written": job.rewritten,
            "proposals": job.standing.proposals,
            "held_ticks": job.standing.held_ticks,
        },
        "runs_in_flight": [
            {"revision": one.revision, "count": one.count, "since": one.since} for one in job.standing.in_flight
        ],
    }


def warning_of(one: PlanWarning) -> dict[str, Any]:
    """One warning of a plan."""
    return {
        "warning": one.kind,
        "jobs": list(one.jobs),
        "fact": one.fact,
        "remedy": one.remedy,
        "paste": list(one.paste),
        "numbers": dict(one.numbers),
    }


def _difference(one: Difference) -> dict[str, Any]:
    return {"key": one.key, "old": one.old, "new": one.new, "hidden": one.hides}


def _firing(firing: Firing) -> dict[str, Any]:
    return {"timezone": firing.zone, "jitter": firing.rules.jitter, "silent": firing.silent or None}


def _ticks(change: TickChange) -> dict[str, Any]:
    return {
        "since": change.since,
        "until": change.until,
        "before": change.before,
        "after": change.after,
        "appear": change.appear,
        "vanish": change.vanish,
        "move": change.move,
        "keep": change.keep,
        "pairs_sought": change.pairs_sought,
        "appearing": list(change.appearing),
        "vanishing": list(change.vanishing),
        "moves": [{"old": pair.old, "new": pair.new} for pair in change.moves],
        "has_other_jitter": change.has_other_jitter,
        "delays": [{"tick": one.tick, "before": one.before, "after": one.after} for one in change.delays],
    }


def _crowds(crowds: Crowds) -> dict[str, Any]:
    return {
        "limit": crowds.limit,
        "until": crowds.until,
        "timezone": crowds.zone,
        "crowds": [
            {
                "clocks": list(one.clocks),
                "first": one.first,
                "minutes": one.minutes,
                "jobs": one.jobs,
                "touched": list(one.touched),
                "spread": None if one.spread is None else dict(one.spread.schedules),
                "most_after_spread": None if one.spread is None else one.spread.most,
                "jitter": one.jitter,
                "is_spread_by_another": one.is_spread_by_another,
            }
            for one in crowds.crowds
        ],
        "more_crowded_minutes": crowds.more,
        "other_crowded_minutes": crowds.others,
        "heat": [list(hour) for hour in crowds.heat],
    }
