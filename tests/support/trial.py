"""A cluster of real processes for a trial: nodes and workers that are killed and frozen, and what they left behind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from sexton.store import open_store
from sexton.store.protocol import Store, StoreOptions
from sexton.store.schema import upgrade
from tests.support.processes import ProcessGroup, RunningProcess
from tests.support.waiting import eventually

LONG = 90.0
"""Seconds within which a healthy cluster does anything, on a machine however loaded: a limit, no expectation."""

EVERY_SECOND = """\
version: 1
jobs:
  bell:
    schedule: "* * * * * *"
    overlap: queue
    missed: {policy: %s, grace: %s}
    command: ["true"]
"""


class Trial:
    """One cluster: its database is made and its jobs applied by ``apply``; then nodes and workers are started."""

    def __init__(self, processes: ProcessGroup, url: str, coordinator: str = "database:") -> None:
        self.processes = processes
        self.url = url
        self.environment = {"SEXTON_DATABASE": url, "SEXTON_COORDINATOR": coordinator}
        self.nodes: dict[str, RunningProcess] = {}
        self.workers: dict[str, RunningProcess] = {}
        upgrade(url)
        self.store: Store = open_store(StoreOptions(url, application="sexton trial"))

    # --- setting it up ---------------------------------------------------------------------------

    def apply(self, jobs: str, settings: Mapping[str, str] | None = None) -> None:
        """Set cluster settings, then apply a job file of this text."""
        for key, value in (settings or {}).items():
            self.store.edits.set_setting(key, value, "trial")
        path = self.processes.folder / "jobs.yaml"
        path.write_text(jobs)
        self.sexton("apply", str(path), "--yes")

    def start_node(self, name: str) -> RunningProcess:
        self.nodes[name] = self.processes.sexton("scheduler", "--name", name, env=self.environment, name=name)
        return self.nodes[name]

    def start_worker(self, name: str) -> RunningProcess:
        self.workers[name] = self.processes.sexton("worker", "--name", name, env=self.environment, name=name)
        return self.workers[name]

    # --- asking it -------------------------------------------------------------------------------

    def sexton(self, *arguments: str, code: int = 0) -> str:
        """Run a command to its end; its standard output. Another exit code than ``code`` fails the test."""
        done = self.processes.run(*arguments, env=self.environment, within=LONG)
        assert done.returncode == code, f"sexton {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def leader(self) -> str | None:
        return self.store.terms.cluster().leader

    def wait_for_leader(self, other_than: str | None = None) -> str:
        """The leader's name, once there is one of ours (other than the one given)."""
        found = eventually(
            lambda: [name for name in [self.leader()] if name is not None and name != other_than],
            within=LONG,
            what=f"a leader other than {other_than}",
        )
        return found[0]

    def wait_for_runs(self, count: int, after: datetime) -> None:
        """Return when ``count`` more runs have ended since ``after``."""
        eventually(lambda: self.ended_runs(after) >= count, within=LONG, what=f"{count} runs after {after}")

    def ended_runs(self, after: datetime) -> int:
        page = self.store.reads.runs_page(limit=500)
        return sum(run.finished_at > after for run in page.runs)

    def claims(self, job: str) -> list[dict[str, Any]]:
        """The claims of a job as ``sexton ticks`` lists them."""
        listed: list[dict[str, Any]] = json.loads(self.sexton("ticks", job, "--limit", "500", "--output", "json"))
        return listed

    def audit(self, upto: datetime) -> dict[str, Any]:
        """The audit's report up to an instant; it must be clean."""
        report: dict[str, Any] = json.loads(self.sexton("audit", "--to", upto.isoformat(), "--output", "json"))
        assert report["clean"], report["differences"]
        return report

    def close(self) -> None:
        self.store.close()

    @property
    def folder(self) -> Path:
        return self.processes.folder
