"""Procrastinate: periodic tasks with seconds in their cron, deferred and run by each of the processes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable

from procrastinate import App, PsycopgConnector

from bench.peer_programs.ringing import ring, told


def _task() -> Callable[[int], Awaitable[None]]:
    async def run(timestamp: int) -> None:
        ring()

    return run


async def main() -> None:
    url, jobs, period = told()
    app = App(connector=PsycopgConnector(conninfo=url, min_size=2, max_size=10))
    for number in range(jobs):
        task = app.task(name=f"job-{number}", queueing_lock=f"job-{number}")(_task())
        app.periodic(cron=f"* * * * * */{period}", periodic_id=f"job-{number}")(task)
    async with app.open_async():
        if "--prepare" in sys.argv:
            await app.schema_manager.apply_schema_async()
            return
        await app.run_worker_async(concurrency=50, install_signal_handlers=False)


if __name__ == "__main__":
    asyncio.run(main())
