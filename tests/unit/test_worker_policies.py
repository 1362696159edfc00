from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sexton.targets import CommandTarget, PythonTarget, ShellTarget, Target
from sexton_worker.core.allow_list import refusal
from sexton_worker.core.output_tail import KEPT_BYTES, OutputTail
from sexton_worker.core.pull_policy import (
    AHEAD_SECONDS,
    EXCHANGE_SECONDS,
    GAP,
    LARGEST_HOLD,
    LARGEST_PULL,
    LINGER,
    NOTHING_PULLED,
    SHORT_SECONDS,
    SMALLEST_PULL,
    URGENT_FOR,
    WAKE_LATE,
    WORTH_WRITING,
    Pace,
    capacity,
    exchange_in,
    linger,
    pause,
    room,
)

# --- pull policy


def test_room_is_what_is_free_and_nothing_while_draining() -> None:
    assert room(4, 1, is_draining=False) == 3
    assert room(4, 4, is_draining=False) == 0
    assert room(4, 5, is_draining=False) == 0
    assert room(9999, 0, is_draining=False) == LARGEST_PULL
    assert room(4, 0, is_draining=True) == 0


def test_a_worker_takes_ahead_only_while_its_runs_are_short_and_no_more_than_it_runs_soon() -> None:
    assert capacity(4, Pace()) == 4
    quick = Pace().after([0.001] * 4)
    assert capacity(4, quick) == 16  # grows as long as everything ends between two exchanges
    assert capacity(4, quick.after([0.001] * 16)) == 64
    assert capacity(4, quick.after([0.001] * 500)) == LARGEST_HOLD
    assert capacity(4, quick.after([0.001])) == 16  # one that came early does not throw it back
    assert capacity(4, quick.after([0.1] * 16)) == 4 + int(4 * AHEAD_SECONDS / 0.1)
    assert capacity(4, quick.after([*[0.001] * 30, 1.0])) == 5
    assert capacity(4, quick.after([*[0.001] * 30, 60.0])) == 4


def test_an_exchange_carries_what_goes_through_in_a_moment() -> None:
    """An urgent claim waits for one that is on its way, and for its own."""
    assert Pace().exchanged(200, 0.002).largest_pull(0.0) == LARGEST_PULL
    slow = Pace().exchanged(200, 0.016)
    assert slow.largest_pull(0.0) == int(EXCHANGE_SECONDS / (0.016 / 200))
    assert slow.exchanged(200, 2.0).largest_pull(0.0) == SMALLEST_PULL
    assert slow.exchanged(1, 0.002, 5.0).largest_pull(5.0 + URGENT_FOR) == slow.largest_pull(0.0)
    assert slow.exchanged(1, 0.002, 5.0).largest_pull(6.0) == int(SHORT_SECONDS / (0.016 / 200))
    assert slow.exchanged(SMALLEST_PULL - 1, 2.0) == slow  # whatever made that slow, it was not its claims
    assert slow.after([0.001]).largest_pull(0.0) == slow.largest_pull(0.0)


@given(slots=st.integers(1, 300), pasts=st.lists(st.lists(st.floats(0, 1e5), max_size=40), max_size=5))
def test_the_capacity_is_never_below_the_slots_and_never_beyond_a_pull(slots: int, pasts: list[list[float]]) -> None:
    pace = Pace()
    for durations in pasts:
        pace = pace.after(durations)
    assert slots <= capacity(slots, pace) <= max(slots, LARGEST_HOLD)


def test_a_worker_with_nothing_to_say_and_no_room_leaves_the_database_alone() -> None:
    assert exchange_in(0, 0, NOTHING_PULLED, now=100.0) is None
    assert exchange_in(0, 1, NOTHING_PULLED, now=100.0) == 0.0


def test_results_go_at_once_unless_a_pull_is_due_in_a_moment_anyway() -> None:
    soon = NOTHING_PULLED.after(2, 0, 0, next_due=100.003)
    assert exchange_in(1, 1, soon, now=100.0) == pytest.approx(0.003 + WAKE_LATE)
    assert exchange_in(1, 0, soon, now=100.0) == 0.0  # no room: that pull will not happen
    assert exchange_in(1, 1, soon, now=100.0031) == 0.0
    later = NOTHING_PULLED.after(2, 0, 0, next_due=100.0 + GAP * 2)
    assert exchange_in(1, 1, later, now=100.0) == 0.0


def test_a_full_batch_is_followed_by_the_next_at_once() -> None:
    assert pause(2, NOTHING_PULLED.after(4, 4, 4, None), now=0.0, poll=5.0) == 0.0


def test_work_that_trickles_in_is_pulled_every_few_milliseconds() -> None:
    trickle = NOTHING_PULLED.after(50, 1, 1, next_due=100.0002, at=100.0)
    assert pause(50, trickle, now=100.001, poll=5.0) == pytest.approx(GAP - 0.001)
    assert exchange_in(1, 50, trickle, now=100.001) == pytest.approx(GAP - 0.001)
    assert pause(50, trickle, now=100.2, poll=5.0) == 0.0
    alone = NOTHING_PULLED.after(50, 0, 0, next_due=100.002, at=100.0)
    assert pause(50, alone, now=100.001, poll=5.0) == pytest.approx(0.001 + WAKE_LATE)


def test_a_worker_that_took_ahead_waits_a_moment_for_more_results() -> None:
    assert linger(1, since=100.0, now=100.002) == pytest.approx(LINGER - 0.002)
    assert linger(WORTH_WRITING, since=100.0, now=100.002) == pytest.approx(GAP - 0.002)
    assert linger(1, since=100.0, now=100.5) == 0.0


def test_without_room_only_the_end_of_a_run_matters() -> None:
    assert pause(0, NOTHING_PULLED.after(4, 4, 4, 0.5), now=0.0, poll=5.0) == 5.0


def test_an_idle_worker_sleeps_until_the_next_claim_or_the_poll() -> None:
    assert pause(2, NOTHING_PULLED.after(4, 0, 0, None), now=0.0, poll=5.0) == 5.0
    assert pause(2, NOTHING_PULLED.after(4, 0, 0, 1.0), now=0.5, poll=5.0) == pytest.approx(0.5 + WAKE_LATE)
    assert pause(2, NOTHING_PULLED.after(4, 0, 0, 60.0), now=0.0, poll=5.0) == 5.0
    assert pause(2, NOTHING_PULLED.after(4, 1, 1, None), now=0.0, poll=5.0) == 5.0


def test_no_grant_although_claims_were_picked_is_not_idle_but_no_spinning_either() -> None:
    pulled, pauses = NOTHING_PULLED, []
    for _ in range(12):
        pulled = pulled.after(4, 2, 0, None)
        pauses.append(pause(4, pulled, now=0.0, poll=5.0))
    assert pauses[0] == pytest.approx(2 * GAP)
    assert pauses == sorted(pauses)
    assert pauses[-1] == 5.0
    granted = pulled.after(4, 3, 1, None)
    assert granted.fruitless == 0
    assert pause(4, granted, now=0.0, poll=5.0) == pytest.approx(GAP)


# --- output tails


@given(st.lists(st.binary(max_size=300), max_size=60))
def test_a_short_stream_is_kept_whole_and_a_long_one_keeps_both_ends(pieces: list[bytes]) -> None:
    limit = 1000
    tail, whole = OutputTail(limit), b"".join(pieces)
    for piece in pieces:
        tail.feed(piece)
    kept = tail.kept()
    assert tail.total == len(whole)
    assert len(kept) <= limit
    if len(whole) <= limit:
        assert kept == whole
    else:
        head, _, rest = kept.partition(b"\n[... ")
        dropped, _, end = rest.partition(b" bytes not kept ...]\n")
        assert head == whole[: limit // 2] or whole.startswith(head)
        assert whole.endswith(end)
        assert kept.startswith(whole[: limit // 2])
        if b"[... " not in whole:
            assert int(dropped) + len(head) + len(end) == len(whole)


def test_a_stream_without_end_takes_constant_memory() -> None:
    tail = OutputTail()
    for _ in range(1000):
        tail.feed(b"y\n" * 32 * 1024)
        assert tail.held_bytes() <= 4 * KEPT_BYTES
    assert tail.total == 1000 * KEPT_BYTES
    assert len(tail.kept()) <= KEPT_BYTES


# --- allow list

BILLING = PythonTarget("billing.jobs:nightly")


@pytest.mark.parametrize(
    ("target", "allow", "may_run"),
    [
        (BILLING, None, True),
        (BILLING, (), False),
        (BILLING, ("billing",), True),
        (BILLING, ("billing.jobs",), True),
        (BILLING, ("billing.jobs:nightly",), True),
        (BILLING, ("billing.jobs:weekly", "bill", "billing.job", "nightly"), False),
        (CommandTarget(("billing", "--night")), ("billing",), True),
        (CommandTarget(("/usr/bin/billing",)), ("billing",), False),
        (CommandTarget(("/usr/bin/billing",)), ("/usr/bin/billing",), True),
        (ShellTarget("billing"), ("billing",), False),
        (ShellTarget("billing"), ("/bin/sh",), True),
        (CommandTarget(("/bin/sh", "-c", "billing")), ("billing",), False),
    ],
)
def test_the_allow_list_admits_what_it_names_and_says_what_to_do(
    target: Target, allow: tuple[str, ...] | None, may_run: bool
) -> None:
    why = refusal(target, allow)
    assert (why == "") is may_run
    assert may_run or "add it to `allow`" in why
