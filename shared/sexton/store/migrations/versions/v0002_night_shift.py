"""What an operator needs at night: who halted the cluster, a forced leader, an accepted clock, ZooKeeper's servers.

Every column has a default, so that processes of the version before go on writing.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_INSTANT = sa.DateTime(timezone=True).with_variant(sa.BigInteger(), "sqlite")


def upgrade() -> None:
    op.add_column("cluster", sa.Column("halted_at", _INSTANT))
    op.add_column("cluster", sa.Column("halted_by", sa.Text()))
    op.add_column("cluster", sa.Column("halt_reason", sa.Text()))
    op.add_column("cluster", sa.Column("forced_to", sa.Text()))
    op.add_column("cluster", sa.Column("clock_accepts", sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("nodes", sa.Column("coordinator_servers", sa.Text(), server_default="[]", nullable=False))
    op.add_column("nodes", sa.Column("clock_jump_ms", sa.BigInteger()))


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken back to an older schema: restore a backup")
