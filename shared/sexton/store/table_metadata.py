"""What all tables share: their metadata, and keys that number themselves."""

from __future__ import annotations

from sqlalchemy import BigInteger, Integer, MetaData

# SQLite autoincrements INTEGER primary keys only.
Key = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData()
