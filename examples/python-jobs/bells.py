"""Jobs in Python: a decorated function is its own target, and what the list `jobs` holds are the jobs."""

from datetime import timedelta

from sexton import Job, job


@job(schedule="0 6,12,18 * * *", max_runtime=timedelta(minutes=5), kwargs={"strokes": 3})
def ring(strokes: int) -> None:
    """Still a function like any other: ring(1) rings once."""
    print("ding " * strokes)


@job(name="count-candles", schedule={"every": timedelta(hours=1)}, missed={"policy": "skip"})
def count() -> None:
    print("enough")


jobs = [
    ring,
    count,
    *(Job(f"dust-{place}", schedule="H 4 * * SAT", command=["echo", "dusted", place]) for place in ("altar", "organ")),
]
