"""Who comes first in a step that pulls: priorities without starvation, queues by turns. Pure.

Strict order would leave a low priority waiting for as long as there is higher work. So every ``LEAD_EVERY``-th step
of a worker begins with a lower class, each of them in its turn, and goes on in strict order. Of 32 steps 28 begin
with the highest class that has work, and each lower class leads one: with work due it is granted claims in 32 steps.

The queue that is asked first changes with each step, apart for the steps of each class: what is first in the turns of
a class would else be the same queue for ever.

A queue with a rule is pulled after the others, from the room they left. Where they left none, it goes before them in
every second, fourth or eighth step, by the priority of what waits in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PRIORITIES = (2, 1, 0, -1, -2)
LEAD_EVERY = 8
_LOWER = PRIORITIES[1:]
CYCLE = LEAD_EVERY * len(_LOWER)
"""Steps in which every class has led at least once."""

_RULED_FIRST_EVERY = {2: 2, 1: 4, 0: 4, -1: 8, -2: 8}


@dataclass(frozen=True, slots=True)
class Turn:
    """The order of one step: ``first`` is the priority that leads, the others follow from the highest down."""

    number: int
    first: int
    queues: tuple[str, ...]

    @property
    def priorities(self) -> tuple[int, ...]:
        return priorities_from(self.first)

    def begins_with_ruled(self, waiting: int | None) -> bool:
        """Whether queues with a rule go first, where claims of them found no room; ``waiting``: their priority."""
        return waiting is not None and self.number % _RULED_FIRST_EVERY[waiting] == 0


def priorities_from(first: int) -> tuple[int, ...]:
    """``first``, then the others from the highest down."""
    return (first, *(priority for priority in PRIORITIES if priority != first))


def turn(number: int, queues: Sequence[str]) -> Turn:
    """The order of a worker's step of this number, counted from 0."""
    cycle, place = divmod(number, CYCLE)
    led, rest = divmod(place, LEAD_EVERY)
    if rest == LEAD_EVERY - 1:
        return Turn(number, _LOWER[led], _rotated(queues, cycle))
    return Turn(number, PRIORITIES[0], _rotated(queues, number - number // LEAD_EVERY))


def _rotated(queues: Sequence[str], by: int) -> tuple[str, ...]:
    place = by % len(queues) if queues else 0
    return (*queues[place:], *queues[:place])
