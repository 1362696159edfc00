"""The definitions of granted claims: a revision never changes, so each is read once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from sexton.errors import DatabaseUnreachable, YoungerFormat
from sexton.recipes import Recipe
from sexton.store.protocol import Grant, Store

CACHED = 20_000  # revisions, of some 800 bytes each

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

    def of(self, grants: Sequence[Grant]) -> dict[Key, Recipe | UnreadableDefinition]:
        """The recipe of each grant by ``(job_id, revision)``. Raises ``DatabaseUnreachable``.

        A definition that is missing or cannot be read fails its own runs and no others (invariant 9).
        """
        found: dict[Key, Recipe | UnreadableDefinition] = {}
        missing: set[Key] = set()
        for grant in grants:
            key = (grant.job_id, grant.revision)
            if (known := self._known.get(key)) is None:
                missing.add(key)
            else:
                self._known.move_to_end(key)
                found[key] = known
        if missing:
            found |= self._read(sorted(missing))
        return found

    def _read(self, keys: Sequence[Key]) -> dict[Key, Recipe | UnreadableDefinition]:
        try:
            read = self._store.grants.recipes(keys)
        except DatabaseUnreachable:
            raise
        except Exception as error:
            if len(keys) == 1:
                why = str(error) if isinstance(error, YoungerFormat) else f"{type(error).__name__}: {error}"
                return {keys[0]: _unreadable(keys[0], why, is_younger=isinstance(error, YoungerFormat))}
            return {key: value for one in keys for key, value in self._read([one]).items()}
        self._known |= read
        while len(self._known) > self._cached:
            self._known.popitem(last=False)
        return {key: read.get(key) or _unreadable(key, "it is not in the database") for key in keys}


def _unreadable(key: Key, why: str, *, is_younger: bool = False) -> UnreadableDefinition:
    job_id, revision = key
    if is_younger:
        return UnreadableDefinition(f"given back: {why}", is_younger=True)
    return UnreadableDefinition(
        f"revision {revision} of job {job_id} cannot be read: {why}; apply the job again, or upgrade this worker"
    )
