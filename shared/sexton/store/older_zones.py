"""Zone data of other versions that the ledger keeps, for what was decided by it."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, select

from sexton.inputs import own_inputs
from sexton.store.tables import zone_data
from sexton.zone_files import add_zone_data


def older_zone_data(connection: Connection, inputs_ids: Iterable[str]) -> frozenset[str]:
    """The versions of zone data in these inputs that are not this process's and that the ledger holds: known here from
    now on (``with_zone_data``)."""
    versions = {inputs_id.partition("/")[0] for inputs_id in inputs_ids} - {own_inputs().zone_data, ""}
    if not versions:
        return frozenset()
    kept = connection.execute(select(zone_data.c.version, zone_data.c.files).where(zone_data.c.version.in_(versions)))
    held = {row.version: row.files for row in kept}
    for version, files in held.items():
        add_zone_data(version, files)
    return frozenset(held)
