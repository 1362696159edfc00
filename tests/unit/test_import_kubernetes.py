"""Kubernetes CronJobs to jobs: schedules, policies, both carriers, and what is told of the rest."""

from __future__ import annotations

import json
from textwrap import indent
from typing import Any

import pytest

from sexton.jobfiles.importers.choices import ImportChoices
from sexton.jobfiles.importers.findings import Imported, ImportedJob, Verdict
from sexton.jobfiles.importers.job_file import written
from sexton.jobfiles.importers.kubernetes import import_kubernetes
from sexton.jobfiles.importers.kubernetes_times import NotKubernetesTime, read_schedule
from sexton.jobfiles.load import load_job_text

CONTAINER = "{name: main, image: shop/report:3, command: [report], args: [--all]}"


def manifest(spec: str = 'schedule: "0 3 * * *"', container: str = CONTAINER, job: str = "", pod: str = "") -> str:
    return (
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: report, namespace: shop}\nspec:\n"
        f"{indent(spec, '  ')}\n  jobTemplate:\n    spec:\n{indent(job, '      ')}\n      template:\n        spec:\n"
        f"{indent(pod, '          ')}\n          containers: [{container}]\n"
    )


def imported(text: str, *, as_command: bool = False, **choices: Any) -> Imported:
    chosen = ImportChoices(**choices)
    done = import_kubernetes(text.encode(), "cron.yaml", chosen, as_command=as_command)
    out, kept = written(done, ())
    assert (
        [job.name for job in load_job_text(out).jobs] == [job.name for job in kept.jobs] == [j.name for j in done.jobs]
    )
    return done


def the_job(text: str, *, as_command: bool = False) -> ImportedJob:
    (job,) = imported(text, as_command=as_command).jobs
    return job


def said(done: Imported, verdict: Verdict) -> str:
    return "\n".join(f"{f.line} {f.message}" for f in done.findings if f.verdict is verdict)


# --------------------------------------------------------------------------------------------------------- schedules


@pytest.mark.parametrize(
    ("text", "schedule", "zone"),
    [
        ("0 3 * * MON-FRI", "0 3 * * MON-FRI", None),
        ("@hourly", "@hourly", None),
        ("@every 1h30m", {"every": "1h30m"}, None),
        ("CRON_TZ=Europe/Berlin 0 3 * * *", "0 3 * * *", "Europe/Berlin"),
        ("TZ=UTC 0 3 * * *", "0 3 * * *", "UTC"),
        ("? 3 ? * ?", "* 3 * * *", None),
        ("0 3 */2 * MON", "0 3 1-31/2 * MON", None),
        ("0 3 1 * */2", "0 3 1 * 0-6/2", None),
        ("0 3 * * 1/2", "0 3 * * 1-6/2", None),
        ("5/15 * * * *", "5/15 * * * *", None),
    ],
)
def test_a_schedule_means_the_same(text: str, schedule: object, zone: str | None) -> None:
    read = read_schedule(text)
    assert (read.schedule, read.zone) == (schedule, zone)


@pytest.mark.parametrize(
    "text",
    [
        "0 3 * *",
        "0 0 3 * * *",
        "61 * * * *",
        "0 3 L * *",
        "H * * * *",
        "@reboot",
        "@every soon",
        "TZ=Mars/X 0 3 * * *",
        "",
    ],
)
def test_a_schedule_that_kubernetes_refuses_is_refused(text: str) -> None:
    with pytest.raises(NotKubernetesTime):
        read_schedule(text)


# ---------------------------------------------------------------------------------------------------------- policies


@pytest.mark.parametrize(("policy", "overlap"), [("Allow", "allow"), ("Forbid", "skip"), ("Replace", "replace")])
def test_the_concurrency_policy_is_overlap(policy: str, overlap: str) -> None:
    done = imported(manifest(f'schedule: "0 3 * * *"\nconcurrencyPolicy: {policy}'))
    assert done.jobs[0].keys["overlap"] == overlap
    assert (policy in said(done, Verdict.DIFFERS)) == (policy == "Forbid")
    assert (policy in said(done, Verdict.NOTE)) == (policy == "Replace")


def test_a_run_that_is_replaced_takes_its_job_with_it() -> None:
    spec = 'schedule: "0 3 * * *"\nconcurrencyPolicy: Replace'
    keys = the_job(manifest(spec)).keys
    assert str(keys["shell"]).split("\n")[1] == (
        "trap 'kubectl --namespace shop delete job \"$job\" --ignore-not-found --timeout=25s; exit 143' TERM"
    )
    assert keys["kill_after"] == "30s"
    assert "trap" not in str(the_job(manifest()).keys["shell"])
    assert "trap" not in str(the_job(manifest(spec), as_command=True).keys["command"])


def test_the_default_policy_is_allow() -> None:
    assert the_job(manifest()).keys["overlap"] == "allow"


def test_deadline_zone_and_suspension() -> None:
    spec = 'schedule: "0 3 * * *"\ntimeZone: Europe/Berlin\nstartingDeadlineSeconds: 120\nsuspend: true'
    keys = the_job(manifest(spec)).keys
    assert keys["missed"] == {"policy": "latest", "within": "120s", "start_within": "120s"}
    assert (keys["timezone"], keys["enabled"]) == ("Europe/Berlin", False)
    assert the_job(manifest()).keys["missed"] == {"policy": "latest"}


def test_history_limits_and_unknown_fields_are_told() -> None:
    done = imported(manifest('schedule: "0 3 * * *"\nsuccessfulJobsHistoryLimit: 3\nnewField: 1'))
    assert "successfulJobsHistoryLimit" in said(done, Verdict.LEFT_OUT)
    assert "newField" in said(done, Verdict.LEFT_OUT)


# ---------------------------------------------------------------------------------------------------------- carriers


def test_by_default_the_tick_creates_the_job_in_its_cluster() -> None:
    script = str(the_job(manifest()).keys["shell"])
    assert 'kubectl --namespace shop create job --from=cronjob/report "$job"' in script
    assert script.startswith('job=report-$(printf %s "$SEXTON_TICK" | tr -cd 0-9 | cut -c1-14)')


@pytest.mark.parametrize(
    ("spec", "job"),
    [("failedJobsHistoryLimit: 0", ""), ("successfulJobsHistoryLimit: 0", ""), ("", "ttlSecondsAfterFinished: 5")],
)
def test_what_removes_a_job_before_its_end_is_seen_is_told(spec: str, job: str) -> None:
    text = manifest(f'schedule: "0 3 * * *"\n{spec}', job=job)
    assert "such a run fails" in said(imported(text), Verdict.DIFFERS)
    assert "such a run fails" not in said(imported(text.replace(": 0", ": 1").replace(": 5", ": 600")), Verdict.DIFFERS)
    assert "such a run fails" not in said(imported(text, as_command=True), Verdict.DIFFERS)


def test_long_names_that_begin_alike_make_jobs_of_their_own() -> None:
    scripts = [
        str(the_job(manifest().replace("name: report,", f"name: {name},")).keys["shell"])
        for name in ("a" * 50 + "-x", "a" * 50 + "-y", "a.b", "a-b")
    ]
    names = [script.partition("$(")[0].removeprefix("job=") for script in scripts]
    assert len(set(names)) == 4
    assert all(len(name) <= 49 for name in names)


def test_a_container_becomes_a_command() -> None:
    keys = the_job(
        manifest(job="backoffLimit: 2\nactiveDeadlineSeconds: 600", pod="terminationGracePeriodSeconds: 5"),
        as_command=True,
    ).keys
    assert keys["command"] == ["report", "--all"]
    assert keys["retries"] == {"max": 2, "delay": "10s", "factor": 2, "max_delay": "6m", "jitter": False}
    assert (keys["max_runtime"], keys["kill_after"]) == ("600s", "5s")


def test_variables_are_filled_in_by_a_shell() -> None:
    container = '{name: a, image: b, command: [echo, "$(DAY) it", "$$(DAY)"], env: [{name: DAY, value: "1"}]}'
    keys = the_job(manifest(container=container), as_command=True).keys
    assert keys["shell"] == "echo \"${DAY}\"' it' '$''(DAY)'"
    assert keys["env"] == {"DAY": "1"}


def test_secrets_further_containers_and_limits_are_told() -> None:
    container = (
        "{name: a, image: b, command: [x], env: [{name: S, valueFrom: {secretKeyRef: {name: s, key: k}}}], "
        "resources: {limits: {memory: 1Gi, cpu: 1}, requests: {cpu: 1}}}, {name: side, image: c}"
    )
    done = imported(manifest(container=container, pod="initContainers: [{name: first}]"), as_command=True)
    assert "env S comes from secretKeyRef" in said(done, Verdict.LEFT_OUT)
    told = said(done, Verdict.LEFT_OUT)
    assert (
        "resources.limits.memory: '1Gi' is for the whole container; limits: {memory: ...} is the address space" in told
    )
    assert "resources cpu has no counterpart" in told
    assert "resources requests has no counterpart" in told
    assert "'side'" in said(done, Verdict.ERROR)
    assert "'first'" in said(done, Verdict.ERROR)


@pytest.mark.parametrize(
    ("more", "job", "pod"),
    [
        (", {name: side, image: c}", "", ""),
        ("", "", "initContainers: [{name: first}]"),
        ("", "parallelism: 4", ""),
    ],
)
def test_a_job_that_is_not_all_of_its_pod_is_paused_and_says_what_to_do(more: str, job: str, pod: str) -> None:
    done = imported(manifest(container=CONTAINER + more, job=job, pod=pod), as_command=True)
    assert [one.keys["enabled"] for one in done.jobs] == [False]
    assert "--as kubectl; the job was written with enabled: false" in said(done, Verdict.ERROR)


FROM_ELSEWHERE = "{name: S, valueFrom: {secretKeyRef: {name: s, key: k}}}"


@pytest.mark.parametrize(
    ("container", "env"),
    [
        (f"{{name: a, image: b, command: [x, --db, $(S)], env: [{FROM_ELSEWHERE}]}}", None),
        ("{name: a, image: b, command: [x, --db, $(S)], envFrom: [{secretRef: {name: s}}]}", None),
        (
            f"{{name: a, image: b, command: [x], env: [{FROM_ELSEWHERE}, {{name: URL, value: db/$(S)}}]}}",
            {"URL": "db/$(S)"},
        ),
    ],
)
def test_a_value_that_stands_elsewhere_pauses_the_job_that_needs_it(container: str, env: object) -> None:
    done = imported(manifest(container=container), as_command=True)
    assert done.jobs[0].keys["enabled"] is False
    assert "$(S)" in said(done, Verdict.ERROR)
    assert done.jobs[0].keys.get("env") == env


def test_values_are_filled_in_as_kubernetes_does() -> None:
    env = "[{name: HOST, value: db}, {name: URL, value: '$(HOST)/$(NOBODY)/$$(HOST)'}]"
    job = the_job(manifest(container=f"{{name: a, image: b, command: [x, $(URL)], env: {env}}}"), as_command=True)
    assert job.keys["env"] == {"HOST": "db", "URL": "db/$(NOBODY)/$(HOST)"}
    assert "enabled" not in job.keys


def test_what_no_env_declares_stays_as_it_is_written() -> None:
    job = the_job(manifest(container="{name: a, image: b, command: [x, $(NOBODY)]}"), as_command=True)
    assert job.keys["command"] == ["x", "$(NOBODY)"]


def test_an_unknown_entrypoint_is_an_error_of_command_alone() -> None:
    text = manifest(container="{name: a, image: b}")
    assert imported(text, as_command=True).has_errors
    assert not imported(text).has_errors


# --------------------------------------------------------------------------------------------------------- documents


def test_documents_lists_and_json_are_read_with_their_lines() -> None:
    listed = json.dumps({"kind": "List", "items": [json.loads(json.dumps({"kind": "Pod", "metadata": {"name": "p"}}))]})
    text = f"---\n{manifest()}---\nkind: ConfigMap\nmetadata: {{name: c}}\n---\n{listed}\n"
    done = imported(text)
    assert [(job.name, job.line) for job in done.jobs] == [("report", 6)]
    assert "ConfigMap 'c'" in said(done, Verdict.LEFT_OUT)
    assert "Pod 'p'" in said(done, Verdict.LEFT_OUT)
    line = text[: text.index("kind: ConfigMap")].count("\n") + 1
    assert any(finding.line == line for finding in done.findings)


@pytest.mark.parametrize(
    ("text", "said_of_it"),
    [
        ("schedule: {{ .Values.schedule }}\n", "helm template"),
        ("a: [\n", "YAML"),
        ("a: !!python/object:os.system x\n", "tag"),
        ("- a\n", "no manifest"),
        ("", "holds no CronJob"),
        ("a: \x1b\n", "control character"),
        (manifest('schedule: "0 3 * *"'), "4 fields"),
        (manifest('schedule: "0 3 * * *"\ntimeZone: Mars/X'), "timeZone"),
        (manifest().replace("name: report,", ""), "metadata.name"),
        (manifest().replace("batch/v1", "batch/v3"), "batch/v3"),
        ("a: &a [x]\n" + "---\n" * 1_200, "documents"),
    ],
)
def test_what_is_no_cronjob_is_an_error_with_its_reason(text: str, said_of_it: str) -> None:
    done = imported(text)
    assert done.jobs == ()
    assert said_of_it in said(done, Verdict.ERROR)


def test_equal_names_of_two_namespaces_stay_apart() -> None:
    text = manifest() + "---\n" + manifest().replace("namespace: shop", "namespace: bank")
    assert [job.name for job in imported(text).jobs] == ["shop-report", "bank-report"]
