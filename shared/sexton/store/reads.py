"""What screens, listings and the audit read: portable queries, one snapshot each, no locks."""

from __future__ import annotations


class LedgerReader:
    """Read-only views of the ledger over one SQLAlchemy connection."""
