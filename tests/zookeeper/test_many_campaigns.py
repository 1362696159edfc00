"""Campaigns in a row on three servers: nothing that one of them makes is left behind.

`make campaigns` runs a thousand and prints the figures; CI runs fewer (`CAMPAIGNS`).
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import threading
import time
from pathlib import Path

from sexton_scheduler.election.candidate import Standing
from tests.support.elections import LONG, SESSION, Candidates, becomes, elected_again, onlooker, session_of, znodes
from tests.support.ensemble import ZooKeeperEnsemble
from tests.support.waiting import eventually

CAMPAIGNS = int(os.environ.get("CAMPAIGNS", "200"))
SLACK = 5  # kazoo opens a descriptor for each wait and the watch one for each question; a leak is one a campaign
WARM = 5  # campaigns after which everything that is made once has been made


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def at_most(limit: int, count: int) -> int:
    """The count; 0 where it is above the limit by more than comes and goes."""
    return count if count <= limit + SLACK else 0


def sessions(ensemble: ZooKeeperEnsemble) -> int:
    """How many sessions the ensemble holds: its leader tracks all of them."""
    tracked = ensemble.leader().ask("dump").partition("ephemeral nodes dump")[0]
    assert "Session Sets" in tracked
    return len(re.findall(r"^\t0x[0-9a-f]+$", tracked, re.MULTILINE))


def test_campaigns_in_a_row_leave_no_znode_session_thread_or_descriptor(
    ensemble: ZooKeeperEnsemble, candidate: Candidates, path: str
) -> None:
    only = candidate(ensemble.hosts)
    seconds: list[float] = []
    for done in range(CAMPAIGNS):
        began = time.monotonic()
        only.campaign()
        becomes(only, Standing.ELECTED)
        assert only.confirm()
        only.resign()
        seconds.append(time.monotonic() - began)
        if done == WARM:
            session, threads, fds, held = session_of(only), threading.active_count(), descriptors(), sessions(ensemble)
    assert session_of(only) == session
    threads_left = eventually(lambda: at_most(threads, threading.active_count()), LONG, "no thread is left")
    fds_left = eventually(lambda: at_most(fds, descriptors()), LONG, "no descriptor is left")
    held_left = eventually(lambda: at_most(held, sessions(ensemble)), LONG, "no session is left")
    with onlooker(ensemble.hosts) as client:
        assert client.get_children(f"{path}/election") == []
    if "CAMPAIGNS" in os.environ:
        took = sorted(seconds)
        p50, p99 = statistics.median(took) * 1e3, took[int(len(took) * 0.99)] * 1e3
        figures = f"{sum(took):.1f} s (p50 {p50:.1f} ms, p99 {p99:.1f} ms), slept for 0 to 20 ms a campaign by the test"
        left = (
            f"threads {threads} -> {threads_left}, descriptors {fds} -> {fds_left}, sessions {held} -> {held_left}, "
            "znodes 0"
        )
        sys.stderr.write(f"\n{CAMPAIGNS} campaigns, each won, confirmed and resigned: {figures}; {left}\n")


def test_sessions_lost_in_a_row_leave_no_thread_or_descriptor(
    ensemble: ZooKeeperEnsemble, candidate: Candidates, path: str
) -> None:
    """Each adopted length is another client; what the old one had goes with it."""
    only = candidate(ensemble.hosts)
    elected_again(only)
    threads, fds = threading.active_count(), descriptors()
    for done in range(max(12, CAMPAIGNS // 20)):
        only.resign()
        only.adopt(SESSION * (2 + done % 2))
        elected_again(only)
    eventually(lambda: at_most(threads, threading.active_count()), LONG, "no thread is left")
    eventually(lambda: at_most(fds, descriptors()), LONG, "no descriptor is left")
    assert len(znodes(ensemble.hosts, path)) == 1
