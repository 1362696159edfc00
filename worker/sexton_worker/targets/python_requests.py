"""Orders of Python runs as lines for a child: what is of the job is put into words once, what is of the run each time.

The line of a run is a list in the order of ``surroundings.Request``.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from functools import lru_cache

from sexton.jobs import RunRules
from sexton.targets import PythonTarget
from sexton_worker.execution import RunOrder
from sexton_worker.targets.environment import iso

CACHED = 50_000  # revisions, of some 200 bytes each
LARGEST_CACHED = 4096  # characters: long arguments are not worth the memory


class PythonRequests:
    """For one thread at a time."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, int], tuple[RunRules, str]] = OrderedDict()

    def line(self, order: RunOrder, target: PythonTarget) -> str:
        """The request, without a line's end. Raises TypeError or ValueError for arguments that JSON cannot say."""
        grant = order.grant
        return (
            f'[{grant.token},"{_iso(grant.scheduled_at)}",{grant.attempt},"{_iso(order.deadline)}",'
            f"{self._of_job(order, target)}]"
        )

    def _of_job(self, order: RunOrder, target: PythonTarget) -> str:
        key = (order.grant.job_id, order.grant.revision)
        rules, text = self._known.get(key, (None, ""))
        if rules is not order.rules:
            rules = order.rules
            text = _text(order, target)
            if len(text) <= LARGEST_CACHED and not order.secrets:
                self._known[key] = (rules, text)
                if len(self._known) > CACHED:
                    self._known.popitem(last=False)
        return text


def _text(order: RunOrder, target: PythonTarget) -> str:
    rules = order.rules
    if not (target.args or target.kwargs or rules.env or rules.cwd is not None or rules.stdin is not None):
        # As most are; a worker meets some thousands of jobs at once when it starts.
        return f"{_quoted(order.job)},{_quoted(target.reference)},[],{{}},{{}},null,null"
    values = [order.job, target.reference, list(target.args), target.kwargs, rules.env, rules.cwd, rules.stdin]
    return json.dumps(values, separators=(",", ":"))[1:-1]


_quoted = json.JSONEncoder().encode
_iso = lru_cache(maxsize=512)(iso)
