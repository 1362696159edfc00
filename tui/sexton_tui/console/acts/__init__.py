"""What an operator can do from the console, through the store's edits: each is recorded with who and why.

An act is carried out on a thread and gives the sentence to show, and what undoes it where anything does. Refusals
(`SextonError`) are raised as they are; an act whose answer did not come is the caller's ``TimeoutError``, and its
outcome is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the first screen waits for none of it
    from sexton.store.protocol import Store


@dataclass(frozen=True, slots=True)
class Undo:
    """What would undo an act: its name for a sentence (``the pause of backup-db``), and the act."""

    what: str
    act: Act


@dataclass(frozen=True, slots=True)
class Done:
    """What was done, in a sentence. ``undo`` None: nothing undoes it."""

    sentence: str
    undo: Undo | None = None


Act = Callable[["Store"], Done]
