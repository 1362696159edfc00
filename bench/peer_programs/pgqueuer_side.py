"""PgQueuer: schedules with seconds in their cron; they run in the schedulers themselves, not on its queue."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Schedule
from pgqueuer.queries import Queries

from bench.peer_programs.ringing import ring, told


def _entry() -> Callable[[Schedule], Awaitable[None]]:
    async def run(schedule: Schedule) -> None:
        ring()

    return run


async def main() -> None:
    url, jobs, period = told()
    driver = AsyncpgDriver(await asyncpg.connect(url))
    if "--prepare" in sys.argv:
        await Queries(driver).install()
        return
    queuer = PgQueuer(driver)
    for number in range(jobs):
        queuer.schedule(f"job-{number}", f"* * * * * */{period}")(_entry())
    await queuer.run(dequeue_timeout=timedelta(seconds=5), batch_size=500)


if __name__ == "__main__":
    uvloop.run(main())
