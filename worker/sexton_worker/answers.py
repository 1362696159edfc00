"""Answers of exchanges, from when they are here until they are taken in.

A worker that drains a backlog keeps the database waiting as long as it is busy with an answer. So where the next
exchange follows at once it is sent first, and the answer before is taken in while the database works.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from sexton.store.protocol import RunResult, StepRequest, StepResult
from sexton_worker.hands import Hands
from sexton_worker.lease_book import LeaseBook
from sexton_worker.run_counts import RunCounts


class Answer(NamedTuple):
    """``refused``: of its results; ``sent``: when its request was, in elapsed seconds; ``seconds``: that it took."""

    request: StepRequest
    result: StepResult
    refused: Sequence[RunResult]
    sent: float
    seconds: float


class Answers:
    """Of one loop, which all these belong to."""

    def __init__(self, hands: Hands, book: LeaseBook, counts: RunCounts) -> None:
        self._hands = hands
        self._book = book
        self._counts = counts
        self._waiting: deque[Answer] = deque()

    def are_pressing(self) -> bool:
        """Whether there is an urgent run among them, or one under the catch-up budget, of which those in hand count."""
        return any(answer.result.priority > 0 or answer.result.has_paced for answer in self._waiting)

    def granted(self) -> int:
        """How many grants have not been taken in."""
        return sum(answer.result.granted for answer in self._waiting)

    def add(self, answer: Answer) -> None:
        """One more."""
        self._waiting.append(answer)

    def take_in_last(self) -> None:
        """Before all others."""
        self._take_in(self._waiting.pop())

    def take_in(self) -> None:
        """All that are here, in their order."""
        while self._waiting:
            self._take_in(self._waiting.popleft())

    def _take_in(self, answer: Answer) -> None:
        request, result, refused, sent, seconds = answer
        self._book.release(*(one.token for one in request.results))
        if result.granted:
            self._hands.take(result.grants)
            held = {grant.token: grant.at_most_once for grant in result.grants}
            self._book.hold(held, sent=sent, lease=request.lease.total_seconds())
        self._counts.exchanged(request.results, result, refused, seconds)
