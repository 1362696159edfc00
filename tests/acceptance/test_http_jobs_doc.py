"""The jobs that docs/http-jobs.md shows: they are valid, and its request is sent and does what the page says."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import yaml

from sexton.jobfiles.load import load_job_text
from sexton.jobs import JobDefinition
from sexton.process_settings import load_process_settings
from sexton.targets import CeleryTarget, HttpTarget
from tests.support.odd_server import odd_server
from tests.support.runs import Runs
from tests.support.source_tree import ROOT

DOCUMENT = (ROOT / "docs" / "http-jobs.md").read_text()


def jobs() -> dict[str, JobDefinition]:
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", DOCUMENT, flags=re.DOTALL | re.MULTILINE)
    return {job.definition.name: job.definition for job in load_job_text(text).jobs}


def test_the_request_of_the_page_is_sent_and_judged() -> None:
    job = jobs()["billing-run"]
    assert isinstance(job.target, HttpTarget)
    with odd_server() as server, Runs(environment={"SEXTON_SECRET_BILLING_TOKEN": "s3cret-token"}) as runs:
        target = dataclasses.replace(job.target, url=server.url("/echo"))
        ended = runs.run(target)  # the server's answer is the request, which holds no "accepted"
        assert ended.error.endswith(f"""answered 200 OK, and its body does not match {job.target.expect_body!r}""")
        assert "UnexpectedBody" in ended.exceptions
        (request,) = server.requests
    assert request["headers"]["Authorization"] == "Bearer s3cret-token"
    assert yaml.safe_load(request["body"]) == {"night": "2026-03-29T01:00:00Z", "attempt": 3}
    assert b"Bearer ***" in ended.stdout


def test_the_other_jobs_and_settings_of_the_page_are_as_it_says(tmp_path: Path) -> None:
    mail = jobs()["billing-mail"].target
    assert mail == CeleryTarget(
        "redis://:${secret:redis}@broker/0", "billing.mail", (), {"template": "nightly"}, queue="mail", wait=True
    )
    (settings,) = re.findall(r"^```toml\n(.*?)^```$", DOCUMENT, flags=re.DOTALL | re.MULTILINE)
    file = tmp_path / "sexton.toml"
    file.write_text(settings)
    allow = load_process_settings({}, environ={}, config=file).allow
    assert allow == ("reports", "https://billing.internal/", "redis://broker/")
