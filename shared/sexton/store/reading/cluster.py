"""Reads of the cluster: who leads, nodes, workers, queues, settings."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select

from sexton.cluster_views import FailingJob, NodeView, Overview, OverviewPart, QueueView, Undecided, WorkerView
from sexton.member_views import OpenedQueue, OpenedWorker
from sexton.setting_views import SettingChange, SettingView, cluster_setting_views
from sexton.settings import settings_from_rows
from sexton.store import read_cluster, read_jobs, read_members, read_overview, tables
from sexton.store.read_overview import OverviewParts
from sexton.store.reading.transaction import ReadTransactions


class ClusterReads(ReadTransactions):
    """What the processes of the cluster do, and how they are set."""

    def overview(self, lateness_since: datetime | None = None) -> Overview:
        """The cluster now. Minutes of lateness from `lateness_since` on (None: the last 30 minutes)."""
        return self.overview_parts(frozenset(), None, lateness_since).overview

    def overview_parts(
        self, which: frozenset[OverviewPart], known: OverviewParts | None, lateness_since: datetime | None = None
    ) -> OverviewParts:
        """The overview with who leads as of now, the parts of `which` read anew, the others as `known`; a statement
        each."""
        with self._connect() as connection:
            return read_overview.read_parts(connection, self._given_now(), which, known, lateness_since)

    def settings(self) -> tuple[SettingView, ...]:
        """Every setting of the cluster with its default, and who changed it when."""
        with self._connect() as connection:
            rows = connection.execute(select(tables.settings))
            changes = [SettingChange(row.key, row.value, row.changed_by, row.changed_at) for row in rows]
            coordinator = connection.execute(select(tables.cluster.c.coordinator)).scalar()
            return cluster_setting_views(changes, coordinator)

    def failing(self) -> tuple[FailingJob, ...]:
        """Jobs whose newest run failed within a day, the newest 20 such at most, by name."""
        with self._connect() as connection:
            return read_cluster.read_failing(connection, self._now(connection))

    def undecided(self, limit: int = 20_000) -> Undecided:
        """Ticks that fell due and have no decision; computes next ticks, so it is for a command."""
        with self._connect() as connection:
            return read_jobs.read_undecided(connection, self._now(connection), limit)

    def nodes(self) -> tuple[NodeView, ...]:
        """Nodes heard of in the last 10 minutes, by name."""
        with self._connect() as connection:
            return read_cluster.read_nodes(connection, self._now(connection))

    def workers(self, *, stopped: bool = False) -> tuple[WorkerView, ...]:
        """Workers heard of in the last 10 minutes, by name; with `stopped` also those that stopped cleanly."""
        with self._connect() as connection:
            return read_cluster.read_workers(connection, self._now(connection), stopped=stopped)

    def queues(self) -> tuple[QueueView, ...]:
        """Queues with claims to grant or a worker, by name."""
        with self._connect() as connection:
            now = self._now(connection)
            rows = connection.execute(select(tables.settings))
            lease = settings_from_rows({row.key: row.value for row in rows}).lease
            return read_cluster.read_queues(connection, now, read_cluster.read_workers(connection, now), lease)

    def opened_worker(self, name: str) -> OpenedWorker:
        """The workers of that name and what they run. Raises ``NotFound``."""
        with self._connect() as connection:
            return read_members.read_opened_worker(connection, self._now(connection), name)

    def opened_queue(self, name: str) -> OpenedQueue:
        """A queue by priority, who serves it, what waits longest. Raises ``NotFound``."""
        with self._connect() as connection:
            return read_members.read_opened_queue(connection, self._now(connection), name)
