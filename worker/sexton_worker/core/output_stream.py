"""One output of a run on its way: masked, then kept as a tail, then, where it is wanted whole, handed on."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sexton_worker.core.masking import Masker
from sexton_worker.core.output_tail import OutputTail


class OutputStream:
    """``whole`` takes every byte that may be shown. All counts are of what may be shown."""

    __slots__ = ("_masker", "_tail", "_whole")

    def __init__(self, secrets: Iterable[bytes] = (), whole: Callable[[bytes], None] | None = None) -> None:
        self._masker = Masker(secrets)
        self._tail = OutputTail()
        self._whole = whole

    def mask(self, secrets: Iterable[bytes]) -> None:
        """These secrets may come from now on."""
        self._masker.add(secrets)

    def feed(self, data: bytes) -> None:
        """Take the next bytes that the run wrote."""
        self._take(self._masker.feed(data))

    def finish(self) -> None:
        """Nothing more will come."""
        self._take(self._masker.finish())

    def _take(self, shown: bytes) -> None:
        if shown:
            self._tail.feed(shown)
            if self._whole is not None:
                self._whole(shown)

    @property
    def total(self) -> int:
        return self._tail.total

    def newest(self) -> bytes:
        """Its end, as it is now."""
        return self._tail.newest()

    def kept(self) -> bytes:
        """What is kept of it; see ``OutputTail``."""
        return self._tail.kept()

    def held_bytes(self) -> int:
        """How much memory it takes up now."""
        return self._tail.held_bytes()
