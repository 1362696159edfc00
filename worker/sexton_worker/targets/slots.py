"""How many runs a worker may begin."""

from __future__ import annotations


class Slots:
    """``all`` there are, and how many runs may still begin now. Belongs to who holds the execution's lock."""

    def __init__(self, free: int) -> None:
        self.all = free
        self.free = free
