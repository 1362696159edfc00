"""The job files in docs/overlap.md are right, and the sentences it shows are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

from sexton.claims import Overlap
from sexton.jobfiles.load import load_job_text

GUIDE = Path(__file__).parents[2].joinpath("docs", "overlap.md").read_text()


def test_every_job_file_of_the_guide_loads() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    loaded = [{job.name: job.definition for job in load_job_text(block).jobs} for block in blocks]
    assert [sorted(jobs) for jobs in loaded] == [["dashboard", "mirror"], ["load-orders", "load-stock", "refresh"]]
    assert loaded[0]["mirror"].queue_limit == 2
    assert loaded[0]["dashboard"].overlap is Overlap.REPLACE
    assert {job.concurrency_key for job in loaded[1].values()} == {loaded[1]["refresh"].concurrency_key}
    assert loaded[1]["refresh"].overlap is Overlap.SKIP
