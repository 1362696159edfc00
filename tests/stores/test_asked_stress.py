"""What operators ask for, against commits in flight and workers granting early, loses and doubles no tick."""

from __future__ import annotations

import os

from tests.stores.asked_stress import run

# `python -m tests.stores.asked_stress` runs as long as one likes.
SECONDS = float(os.environ.get("SEXTON_STRESS_SECONDS", "8"))


def test_pauses_named_ticks_and_backfills_lose_and_double_no_tick(postgres_ledger: str) -> None:
    """Invariant 2, by the audit."""
    stress, wrong = run(postgres_ledger, SECONDS, seed=1)
    assert wrong == {}
    assert stress.counts["ticks"] > 30  # else the run proves little
    assert sum(stress.counts[what] for what in ("resumed", "skipped", "backfilled", "all resumed")) > 5
