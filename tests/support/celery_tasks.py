"""A small Celery deployment's app, for a real worker of it: `celery -A tests.support.celery_tasks worker`."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from celery import Celery

app = Celery("deployment", broker=os.environ.get("DEPLOYMENT_BROKER"), backend=os.environ.get("DEPLOYMENT_BACKEND"))
NOTES = Path(os.environ.get("DEPLOYMENT_NOTES", "."))


class NoFundsError(Exception):
    """A failure of the task's own."""


def note(name: str, what: object) -> None:
    """Leave a note, whole or not at all."""
    part = NOTES / f"{name}.part"
    part.write_text(json.dumps(what))
    part.rename(NOTES / name)


@app.task(bind=True, name="billing.nightly")  # type: ignore[untyped-decorator]  # Celery ships no types
def nightly(self: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Note what came."""
    request = self.request
    told = {name: request.get(name) for name in (f"sexton_{word}" for word in ("job", "tick", "attempt", "claim"))}
    note("nightly", {"id": request.id, "args": args, "kwargs": kwargs, "token": request.get("sexton_token"), **told})
    return {"sent": len(args)}


@app.task(name="billing.fail")  # type: ignore[untyped-decorator]  # as above
def fail() -> None:
    """Fail."""
    raise NoFundsError("no funds")


@app.task(name="billing.hang")  # type: ignore[untyped-decorator]  # as above
def hang() -> None:
    """Never return."""
    note("hang", os.getpid())
    while True:
        signal.pause()
