"""Results that came too late (invariant 4): said in the log, and in the audit log for `sexton explain`."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from sexton.store.protocol import RunResult, Store

_log = structlog.get_logger("sexton.worker")


def tell_refused(store: Store, worker_id: int, refused: Sequence[RunResult]) -> None:
    """Write down what came too late. Nothing rests on it: the step that refused these results has committed."""
    for result in refused:
        _log.warning("run.refused", worker_id=worker_id, token=result.token, outcome=result.outcome.word)
    if refused:
        store.operations.note_refused(worker_id, refused)
