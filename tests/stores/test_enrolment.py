"""A cluster's first node brings its coordinator and its inputs (docs/architecture.md, invariant 8)."""

from __future__ import annotations

from sqlalchemy import select

from sexton.jobs import JobDefinition
from sexton.store.protocol import ChangeKind, JobChange, Store
from sexton.store.tables import inputs, revisions
from sexton.targets import CommandTarget


def test_revisions_applied_before_the_first_node_belong_to_the_inputs_it_brings(store: Store) -> None:
    """Else the audit would take them for computed with other zone data."""
    definition = JobDefinition(name="bell", schedule_parts=({"cron": "0 2 * * *"},), target=CommandTarget(("true",)))
    store.edits.edit([JobChange(ChangeKind.CREATE, definition=definition)], "tester")
    store.terms.enroll("database:", "2026b/1", "2026b", 1)
    with store.reads.snapshot() as connection:
        assert connection.execute(select(revisions.c.inputs_id)).scalars().all() == ["2026b/1"]


def test_inputs_named_before_holidays_were_among_them_are_completed_and_other_zone_data_is_not_taken(
    store: Store,
) -> None:
    store.terms.enroll("database:", "2026b/1", "2026b", 1)
    assert store.terms.enroll("database:", "2026a/1/0.109", "2026a", 1).inputs_id == "2026b/1"
    assert store.terms.enroll("database:", "2026b/1/0.109", "2026b", 1).inputs_id == "2026b/1/0.109"
    assert store.terms.enroll("database:", "2026b/1/0.110", "2026b", 1).inputs_id == "2026b/1/0.109"
    with store.reads.snapshot() as connection:
        assert set(connection.execute(select(inputs.c.inputs_id)).scalars()) == {"2026b/1", "2026b/1/0.109"}
