"""Alerts of a node: who looks, who tells, and the beat for a dead man's switch. The edge of `sexton.alerts`.

* ``watch`` is one of the housekeeping's duties: one node in the cluster has the turn, leader or follower.
* ``Teller`` and ``Beacon`` have a thread each, for a webhook may take its time: scheduling never waits for them. A
  delivery is taken under a lease longer than it may last; it fails, is put off, and is tried again for as long as the
  alert is open. Told once, but for a node that dies between telling and writing that down: then once more.
* A call, and a command, has one limit for the whole of it, whatever the other side does: no receiver stops the others.
* No log holds an address, an argument or an answer: they may be secrets.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import structlog

from sexton.alert_settings import AlertSettings
from sexton.alerts import alert_changes, retry_delay
from sexton.clock import Clock, Wakeup
from sexton.errors import DatabaseUnreachable
from sexton.store.protocol import Store
from sexton_scheduler import alert_command
from sexton_scheduler.housekeeping import Duty, Housekeeper
from sexton_scheduler.node_state import NodeState

LOOK_EVERY = timedelta(seconds=5)
TELL_EVERY = 1.0
HTTP_SECONDS = 10.0
COMMAND_SECONDS = 30.0
_ENDING_SECONDS = 10.0  # what ends a command has so long for it
COMMAND_RUNNER = (sys.executable, "-I", "-S", alert_command.__file__)  # a program of its own
LEASE = timedelta(seconds=2 * COMMAND_SECONDS)
FRESH_SECONDS = 30.0  # a leader whose loop has not looked for so long gives no sign of life
_log = structlog.get_logger("sexton.scheduler")


def watch_duty(settings: AlertSettings) -> Duty:
    """The duty that looks for what is wrong. Not the simulator's: it decides nothing about ticks."""
    return Duty("alerts", 2.0, lambda keeper: watch(keeper, settings))


def watch(keeper: Housekeeper, settings: AlertSettings) -> int:
    """Look, if this node has the turn, and raise, reword and close alerts; how many were raised or closed.

    Not by a clock in doubt."""
    if keeper.state.view.clock_jump is not None:
        return 0
    store = keeper.store.alerts
    turn = store.take_turn(LOOK_EVERY)
    if turn is None:
        return 0
    watched_for = timedelta(seconds=keeper.reach.unbroken_for())
    changes = alert_changes(store.signs(turn), watched_for, settings.no_leader_after)
    changed = 0
    for condition in changes.raised:
        if store.raise_alert(condition, turn):
            changed += 1
            _log.warning("alert.raised", kind=condition.kind.value, sentence=condition.sentence)
    for kind, job_id in changes.recovered:
        if store.recover(kind, job_id, turn):
            changed += 1
            _log.info("alert.recovered", kind=kind.value, job_id=job_id or None)
    for condition in changes.reworded:
        store.reword(condition, turn)
    return changed


Deliver = Callable[[dict[str, Any]], str | None]
"""Tells a message; None where it was taken, else why not, in a few words that hold no secret."""


class Teller:
    """Tells alerts, one at a time, until its node stops."""

    def __init__(self, open_store: Callable[[], Store], clock: Clock, state: NodeState, node: str, deliver: Deliver):
        self._open_store = open_store
        self._clock = clock
        self._state = state
        self._node = node
        self._deliver = deliver
        self.wakeup: Wakeup = clock.wakeup()

    def run(self) -> None:
        """Tell until the node stops, in the thread that calls this. A fault of one delivery ends none of the others."""
        with closing(self._open_store()) as store:
            while not self._state.is_stopping:
                try:
                    told = self.step(store)
                except DatabaseUnreachable:  # the loop says so
                    told = False
                except Exception:
                    _log.exception("alert.failed")
                    told = False
                if not told:
                    self._clock.wait(self.wakeup, TELL_EVERY)

    def step(self, store: Store) -> bool:
        """Try to tell the alert that has waited longest; whether there was one."""
        due = store.alerts.take_delivery(LEASE)
        if due is None:
            return False
        error = self._deliver(due.message(self._node))
        facts = {"kind": due.kind.value, "job": due.job, "attempt": due.attempt}
        if error is None:
            store.alerts.settle(due)
            _log.info("alert.told", **facts)
        else:
            again_in = retry_delay(due.attempt)
            store.alerts.postpone(due, error, again_in)
            _log.warning("alert.not_told", error=error, again_in_seconds=again_in.total_seconds(), **facts)
        return True


class Beacon:
    """Calls an address every so often while its node leads, or races, and its loop is at work."""

    def __init__(self, clock: Clock, state: NodeState, every: timedelta, call: Callable[[], str | None]) -> None:
        self._clock = clock
        self._state = state
        self._every = every.total_seconds()
        self._call = call
        self.wakeup: Wakeup = clock.wakeup()
        self.failed = 0  # calls, since the last that was answered

    def run(self) -> None:
        """Call until the node stops, in the thread that calls this."""
        next_at = self._clock.elapsed()
        while not self._state.is_stopping:
            now = self._clock.elapsed()
            if now >= next_at and self.is_alive():
                self.step()
                next_at = now + self._every
            self._clock.wait(self.wakeup, min(max(next_at - self._clock.elapsed(), 0.0), TELL_EVERY) or TELL_EVERY)

    def is_alive(self) -> bool:
        """Whether this node decides ticks: it leads or races, has looked at its jobs, and believes the clock."""
        state = self._state
        read_at = state.view.jobs_read_at
        if state.deciding is None or state.is_superseded or state.view.clock_jump is not None or read_at is None:
            return False
        return self._clock.elapsed() - read_at <= FRESH_SECONDS

    def step(self) -> None:
        """One call; a failure is said once, and counted until a call is answered."""
        try:
            error = self._call()
        except Exception as fault:  # of whatever kind: the next call is made
            error = type(fault).__name__
        if error is None:
            if self.failed:
                _log.info("heartbeat_url.answered", failed=self.failed)
            self.failed = 0
            return
        self.failed += 1
        if self.failed == 1:
            _log.warning("heartbeat_url.failed", error=error, hint="it is tried again, and this is said once")


class AlertThreads:
    """The threads that a node's settings ask for: none, where it tells nobody. They end with the process."""

    def __init__(
        self, settings: AlertSettings, clock: Clock, state: NodeState, node: str, open_store: Callable[[], Store]
    ) -> None:
        self._parts: list[Teller | Beacon] = []
        if settings.tells:
            self._parts.append(Teller(open_store, clock, state, node, deliver_by(settings)))
        if (url := settings.heartbeat_url) is not None:
            self._parts.append(Beacon(clock, state, settings.heartbeat_every, lambda: call_url(url)))

    def start(self) -> None:
        for part in self._parts:
            threading.Thread(target=part.run, name=f"sexton {type(part).__name__.lower()}", daemon=True).start()

    def wake(self) -> None:
        """The node stops: end them, if they do not wait for an answer."""
        for part in self._parts:
            part.wakeup.set()


def deliver_by(settings: AlertSettings) -> Deliver:
    """How this node tells."""
    if settings.alert_command is not None:
        command = settings.alert_command
        return lambda message: run_command(command, message)
    url = settings.alert or ""
    return lambda message: call_url(url, message)


def call_url(url: str, message: dict[str, Any] | None = None) -> str | None:
    """POST the message, or GET where there is none; None for any answer from 200 to 299. Redirects are not followed.

    Returns within ``HTTP_SECONDS``, also from a server that sends its answer byte by byte.
    """
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_called(url, message))
    finally:
        loop.close()  # and does not wait for a name that is still being looked up


async def _called(url: str, message: dict[str, Any] | None) -> str | None:
    import httpx  # here: most nodes tell nobody, and it takes long to load

    try:
        client = httpx.AsyncClient(timeout=None, follow_redirects=False)  # noqa: S113 - the whole has one
        request = client.build_request("GET" if message is None else "POST", url, json=message)
        async with asyncio.timeout(HTTP_SECONDS), client:
            answer = await client.send(request, stream=True)  # its body is nobody's business, and may be endless
            await answer.aclose()
            return None if answer.is_success else f"answered {answer.status_code}"
    except TimeoutError:
        return f"no answer within {HTTP_SECONDS:g} s"
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        return type(error).__name__  # its text may hold the address


def run_command(command: tuple[str, ...], message: dict[str, Any]) -> str | None:
    """Run the command without a shell, the message as one line of JSON on its stdin; None where it exits with 0.

    It has the node's environment without Sexton's own variables, which may hold a password, and half a minute. What it
    started has ended when this returns, and ends with this process: see ``alert_command``.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SEXTON_")}
    runner = [*COMMAND_RUNNER, str(COMMAND_SECONDS), *command]
    line = json.dumps(message, ensure_ascii=False).encode() + b"\n"
    try:
        with subprocess.Popen(
            runner,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        ) as process:
            return _said_by(process, line)
    except OSError as error:
        return f"the command cannot be started ({error.strerror})"


def _said_by(process: subprocess.Popen[bytes], line: bytes) -> str | None:
    """Its input stays open meanwhile: the end of it would be the end of this node."""
    assert process.stdin is not None  # noqa: S101 - both are pipes
    assert process.stdout is not None  # noqa: S101 - both are pipes
    try:
        process.stdin.write(line)
        process.stdin.flush()
        code = process.wait(COMMAND_SECONDS + _ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return "the command could not be ended"
    said = process.stdout.read().decode(errors="replace")
    return said or (None if code == 0 else "the command was ended from outside")
