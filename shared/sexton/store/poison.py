"""Poison: runs that take with them what runs them, a worker or the process that starts its commands.

A claim that did so ``sexton.claims.POISON_AFTER`` times ends as lost. Its job's next tick may do the same again: so a
job whose last two ticks that ran both ended so is paused; that ends by ``sexton resume``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from sexton.claims import POISON_AFTER
from sexton.cluster_views import SEXTON
from sexton.errors import Refused
from sexton.store.protocol import ChangeKind, JobChange, Store


def pause_poison(store: Store, job_ids: Collection[int], why: str) -> list[str]:
    """Pause those of these jobs whose last two ticks that ran were both lost as poison; their names."""
    paused = []
    for job_id, name in store.operations.poisoned(tuple(job_ids), POISON_AFTER):
        with contextlib.suppress(Refused):  # it was edited meanwhile: whoever did it knows
            store.edits.edit([JobChange(ChangeKind.PAUSE, job_id, why=why)], SEXTON)
            paused.append(name)
    return paused
