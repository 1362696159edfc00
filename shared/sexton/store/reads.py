"""What screens, listings and the audit read: portable queries, no locks, one short read transaction a call.

Every call's cost is bounded however large the tables are: counts stop, pages go by key, filters that no index serves
look at a stretch of the newest rows. Each subject has its file in ``reading``; the queries themselves are in the
``read_*`` modules beside this one.
"""

from __future__ import annotations

from sexton.store.reading.cluster import ClusterReads
from sexton.store.reading.decisions import DecisionReads
from sexton.store.reading.job_pages import JobPageReads
from sexton.store.reading.jobs import JobReads
from sexton.store.reading.runs import RunReads


class LedgerReader(ClusterReads, JobReads, JobPageReads, RunReads, DecisionReads):
    """Read-only views of the ledger."""
