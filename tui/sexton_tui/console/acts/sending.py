"""Whether an act was begun, for the case that its answer does not come."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from sexton_tui.console.acts import Act, Done

if TYPE_CHECKING:  # the first screen waits for none of it
    from sexton.store.protocol import Store


class Sending:
    """An act that is begun once the database has answered, or given up before: one of the two, whoever is first."""

    def __init__(self, act: Act) -> None:
        self._act = act
        self._lock = threading.Lock()
        self._is_begun = False
        self._is_given_up = False

    def __call__(self, store: Store) -> Done:
        """Raises ``TimeoutError`` where it was given up, ``DatabaseUnreachable`` as the store does."""
        store.pauses.pause_of_all()  # the act finds out nothing by being the first to be refused
        with self._lock:
            if self._is_given_up:
                raise TimeoutError("given up before the database answered")
            self._is_begun = True
        return self._act(store)

    def give_up(self) -> bool:
        """Whether nothing of the act was sent, and nothing ever will be."""
        with self._lock:
            self._is_given_up = not self._is_begun
            return self._is_given_up
