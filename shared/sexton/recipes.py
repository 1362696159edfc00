"""What a worker needs of a definition to run its claims, read without the rest.

A worker reads a definition for each revision that it meets, in the middle of its work: all of it would take five times
as long. ``recipe_from_text`` of a text and ``recipe_of`` of its definition are equal.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from sexton.claims import OnLeaseLost, OnWorkerLost, Overlap
from sexton.job_rules import NO_LIMITS, RetryRules, duration, limits_from_json, retries_from_json, retries_to_json
from sexton.jobs import JobDefinition, RunRules, check_format
from sexton.targets import target_from_json

_REPLACE = Overlap.REPLACE.name.lower()
_ON_WORKER_LOST = {one.value: one for one in OnWorkerLost}
_USUAL_RETRIES = RetryRules()  # those of most jobs, which share one object
_USUAL_RETRIES_JSON = retries_to_json(_USUAL_RETRIES)


class Recipe(NamedTuple):
    """The job's name, and how a claim of it is run."""

    job: str
    rules: RunRules


def recipe_of(definition: JobDefinition) -> Recipe:
    return Recipe(definition.name, definition.run_rules())


def recipe_from_text(text: str) -> Recipe:
    """The recipe of the definition whose ``to_text()`` is ``text``.

    Raises ``YoungerFormat`` as ``JobDefinition.from_text`` does.
    """
    data = json.loads(text)
    check_format(data)
    limits = data.get("limits")
    rules = RunRules(
        target=target_from_json(data["target"]),
        env=data["env"],
        cwd=data["cwd"],
        stdin=data["stdin"],
        success_codes=tuple(data["success_codes"]),
        max_runtime=duration(data["max_runtime_ms"]),
        kill_after=duration(data["kill_after_ms"]),
        retries=_USUAL_RETRIES if data["retries"] == _USUAL_RETRIES_JSON else retries_from_json(data["retries"]),
        on_worker_lost=_ON_WORKER_LOST[data["on_worker_lost"]],
        limits=NO_LIMITS if limits is None else limits_from_json(limits),
        ends_with_lease=(
            data.get("on_lease_lost") == OnLeaseLost.KILL.value
            or data["on_worker_lost"] == OnWorkerLost.FAIL.value
            or data["overlap"] == _REPLACE
            or data.get("concurrency_key") is not None
        ),
    )
    return Recipe(data["name"], rules)
