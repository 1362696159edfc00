"""Alembic migrations of the ledger; `sexton.store.schema` runs them."""
