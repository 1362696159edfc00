"""Election: who may try to lead. The database decides who does (invariant 1)."""

from __future__ import annotations

from datetime import timedelta

from sexton.clock import Clock, Wakeup
from sexton.errors import InvalidSetting
from sexton.store.protocol import Store
from sexton_scheduler.election.candidate import Candidate, NodeIdentity

DATABASE = "database:"


def make_candidate(
    coordinator: str, store: Store, clock: Clock, wakeup: Wakeup, identity: NodeIdentity, session: timedelta
) -> Candidate:
    """The candidate for ``database:`` or ``zookeeper://h1:2181,h2:2181/path``; raises ``InvalidSetting``.

    ``store`` is the loop's own; ``wakeup`` is set whenever the standing changes.
    """
    if coordinator == DATABASE:
        from sexton_scheduler.election.database import DatabaseCandidate

        return DatabaseCandidate(store, clock, session)
    if coordinator.startswith("zookeeper://"):
        try:
            from sexton_scheduler.election.zookeeper import Ensemble, ZooKeeperCandidate
        except ModuleNotFoundError as error:
            raise InvalidSetting(
                f"the coordinator is ZooKeeper, whose client is not installed here ({error})",
                hint="install sexton[scheduler]",
            ) from None
        return ZooKeeperCandidate(Ensemble.parse(coordinator), identity, session, wakeup)
    raise InvalidSetting(
        f"coordinator {coordinator!r} is neither database: nor zookeeper://…",
        hint="write database: or e.g. zookeeper://zk1:2181,zk2:2181,zk3:2181/sexton",
    )
