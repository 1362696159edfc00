"""Election: who may try to lead. The database decides who does (invariant 1)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from sexton.clock import Clock, Wakeup
from sexton.errors import InvalidSetting
from sexton.process_settings import CoordinatorAccess
from sexton.store.protocol import Store
from sexton.terms import CoordinatorServer
from sexton_scheduler.election.candidate import Candidate, NodeIdentity

DATABASE = "database:"


def make_candidate(
    coordinator: str,
    store: Store,
    clock: Clock,
    wakeup: Wakeup,
    identity: NodeIdentity,
    session: timedelta,
    access: CoordinatorAccess | None = None,
    saw_servers: Callable[[tuple[CoordinatorServer, ...]], None] = lambda _: None,
) -> Candidate:
    """The candidate for ``database:`` or ``zookeeper://h1:2181,h2:2181/path``; raises ``InvalidSetting``.

    ``store`` is the loop's own; ``wakeup`` is set whenever the standing changes. ``saw_servers`` is called, in a thread
    of the candidate, every few seconds with what the coordinator's servers say of themselves. ZooKeeper is contacted
    from the first campaign on, and no more once the candidate was told to rest.
    """
    if coordinator == DATABASE:
        from sexton_scheduler.election.database import DatabaseCandidate

        return DatabaseCandidate(store, clock, session)
    check_coordinator(coordinator, access)
    from sexton_scheduler.election.ensemble import Ensemble, Entrance
    from sexton_scheduler.election.on_demand import CandidateOnDemand
    from sexton_scheduler.election.zookeeper import ZooKeeperCandidate

    ensemble, entrance = Ensemble.parse(coordinator), Entrance.open(access or CoordinatorAccess())

    def make(session: timedelta) -> Candidate:
        return ZooKeeperCandidate(ensemble, identity, session, wakeup, entrance, saw_servers)

    return CandidateOnDemand(make, ZooKeeperCandidate.elected_by, session, closed=lambda: saw_servers(()))


def check_coordinator(coordinator: str, access: CoordinatorAccess | None) -> None:
    """Whether a candidate can be made: address, login and certificates. Raises ``InvalidSetting``; connects nowhere."""
    if coordinator == DATABASE:
        return
    if not coordinator.startswith("zookeeper://"):
        raise InvalidSetting(
            f"coordinator {coordinator!r} is neither database: nor zookeeper://…",
            hint="write database: or e.g. zookeeper://zk1:2181,zk2:2181,zk3:2181/sexton",
        )
    try:
        from sexton_scheduler.election.ensemble import Ensemble, Entrance
    except ModuleNotFoundError as error:
        raise InvalidSetting(
            f"the coordinator is ZooKeeper, whose client is not installed here ({error})",
            hint="install sexton[scheduler]",
        ) from None
    Ensemble.parse(coordinator)
    Entrance.open(access or CoordinatorAccess())
