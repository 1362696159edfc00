"""PgQueuer: a queue of no-ops, drained in batches of 500. It keeps a row of its log for each."""

from __future__ import annotations

import sys

import asyncpg
import uvloop
from pgqueuer import Job, PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from bench.peer_programs.first_call import note_first, told

BATCH = 500
AT_ONCE = 1000


async def main() -> None:
    url, jobs = told()
    driver = AsyncpgDriver(await asyncpg.connect(url))
    if "--prepare" in sys.argv:
        queries = Queries(driver)
        await queries.install()
        for first in range(0, jobs, AT_ONCE):
            count = min(AT_ONCE, jobs - first)
            await queries.enqueue(["noop"] * count, [None] * count, [0] * count)
        return
    queuer = PgQueuer(driver)

    @queuer.entrypoint("noop")
    async def noop(job: Job) -> None:
        note_first()

    await queuer.run(batch_size=BATCH)


if __name__ == "__main__":
    uvloop.run(main())
