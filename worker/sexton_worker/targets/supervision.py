"""One run's process under a deadline: what it writes is drained, and it is ended when it must be.

    running ──deadline or stop──▶ terminating (SIGTERM to the group) ──kill_after──▶ killed (SIGKILL to the group)
       └────────────── the leader exits ─────────────────────────────────┴──────────────────┴──▶ over

Over is when the *leader* has exited, whoever else still holds its pipes (a
background process that a run leaves behind is not waited for, and its output is
no longer read). A run that was stopped is over when its whole group is gone.
Processes that left the group (setsid) are others' to find (``escaped``).
"""

from __future__ import annotations

import select
import signal

from sexton.clock import Clock
from sexton_worker.core.runs import Ending, StopReason
from sexton_worker.targets.outputs import Outputs
from sexton_worker.targets.process_group import ProcessGroup
from sexton_worker.targets.stop_signal import StopSignal

URGENT_KILL_AFTER = 5.0  # seconds; when the worker itself ends
LOOK_AGAIN = 0.05  # seconds between looks at a group whose leader is gone; nothing signals its last member's end

ENDINGS = {
    StopReason.CANCELLED: Ending.CANCELLED,
    StopReason.LEASE_LOST: Ending.LEASE_LOST,
    StopReason.GIVEN_BACK: Ending.GIVEN_BACK,
}


class Supervision:
    """Watches one run in the calling thread. ``kill_after`` and ``max_runtime`` in seconds, from now on."""

    def __init__(
        self,
        group: ProcessGroup,
        outputs: Outputs,
        stop: StopSignal,
        clock: Clock,
        *,
        max_runtime: float,
        kill_after: float,
    ) -> None:
        self._group = group
        self._outputs = outputs
        self._stop = stop
        self._clock = clock
        self._deadline = clock.elapsed() + max_runtime
        self._kill_after = kill_after
        self._kill_at: float | None = None  # elapsed seconds; None: not terminating
        self.is_killed = False
        self.forced: Ending | None = None  # None: nobody stopped the run

    def watch(self) -> None:
        """Return when the leader exited; it is not reaped."""
        poll = select.poll()
        for descriptor in (*self._outputs.descriptors(), self._group.fileno(), self._stop.fileno()):
            poll.register(descriptor, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll(self._patience())}
            for descriptor in ready & set(self._outputs.descriptors()):
                if not self._outputs.read(descriptor):
                    poll.unregister(descriptor)
            if self._stop.fileno() in ready:
                self._stop.noticed()
                self._obey()
            if self._group.fileno() in ready:
                return
            self._keep_time()

    def end(self, ending: Ending) -> None:
        """Stop the run now, for this reason, unless it is being stopped already; ``watch`` must follow."""
        self._terminate(ending)

    def end_group(self) -> None:
        """After the leader of a stopped run exited: give the others the rest of ``kill_after``, then kill them."""
        poll = select.poll()
        poll.register(self._stop.fileno(), select.POLLIN)
        while not self.is_killed and self._group.others():
            if poll.poll(LOOK_AGAIN * 1000):
                self._stop.noticed()
                self._obey()
            self._keep_time()

    def _obey(self) -> None:
        if self._stop.reason is not None:
            self._terminate(ENDINGS[self._stop.reason])
        if self._stop.is_urgent and self._kill_at is not None:
            self._kill_at = min(self._kill_at, self._clock.elapsed() + URGENT_KILL_AFTER)

    def _keep_time(self) -> None:
        now = self._clock.elapsed()
        if self._kill_at is None and now >= self._deadline:
            self._terminate(Ending.TIMED_OUT)
        if self._kill_at is not None and now >= self._kill_at and not self.is_killed:
            self._kill()

    def _terminate(self, ending: Ending) -> None:
        if self._kill_at is None:
            self.forced = ending
            self._kill_at = self._clock.elapsed() + self._kill_after
            self._group.signal(signal.SIGTERM)
            self._group.signal(signal.SIGCONT)  # a stopped process would not notice

    def _kill(self) -> None:
        self.is_killed = True
        self._group.signal(signal.SIGKILL)

    def _patience(self) -> int | None:
        """Milliseconds until the clock alone changes something, rounded up; None: never."""
        if self.is_killed:
            return None
        until = self._deadline if self._kill_at is None else self._kill_at
        # In pieces: the poll's own clock stands still while the machine sleeps, the elapsed clock does not.
        return int(min(60.0, max(0.0, until - self._clock.elapsed())) * 1000) + 1
