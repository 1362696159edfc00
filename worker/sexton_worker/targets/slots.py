"""How many runs a worker may begin."""

from __future__ import annotations


class Slots:
    """How many runs may still begin now. Belongs to who holds the execution's lock."""

    def __init__(self, free: int) -> None:
        self.free = free
