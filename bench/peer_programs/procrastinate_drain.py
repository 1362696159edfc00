"""Procrastinate: a queue of no-ops, 30 at once. It keeps the row of each job and of its events."""

from __future__ import annotations

import asyncio
import sys

from procrastinate import App, PsycopgConnector

from bench.peer_programs.first_call import note_first, told

CONCURRENCY = 30
AT_ONCE = 1000


async def main() -> None:
    url, jobs = told()
    app = App(connector=PsycopgConnector(conninfo=url, min_size=2, max_size=10))

    @app.task(name="noop")
    async def noop() -> None:
        note_first()

    async with app.open_async():
        if "--prepare" in sys.argv:
            await app.schema_manager.apply_schema_async()
            for first in range(0, jobs, AT_ONCE):
                await noop.batch_defer_async(*[{}] * min(AT_ONCE, jobs - first))
            return
        await app.run_worker_async(concurrency=CONCURRENCY, install_signal_handlers=False)


if __name__ == "__main__":
    asyncio.run(main())
