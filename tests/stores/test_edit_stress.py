"""Edits against commits in flight and workers granting early lose and double no tick (invariant 2)."""

from __future__ import annotations

import os

import pytest

from tests.stores.edit_faults import FAULTS
from tests.stores.edit_stress import run
from tests.support.postgres import PostgresServer

# A minute finds no more than a fifth of it; `python -m tests.stores.edit_stress` runs as long as one likes.
SECONDS = float(os.environ.get("SEXTON_STRESS_SECONDS", "12"))
FAULT_SECONDS = 5.0
FAULT_ROUNDS = 8


def test_edits_lose_and_double_no_tick_and_leave_no_claim_of_the_old_revision(postgres_ledger: str) -> None:
    stress, wrong = run(postgres_ledger, SECONDS, seed=1)
    assert wrong == {}
    assert stress.counts["edits"] > 50  # else the run proves little
    assert stress.counts["withdrawn"] > 50
    assert stress.counts["paused"] > 20
    assert stress.counts["not moved"] > 20


@pytest.mark.parametrize("fault", FAULTS)
def test_the_stress_finds_the_planted_fault(
    postgres_server: PostgresServer, migrated_template: str, fault: str
) -> None:
    for number in range(FAULT_ROUNDS):
        url = postgres_server.create_database(template=migrated_template)
        _, wrong = run(url, FAULT_SECONDS, seed=number, routine=FAULTS[fault])
        postgres_server.drop_database(url)
        if wrong:
            return
    pytest.fail(f"{FAULT_ROUNDS} rounds of {FAULT_SECONDS} s did not find the fault: {fault}")
