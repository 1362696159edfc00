"""Windows over lists that are too long to be held: rows by their place, in blocks, of which few are kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from sexton_tui.console.core.lines import Row

BLOCK = 128
KEPT_BLOCKS = 12


class Window:
    """The rows known of a list of ``total`` rows.

    A generation is an order and a filter: what was read for an older one is dropped. Blocks that were not looked at for
    long make room for others.
    """

    def __init__(self) -> None:
        self.generation = 0
        self.total = 0
        self._blocks: OrderedDict[int, tuple[Row, ...]] = OrderedDict()

    def renew(self) -> None:
        """Another order or filter: nothing that is known belongs to it."""
        self.generation += 1
        self._blocks.clear()

    def put(self, generation: int, offset: int, rows: Sequence[Row], total: int) -> bool:
        """Rows from ``offset`` on, which begins a block. False where they are of another generation."""
        if generation != self.generation or offset % BLOCK:
            return False
        self.total = total
        for start in range(0, max(len(rows), 1), BLOCK):
            number = (offset + start) // BLOCK
            self._blocks[number] = tuple(rows[start : start + BLOCK])
            self._blocks.move_to_end(number)
        for number in [one for one in self._blocks if one * BLOCK >= max(total, 1)]:
            del self._blocks[number]
        while len(self._blocks) > KEPT_BLOCKS:
            self._blocks.popitem(last=False)
        return True

    def row(self, place: int) -> Row | None:
        """The row at this place; None where it is not known."""
        if not 0 <= place < self.total:
            return None
        block = self._blocks.get(place // BLOCK)
        return block[place % BLOCK] if block is not None and place % BLOCK < len(block) else None

    def known(self) -> Iterator[tuple[int, Row]]:
        """Places and rows, of all blocks that are kept."""
        for number, block in self._blocks.items():
            for at, row in enumerate(block):
                yield number * BLOCK + at, row

    def place_of(self, key: str) -> int | None:
        """Where the row with this key is, as far as is known."""
        return next((place for place, row in self.known() if row.key == key), None)

    def is_known(self, first: int, last: int) -> bool:
        """Whether the rows of all these places are known, as far as there are any; their blocks count as looked at."""
        last = min(last, self.total - 1)
        blocks = range(max(first, 0) // BLOCK, max(last, 0) // BLOCK + 1)
        for number in blocks:
            if number in self._blocks:
                self._blocks.move_to_end(number)
        return self.total > 0 and all(number in self._blocks for number in blocks)


def span_of_blocks(first: int, last: int) -> tuple[int, int]:
    """Offset and number of the rows to read, so that these places are known: whole blocks, three at most."""
    begin = max(first, 0) // BLOCK
    end = min(max(last, 0) // BLOCK, begin + 2)
    return begin * BLOCK, (end - begin + 1) * BLOCK
