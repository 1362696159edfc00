"""Random blows at a trial's processes, for trials that last: workers, their zygotes and Python processes, nodes.

Each blow is one of: killed, frozen for a while (alone, or with all that it started), told to end. Who has ended is
started again; who was frozen is thawed when its time has come, or by ``calm``.
"""

from __future__ import annotations

import collections
import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.support import reaper
from tests.support.freezing import thaw_tree
from tests.support.trial import Trial

LONGEST_FREEZE = 12.0  # seconds: longer than a lease
PATIENCE = 60.0  # seconds, for one that was told to end


class Blows:
    """At this trial; ``spared`` names a worker that is never killed or told to end, so that it shows what leaks."""

    def __init__(self, trial: Trial, spared: str, draw: random.Random) -> None:
        self._trial = trial
        self._spared = spared
        self._draw = draw
        self._frozen: dict[int, float] = {}  # until when
        self.count: collections.Counter[str] = collections.Counter()
        self._kinds: dict[str, Callable[[], bool]] = {
            "worker killed": self._kill_worker,
            "worker frozen": self._freeze_worker,
            "worker frozen with its children": self._freeze_tree,
            "worker told to end": self._end_worker,
            "zygote killed": lambda: self._hit_child("sexton zygote", signal.SIGKILL),
            "zygote frozen": lambda: self._hit_child("sexton zygote", signal.SIGSTOP),
            "Python process killed": lambda: self._hit_child("python_child", signal.SIGKILL),
            "Python process frozen": lambda: self._hit_child("python_child", signal.SIGSTOP),
            "node killed": lambda: self._hit_node(signal.SIGKILL),
            "node frozen": lambda: self._hit_node(signal.SIGSTOP),
            "node told to end": lambda: self._hit_node(signal.SIGTERM),
        }

    def strike(self) -> None:
        """One blow."""
        kind = self._draw.choice(list(self._kinds))
        if self._kinds[kind]():
            self.count[kind] += 1

    def draw_pause(self) -> float:
        """Seconds until the next blow."""
        return self._draw.uniform(0.2, 3.0)

    def mend(self) -> bool:
        """Thaw whose time has come, and start again who has ended; true."""
        now = time.monotonic()
        for pid in [pid for pid, until in self._frozen.items() if now >= until]:
            self._thaw(pid)
        for name, worker in self._trial.workers.items():
            if not worker.is_running():
                self._trial.start_worker(name)
        for name, node in self._trial.nodes.items():
            if not node.is_running():
                self._trial.start_node(name)
        return True

    def calm(self) -> None:
        """No more blows: everybody is there and may go on."""
        for pid in tuple(self._frozen):
            self._thaw(pid)
        self.mend()

    # --- workers ----------------------------------------------------------------------------------------------------

    def _kill_worker(self) -> bool:
        name = self._a_worker(but_spared=True)
        self._trial.workers[name].kill()
        return True

    def _end_worker(self) -> bool:
        name = self._a_worker(but_spared=True)
        worker = self._trial.workers[name]
        self._thaw(worker.pid)
        worker.signal(signal.SIGTERM)
        if self._draw.random() < 0.3:  # no patience
            threading.Event().wait(0.2)
            worker.signal(signal.SIGTERM)
        return True

    def _freeze_worker(self) -> bool:
        worker = self._trial.workers[self._a_worker()]
        worker.signal(signal.SIGSTOP)
        return self._note_frozen(worker.pid)

    def _freeze_tree(self) -> bool:
        worker = self._trial.workers[self._a_worker()]
        reaper.signal_tree(worker.pid, signal.SIGSTOP)
        return self._note_frozen(worker.pid)

    def _hit_child(self, mark: str, number: signal.Signals) -> bool:
        """Frozen children stay so: it is their worker's to notice, or their zygote's."""
        children = [pid for worker in self._trial.workers.values() for pid in children_of(worker.pid, mark)]
        if not children:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._draw.choice(children), number)
        return True

    def _a_worker(self, *, but_spared: bool = False) -> str:
        return self._draw.choice([name for name in self._trial.workers if not (but_spared and name == self._spared)])

    # --- nodes ------------------------------------------------------------------------------------------------------

    def _hit_node(self, number: signal.Signals) -> bool:
        node = self._trial.nodes[self._draw.choice(list(self._trial.nodes))]
        node.signal(number)
        return self._note_frozen(node.pid) if number is signal.SIGSTOP else True

    # --- ice --------------------------------------------------------------------------------------------------------

    def _note_frozen(self, pid: int) -> bool:
        self._frozen[pid] = time.monotonic() + self._draw.uniform(0.1, LONGEST_FREEZE)
        return True

    def _thaw(self, pid: int) -> None:
        self._frozen.pop(pid, None)
        with contextlib.suppress(ProcessLookupError):
            thaw_tree(pid)


def children_of(pid: int, mark: str) -> list[int]:
    """The descendants of a process whose name or command line has this in it."""
    found = []
    for child in reaper.descendants(pid):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{child}/cmdline").read_text(errors="replace")
            if mark in words or mark in Path(f"/proc/{child}/comm").read_text():
                found.append(child)
    return found
