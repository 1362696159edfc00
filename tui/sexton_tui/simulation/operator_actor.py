"""The people of a simulated cluster: they edit, pause, retire, create and trigger jobs, ask leaders to go or force
others to lead, halt the cluster for a while, and change its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sexton.errors import SextonError
from sexton.store.protocol import ChangeKind, CurrentJob, JobChange, Store
from sexton_tui.simulation.processes import Process
from sexton_tui.simulation.workload import another_schedule, make_job

ACTOR = "operator@simulation"
_SETTINGS = {
    "session": ("30s", "45s", "60s"),
    "failover.database_after": ("60s", "120s"),
    "catch_up.rate": ("5", "50"),
    "catch_up.hold_above": ("40", "1000"),
    "horizon": ("90s", "2m", "5m"),
}


class Operator:
    """Acts every so many seconds on average, until ``acts_until`` (microseconds of the world)."""

    def __init__(
        self, process: Process, store: Store, acts_until: int, every: float, settings: Mapping[str, str]
    ) -> None:
        # A cluster without a horizon keeps none: it is the harder one.
        self._settings = [key for key in _SETTINGS if key != "horizon" or settings.get(key) != "0s"]
        self._process = process
        self._store = store
        self._acts_until = acts_until
        self._every = every
        self._created = 0
        self._deeds: tuple[Callable[[CurrentJob], None], ...] = (
            self._revise,
            self._revise,
            self._pause_or_resume,
            self._pause_or_resume,
            self._trigger,
            self._retire_and_create,
            self._resign,
            self._force,
            self._halt_for_a_while,
            self._set,
        )

    def run(self) -> None:
        """Act until the end, then lift and resume what is halted or paused: no judged cluster is left half asleep."""
        world = self._process.world
        while world.micros < self._acts_until:
            world.pause(world.draw(0, 2 * self._every))
            if world.micros < self._acts_until:
                self._act()
        while not (self._has_lifted() and self._has_resumed_all()):
            world.pause(world.draw(1, 5))

    def _act(self) -> None:
        random = self._process.world.random
        try:
            jobs = self._store.edits.current_jobs()
            deed = random.choice(self._deeds)
            deed(random.choice(jobs))
        except SextonError as error:
            self._process.tell(f"gave up: {type(error).__name__}")

    def _revise(self, job: CurrentJob) -> None:
        schedule = another_schedule(self._process.world)
        definition = replace(job.definition, schedule_parts=schedule)
        self._edit(JobChange(ChangeKind.REVISE, job.job_id, definition, job.revision))

    def _pause_or_resume(self, job: CurrentJob) -> None:
        self._edit(JobChange(ChangeKind.RESUME if job.is_paused else ChangeKind.PAUSE, job.job_id, why="simulated"))

    def _retire_and_create(self, job: CurrentJob) -> None:
        self._created += 1
        name = f"created-{self._created}"
        rules = job.definition
        created = make_job(name, *another_schedule(self._process.world), missed=rules.missed, overlap=rules.overlap)
        self._edit(JobChange(ChangeKind.RETIRE, job.job_id), JobChange(ChangeKind.CREATE, definition=created))

    def _trigger(self, job: CurrentJob) -> None:
        self._process.history.count("triggers")
        self._store.edits.trigger(job.job_id, ACTOR)

    def _resign(self, _: CurrentJob) -> None:
        self._process.history.count("resignations asked")
        self._store.edits.request_resign(ACTOR)

    def _force(self, _: CurrentJob) -> None:
        nodes = self._store.reads.nodes()
        if not nodes:  # a jump of the clock makes all of them old news
            return
        node = self._process.world.random.choice(nodes)
        if self._store.edits.force_leader(node.name, ACTOR):
            self._process.history.count("forces")
            self._process.tell(f"forces {node.name}")

    def _halt_for_a_while(self, _: CurrentJob) -> None:
        world = self._process.world
        if self._store.edits.halt(ACTOR, "simulated").changed:
            self._process.history.count("halts")
            self._process.tell("halts")
        world.pause(world.draw(1, 900))
        while not self._has_lifted():
            world.pause(world.draw(1, 5))

    def _set(self, _: CurrentJob) -> None:
        random = self._process.world.random
        key = random.choice(self._settings)
        value = random.choice(_SETTINGS[key])
        self._process.history.count("settings")
        self._process.tell(f"sets {key} to {value}")
        self._store.edits.set_setting(key, value, ACTOR)

    def _has_lifted(self) -> bool:
        try:
            self._store.edits.lift_halt(ACTOR)
        except SextonError:
            return False
        return True

    def _edit(self, *changes: JobChange) -> None:
        self._process.history.count("edits")
        self._store.edits.edit(changes, ACTOR)

    def _has_resumed_all(self) -> bool:
        try:
            paused = [job for job in self._store.edits.current_jobs() if job.is_paused]
            for job in paused:
                self._edit(JobChange(ChangeKind.RESUME, job.job_id))
        except SextonError:
            return False
        return True
