"""Threads that race on one ledger, each with connections of its own, until every claim has ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from sexton.claims import State
from sexton.store import open_store
from sexton.store.protocol import Store, StoreOptions
from tests.support.claim_rows import ClaimRows

LIMIT_SECONDS = 120
UNENDED = {State.READY, State.PARKED, State.RUNNING}

Work = Callable[[Store, int], None]


def race(url: str, rows: ClaimRows, works: Iterable[tuple[Work, int]], over: threading.Event) -> list[BaseException]:
    """Call each work with its store and number, all at once; what they raised.

    ``over`` is set once no claim is left to run, at the first error, or when the time is up: works end by it.
    """
    errors: list[BaseException] = []

    def guarded(work: Work, number: int) -> None:
        store = open_store(StoreOptions(url, answer_within=60))
        try:
            work(store, number)
        except BaseException as error:
            errors.append(error)
            over.set()
        finally:
            store.close()

    threads = [threading.Thread(target=guarded, args=work) for work in works]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + LIMIT_SECONDS
    while not over.wait(0.05) and time.monotonic() < deadline:
        if not UNENDED & set(rows.states()):
            over.set()
    over.set()
    for thread in threads:
        thread.join()
    return errors
