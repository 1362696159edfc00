"""Job formats: what a job says that an older release would not understand, and so must not run.

A format is a number that grows whenever definitions can say something new. A release knows all formats up to its own.
Three guards keep a job from a process that does not know its format (docs/decisions/0018):

* an edit is refused while such a process is at work, or was within ten minutes;
* the cluster keeps the highest format that a job ever needed, and admits no worker that knows less: the database
  refuses its row, also that of a release which has never heard of formats;
* what is read all the same is not run: a definition of a younger format gives its claim back.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sexton.claims import OnLeaseLost, Overlap
from sexton.job_rules import NO_LIMITS, QUEUE_LIMIT
from sexton.targets import CeleryTarget, HttpTarget, target_to_json

if TYPE_CHECKING:
    from sexton.jobs import JobDefinition

FIRST_FORMAT = 1
POOL_FORMAT = 2
"""Limits, slot groups, `on_lease_lost`, `replace`, requests, Celery tasks, secrets; and rules of queues."""
FORMAT = POOL_FORMAT
"""The youngest format that this release knows."""


def needed_format(job: JobDefinition) -> tuple[int, str]:
    """The format that this job needs, and which of its keys needs it ("" for the first)."""
    needs = [
        ("limits", job.limits != NO_LIMITS),
        ("concurrency_key", job.concurrency_key is not None),
        ("queue_limit", job.queue_limit != QUEUE_LIMIT),
        ("on_lease_lost", job.on_lease_lost is not OnLeaseLost.CONTINUE),
        ("overlap: replace", job.overlap is Overlap.REPLACE),
        ("http", isinstance(job.target, HttpTarget)),
        ("celery", isinstance(job.target, CeleryTarget)),
    ]
    for key, is_used in needs:
        if is_used:
            return POOL_FORMAT, key
    if "${secret:" in json.dumps([job.env, job.stdin, target_to_json(job.target)]):
        return POOL_FORMAT, "a secret"
    return FIRST_FORMAT, ""
