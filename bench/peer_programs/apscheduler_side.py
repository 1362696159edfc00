"""APScheduler 3: cron jobs in a store of the same database, run by a pool of threads in the one scheduler."""

from __future__ import annotations

import sys
import threading

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler

from bench.peer_programs.ringing import ring, told


def main() -> None:
    url, jobs, period = told()
    store = SQLAlchemyJobStore(url=url.replace("postgresql://", "postgresql+psycopg://", 1))
    scheduler = BackgroundScheduler(
        jobstores={"default": store},
        executors={"default": ThreadPoolExecutor(10)},
        job_defaults={"coalesce": False, "misfire_grace_time": 3600},
        timezone="UTC",
    )
    scheduler.start(paused="--prepare" in sys.argv)
    if "--prepare" in sys.argv:
        for number in range(jobs):
            scheduler.add_job(ring, "cron", second=f"*/{period}", id=f"job-{number}", replace_existing=True)
        scheduler.shutdown()
        return
    threading.Event().wait()


if __name__ == "__main__":
    main()
