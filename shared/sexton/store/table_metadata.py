"""What all tables share: their metadata, keys that number themselves, conditions of partial indexes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Integer, MetaData, text

# SQLite autoincrements INTEGER primary keys only.
Key = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData()


def where(condition: ColumnElement[bool] | str) -> dict[str, Any]:
    """The condition of a partial index, for both databases."""
    clause = text(condition) if isinstance(condition, str) else condition
    return {"postgresql_where": clause, "sqlite_where": clause}
