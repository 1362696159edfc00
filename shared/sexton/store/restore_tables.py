"""What the ledger keeps so that it can be read later: the zone data its ticks were computed with."""

from __future__ import annotations

from sqlalchemy import Column, LargeBinary, Table, Text

from sexton.store.table_metadata import metadata

zone_data = Table(
    "zone_data",
    metadata,
    Column("version", Text, primary_key=True),  # such as "2026b"
    Column("files", LargeBinary, nullable=False),  # `sexton.zone_files`
)
