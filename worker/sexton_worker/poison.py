"""Jobs whose runs end the process that starts a worker's commands: they take the runs beside them along."""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from sexton.claims import State
from sexton.store.poison import pause_poison
from sexton.store.protocol import RunResult, Store

POISON = "its last two ticks were lost with the process that starts commands, three times each: it may be what ends it"
_log = structlog.get_logger("sexton.worker")


def pause_killers(store: Store, results: Iterable[RunResult]) -> None:
    """Pause those jobs of these results whose second tick in a row has been lost so."""
    lost = {result.job_id for result in results if result.is_loss and result.outcome is State.LOST}
    if lost:
        for name in pause_poison(store, lost, POISON):
            _log.error("job.paused_as_poison", job=name)
