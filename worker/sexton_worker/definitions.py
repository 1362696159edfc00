"""The definitions of granted claims: a revision never changes while the ledger is where it is, so each is read once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from sexton.errors import YoungerFormat
from sexton.recipes import Recipe, recipe_from_text
from sexton.store.protocol import Grant, Store

CACHED = 50_000  # revisions, of some 800 bytes each

Key = tuple[int, int]


class UnreadableDefinition(Exception):
    """One revision that this worker cannot make sense of; the message says which and why. ``is_younger``: a younger
    worker can, and is to have its claims."""

    def __init__(self, message: str, *, is_younger: bool = False) -> None:
        super().__init__(message)
        self.is_younger = is_younger


class Definitions:
    """A cache over the store, for one thread."""

    def __init__(self, store: Store, cached: int = CACHED) -> None:
        self._store = store
        self._cached = cached
        self._known: OrderedDict[Key, Recipe] = OrderedDict()
        self._texts: dict[Key, str | None] = {}  # read and not yet asked for; None: not in the database

    def read(self, grants: Iterable[Grant]) -> None:
        """Have what these runs need here. Raises ``DatabaseUnreachable``; what is here already stays."""
        missing = {key for key in map(_key, grants) if key not in self._known and key not in self._texts}
        if missing:
            texts = self._store.grants.definitions(sorted(missing))
            self._texts |= {key: texts.get(key) for key in missing}

    def forget(self) -> None:
        """The ledger was restored, and may number its revisions anew: read all again."""
        self._known.clear()
        self._texts.clear()

    def has(self, grant: Grant) -> bool:
        """Whether it was read."""
        key = _key(grant)
        return key in self._known or key in self._texts

    def of(self, grants: Iterable[Grant]) -> dict[Key, Recipe | UnreadableDefinition]:
        """The recipe of each grant by ``(job_id, revision)``; they were read.

        A definition that is missing or makes no sense fails its own runs and no others (invariant 9).
        """
        keys = dict.fromkeys(map(_key, grants))
        found: dict[Key, Recipe | UnreadableDefinition] = {}
        for key in keys:
            if (known := self._known.get(key)) is not None:
                self._known.move_to_end(key)
                found[key] = known
        for key in keys:
            if key not in found:
                found[key] = self._understand(key, self._texts.pop(key))
        return found

    def _understand(self, key: Key, text: str | None) -> Recipe | UnreadableDefinition:
        if text is None:
            return _unreadable(key, "it is not in the database")
        try:
            recipe = self._known[key] = recipe_from_text(text)
        except YoungerFormat as error:
            return _unreadable(key, str(error), is_younger=True)
        except Exception as error:
            return _unreadable(key, f"{type(error).__name__}: {error}")
        if len(self._known) > self._cached:
            self._known.popitem(last=False)
        return recipe


def _key(grant: Grant) -> Key:
    return grant.job_id, grant.revision


def _unreadable(key: Key, why: str, *, is_younger: bool = False) -> UnreadableDefinition:
    job_id, revision = key
    if is_younger:
        return UnreadableDefinition(f"given back: {why}", is_younger=True)
    return UnreadableDefinition(
        f"revision {revision} of job {job_id} cannot be read: {why}; apply the job again, or upgrade this worker"
    )
