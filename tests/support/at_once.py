"""Several calls at the same time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait


def all_at_once(*calls: Callable[[], object]) -> None:
    """Return when all calls have returned; raises the first error of theirs in the order given."""
    if not calls:
        return
    with ThreadPoolExecutor(len(calls)) as pool:
        running = [pool.submit(call) for call in calls]
        wait(running)
    for one in running:
        one.result()
