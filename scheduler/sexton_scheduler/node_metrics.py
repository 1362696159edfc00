"""What a node serves over HTTP: its own metrics, the cluster's figures, whether it is alive and ready."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import sexton
from sexton.clock import Clock
from sexton.metric_families import Exposition, about, counter, counters, gauge, histogram, one_of
from sexton.service_endpoint import Answer, Says, alive, ready
from sexton.store.protocol import Store
from sexton.terms import Confirmation
from sexton_scheduler.cluster_families import cluster_families
from sexton_scheduler.cluster_figures import FiguresThread
from sexton_scheduler.core.readiness import NodeSigns, is_alive, unreadiness
from sexton_scheduler.node_state import NodeState

if TYPE_CHECKING:
    from prometheus_client.core import Metric

ALIVE_WITHIN = 60.0  # beside `poll`: a call of the database may take ten seconds, and a turn is a few of them


class NodeMetrics:
    """The node's answers to who asks over HTTP; ``start`` has the cluster's figures read from then on."""

    def __init__(
        self, state: NodeState, clock: Clock, name: str, poll: timedelta, open_store: Callable[[], Store]
    ) -> None:
        self._state = state
        self._clock = clock
        self._name = name
        self._allowed = ALIVE_WITHIN + poll.total_seconds()
        self.figures = FiguresThread(open_store, clock, state)
        self._exposition = Exposition(self.families)

    @property
    def paths(self) -> dict[str, Says]:
        """What each path says."""
        return {"/metrics": self._metrics, "/healthz": self._healthz, "/readyz": self._readyz}

    def start(self) -> None:
        """Read the cluster's figures until the node stops."""
        threading.Thread(target=self.figures.run, name="sexton figures", daemon=True).start()

    def wake(self) -> None:
        """The node stops."""
        self.figures.wakeup.set()

    def _metrics(self, accept: str) -> Answer:
        kind, text = self._exposition.text(accept)
        return Answer(200, text, kind)

    def _healthz(self, _: str) -> Answer:
        silent_for = self._silent_for()
        return alive(is_alive(silent_for, self._allowed), silent_for)

    def _readyz(self, _: str) -> Answer:
        return ready(self.unreadiness())

    def unreadiness(self) -> tuple[str, ...]:
        """Why the node is not ready."""
        state, view = self._state, self._state.view
        deciding, jump = state.deciding, view.clock_jump
        signs = NodeSigns(
            silent_for=self._silent_for(),
            is_reached=state.counts.is_reached,
            jobs_read=view.jobs_read_at is not None,
            is_eligible=view.is_eligible,
            standing=view.standing,
            confirmation=None if deciding is None else deciding.confirmation,
            clock_jump=None if jump is None else jump.total_seconds(),
            is_stopping=state.is_stopping,
        )
        return unreadiness(signs, self._allowed)

    def _silent_for(self) -> float | None:
        turned_at = self._state.counts.turned_at
        return None if turned_at is None else max(self._clock.elapsed() - turned_at, 0.0)

    def families(self) -> Iterator[Metric]:
        """All of it as metrics, now."""
        yield about("scheduler", self._name, sexton.__version__)
        yield from self._standing()
        yield from self._work()
        yield from cluster_families(self.figures.newest, self._clock.elapsed())

    def _standing(self) -> Iterator[Metric]:
        state, view = self._state, self._state.view
        deciding, jump = state.deciding, view.clock_jump
        read_at, upto = view.jobs_read_at, view.claims_upto
        yield gauge("sexton_node_ready", "1 if /readyz says so.", not self.unreadiness())
        yield gauge("sexton_node_loop_age_seconds", "Since the node's loop came round.", self._silent_for())
        yield one_of("sexton_node_role", "1 for what it is.", "role", ("leader", "racer", "follower"), state.role)
        yield one_of(
            "sexton_node_confirmation",
            "1 for what the coordinator says of the term it decides under; all 0 while it follows.",
            "confirmation",
            [one.value for one in Confirmation],
            None if deciding is None else deciding.confirmation.value,
        )
        yield gauge(
            "sexton_node_term", "The term it decides under; 0 while it follows.", deciding.term if deciding else 0
        )
        yield gauge("sexton_node_jobs_warm", "Jobs that it holds ready to decide.", view.jobs_warm)
        yield gauge(
            "sexton_node_jobs_age_seconds",
            "Since it read what was changed of them.",
            None if read_at is None else max(self._clock.elapsed() - read_at, 0.0),
        )
        host_now = self._clock.wall() + view.clock_offset
        yield gauge(
            "sexton_node_claims_ahead_seconds",
            "How far ahead of now it has written claims, while it decides ticks.",
            None if upto is None else (upto - host_now).total_seconds(),
        )
        yield gauge(
            "sexton_node_clock_offset_seconds",
            "The database's clock minus the node's.",
            view.clock_offset.total_seconds(),
        )
        yield gauge(
            "sexton_node_clock_jump_seconds",
            "By how much the database's clock jumped, while that is in doubt; else 0.",
            0.0 if jump is None else jump.total_seconds(),
        )

    def _work(self) -> Iterator[Metric]:
        counts = self._state.counts
        yield counter("sexton_node_terms_taken", "Terms that it took.", counts.terms_taken)
        yield histogram("sexton_node_commit_seconds", "How long commits of decisions took.", counts.commits)
        yield counter("sexton_node_commits_too_late", "Commits of which nothing counted: too old.", counts.grown_old)
        yield counter("sexton_node_attempts", "Cursors that it wanted to move.", counts.attempts)
        yield counter(
            "sexton_node_conflicts", "Those of them that others had moved or held: normal, in a race.", counts.conflicts
        )
        yield counter("sexton_node_ticks", "Ticks that it decided.", counts.ticks)
        yield counter("sexton_node_claims", "Claims that it wrote for them.", counts.claims)
        yield counter("sexton_node_duplicates", "Claims that were there already: must stay 0.", counts.swallowed)
        yield counter("sexton_node_superseded", "Writes refused because its term was over.", counts.refused)
        yield counter(
            "sexton_node_leases_expired", "Claims it took from workers that fell silent.", counts.leases_expired
        )
        yield counters(
            "sexton_database_errors", "Calls that the database did not answer, by thread.", "part", counts.errors
        )
