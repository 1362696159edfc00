"""Jobs of files as the planner knows them, without a ledger."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

from sexton.decisions import Interval, PlannedJob, RevisionInForce
from sexton.job_rules import FiringRules, firing_rules
from sexton.jobs import JobDefinition
from sexton.schedule_specs import schedule_from_spec
from sexton.schedules import Schedule


def planned_jobs(definitions: Iterable[JobDefinition], since: datetime) -> list[PlannedJob]:
    """Each with all up to ``since`` decided; jobs with one schedule share it. ``enabled: false`` is a pause."""
    schedules: dict[str, Schedule] = {}
    firings: dict[str, FiringRules] = {}
    jobs: list[PlannedJob] = []
    for job_id, definition in enumerate(definitions, start=1):
        seed = definition.hash_seed or definition.name
        schedule_text, firing_text = definition.schedule_text(seed), definition.firing_text(seed)
        schedule = schedules.get(schedule_text)
        if schedule is None:
            schedule = schedules[schedule_text] = schedule_from_spec(json.loads(schedule_text))
        firing = firings.get(firing_text)
        if firing is None:
            firing = firings[firing_text] = firing_rules(firing_text)
        pauses = () if definition.enabled else (Interval(since, None),)
        detail = "" if definition.enabled else "enabled: false"
        revision = RevisionInForce(1, schedule, firing, since, None)
        jobs.append(PlannedJob(job_id, definition.name, 0, since, (revision,), pauses, detail))
    return jobs
