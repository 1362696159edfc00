"""Kubernetes CronJobs as jobs: by default Sexton's tick creates the Job in the cluster, and waits for its end.

Sexton runs no containers. ``--as kubectl`` keeps the work where it is and moves the schedule alone: the script below
creates the Job that the CronJob's template describes, under a name made from the tick, so that Kubernetes itself
refuses a second one, and a run that is repeated finds the first. ``--as command`` takes the container's command, for
programs that are installed on the workers too.
"""

from __future__ import annotations

import re
import shlex
from hashlib import sha256

from sexton.jobfiles.importers.choices import ImportChoices
from sexton.jobfiles.importers.findings import Findings, Imported, ImportedJob, shown, with_faulty_paused
from sexton.jobfiles.importers.foreign_files import is_foreign
from sexton.jobfiles.importers.job_names import NameGiver, slug_of
from sexton.jobfiles.importers.kubernetes_containers import container_keys
from sexton.jobfiles.importers.kubernetes_times import NotKubernetesTime, read_schedule
from sexton.jobfiles.importers.manifests import (
    Manifest,
    at,
    flag_at,
    keys_of_node,
    line_at,
    manifests_of,
    number_at,
    text_at,
)
from sexton.jobfiles.importers.source_text import decode_source
from sexton.zones import zone_names

_VERSIONS = ("batch/v1", "batch/v1beta1", "batch/v2alpha1")
_LONGEST_JOB_NAME = 63 - len("-20260329010000")
_SPEC_READ = frozenset(
    {"schedule", "timeZone", "suspend", "concurrencyPolicy", "startingDeadlineSeconds", "jobTemplate"}
)
_TTL = ("jobTemplate", "spec", "ttlSecondsAfterFinished")
_LEAST_TTL = 60
# Written by the API server into what it gives out; nobody's intention is in it.
_SERVER_KEYS = frozenset({"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"})
# Gone and unknown are two answers: --ignore-not-found succeeds and prints nothing where there is no such Job. For five
# minutes the API may be away; then the run fails, because a run that waits for ever would hold up all that follow.
_SCRIPT = """\
job={name}-$(printf %s "$SEXTON_TICK" | tr -cd 0-9 | cut -c1-14)
kubectl{namespace} create job --from=cronjob/{cronjob} "$job" || kubectl{namespace} get job "$job" >/dev/null || exit 1
state() {{
  kubectl{namespace} get job "$job" --ignore-not-found \\
    -o 'jsonpath={{.kind}} {{.status.conditions[?(@.status=="True")].type}}'
}}
away=0
while :; do
  if now=$(state); then
    away=0
    case "$now " in
      *" Complete "* | *" Failed "*) break ;;
      " ") echo "$job was removed before its end was seen" >&2; exit 1 ;;
    esac
  elif away=$((away + 1)); [ "$away" -ge 60 ]; then
    echo "the state of $job could not be read for five minutes" >&2
    exit 1
  fi
  sleep 5
done
kubectl{namespace} logs "job/$job" --all-containers --tail=200
case "$now " in *" Complete "*) ;; *) exit 1 ;; esac
"""
# Under overlap: replace a run that is ended must not leave its Job running beside the next one's.
_REPLACED = """\
trap '{kubectl} delete job "$job" --ignore-not-found --timeout=25s; exit 143' TERM
"""


def import_kubernetes(
    data: bytes, file: str, choices: ImportChoices, names: NameGiver | None = None, *, as_command: bool = False
) -> Imported:
    """A job for each CronJob in ``file``. Never raises.

    With ``names``, which several files share, the jobs' names are handles until ``names.settled``.
    """
    findings = Findings(file)
    text = decode_source(data, findings)
    if text is None or is_foreign(text, "kubernetes", findings):
        return Imported(findings=tuple(findings.found))
    given = names or NameGiver(choices.prefix)
    reader = _Reader(findings, choices, given, text.split("\n"), as_command=as_command)
    jobs = [job for manifest in manifests_of(text, findings) if (job := reader.job_of(manifest)) is not None]
    if not reader.count and not findings.found:
        findings.error(0, "holds no CronJob; `kubectl get cronjobs -o yaml` gives those of a namespace")
    if jobs:
        _tell_all(findings, choices, reader.zone_from, as_command=as_command)
    findings.found.sort(key=lambda finding: finding.line)
    imported = with_faulty_paused(Imported(tuple(jobs), (), tuple(findings.found), {"manifests": reader.count}))
    return imported if names is given else given.settled(imported)


class _Reader:
    """Reads the objects of one file."""

    def __init__(
        self, findings: Findings, choices: ImportChoices, names: NameGiver, lines: list[str], *, as_command: bool
    ) -> None:
        self._findings, self._choices, self._names = findings, choices, names
        self._lines = lines
        self._as_command = as_command
        self.count = 0
        self.zone_from = 0

    def job_of(self, manifest: Manifest) -> ImportedJob | None:
        """The job that a CronJob becomes; None (reported) for other kinds, and where nothing can be made of it."""
        node, line = manifest.node, manifest.line
        kind, version = text_at(node, "kind"), text_at(node, "apiVersion")
        given = text_at(node, "metadata", "name") or ""
        if kind != "CronJob":
            self._findings.left_out(line, f"{kind or 'an object without a kind'} {shown(given)} is no CronJob")
            return None
        self.count += 1
        if version not in _VERSIONS:
            self._findings.error(line, f"CronJob of {shown(version or '')}; known are {', '.join(_VERSIONS)}")
            return None
        if not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", given):
            self._findings.error(line, f"its metadata.name is {shown(given)}, which Kubernetes refuses; give it a name")
            return None
        namespace = text_at(node, "metadata", "namespace") or ""
        name = self._names.propose([given, f"{namespace}-{given}"])
        schedule = self._schedule(manifest, name)
        if schedule is None:
            return None
        keys = {**schedule, **self._policies(manifest, name)}
        what = (
            container_keys(at(node, "spec", "jobTemplate", "spec"), line, self._findings, name)
            if self._as_command
            else self._kubectl_keys(given, slug_of(namespace), manifest, name)
        )
        if what is None:
            return None
        self._tell_rest(manifest, name)
        keys.update(what)
        keys["queue"] = self._choices.queue
        at_line = line_at(node, "spec", "schedule")
        return ImportedJob(name, keys, self._findings.file, at_line, (self._line(at_line),))

    def _line(self, number: int) -> str:
        return self._lines[number - 1].strip() if 0 < number <= len(self._lines) else ""

    def _schedule(self, manifest: Manifest, name: str) -> dict[str, object] | None:
        node = manifest.node
        line = line_at(node, "spec", "schedule")
        text = text_at(node, "spec", "schedule")
        if text is None:
            self._findings.error(line, "has no spec.schedule", name)
            return None
        try:
            read = read_schedule(text)
        except NotKubernetesTime as error:
            self._findings.error(line, f"schedule: {error}", name)
            return None
        if read.remark:
            self._findings.differs(line, f"schedule: {read.remark}", name)
        zone = text_at(node, "spec", "timeZone") or read.zone
        if zone is not None and zone not in zone_names():
            self._findings.error(
                line_at(node, "spec", "timeZone"), f"timeZone: {shown(zone)} is no zone of the IANA database", name
            )
            return None
        if zone is None:
            self.zone_from = self.zone_from or line
        return {"schedule": read.schedule, "timezone": zone or self._choices.timezone}

    def _policies(self, manifest: Manifest, name: str) -> dict[str, object]:
        spec = at(manifest.node, "spec")
        keys: dict[str, object] = {}
        if flag_at(spec, "suspend"):
            keys["enabled"] = False
            self._findings.note(line_at(manifest.node, "spec", "suspend"), "suspend: written as enabled: false", name)
        policy = text_at(spec, "concurrencyPolicy") or "Allow"
        place = line_at(manifest.node, "spec", "concurrencyPolicy")
        keys["overlap"] = {"Allow": "allow", "Forbid": "skip", "Replace": "replace"}.get(policy, "skip")
        if policy == "Replace":
            how = "is ended" if self._as_command else "deletes its Job, for which it has 30 s"
            self._findings.note(
                place, f"concurrencyPolicy: Replace: written as overlap: replace; the run that goes on {how}", name
            )
        elif policy == "Forbid":
            self._findings.differs(
                place,
                "concurrencyPolicy: Forbid starts a held-up run when the one before ends; overlap: skip leaves "
                "it out (queue "
                "would run each that was held up)",
                name,
            )
        elif policy != "Allow":
            self._findings.error(place, f"concurrencyPolicy: {shown(policy)} is none of Allow, Forbid, Replace", name)
        keys["missed"] = self._missed(manifest, name)
        return keys

    def _missed(self, manifest: Manifest, name: str) -> dict[str, object]:
        seconds = number_at(manifest.node, "spec", "startingDeadlineSeconds")
        place = line_at(manifest.node, "spec", "startingDeadlineSeconds")
        if seconds is None:
            if at(manifest.node, "spec", "startingDeadlineSeconds") is not None:
                self._findings.error(place, "startingDeadlineSeconds is no number of seconds", name)
            return {"policy": "latest"}
        within = f"{max(seconds, 1)}s"
        self._findings.note(
            place,
            "startingDeadlineSeconds: written as missed: "
            f"{{policy: latest, within: {within}, start_within: {within}}}: of what "
            "was missed the newest runs, if it is not older",
            name,
        )
        return {"policy": "latest", "within": within, "start_within": within}

    def _kubectl_keys(self, cronjob: str, namespace: str, manifest: Manifest, name: str) -> dict[str, object]:
        script = _SCRIPT.format(
            name=shlex.quote(_job_name(cronjob)),
            namespace=f" --namespace {shlex.quote(namespace)}" if namespace else "",
            cronjob=shlex.quote(cronjob),
        )
        if not namespace:
            self._findings.differs(
                manifest.line, "names no namespace: kubectl takes the one of its context on the worker", name
            )
        keys: dict[str, object] = {"shell": script}
        if text_at(manifest.node, "spec", "concurrencyPolicy") == "Replace":
            first, _, rest = script.partition("\n")
            kubectl = f"kubectl --namespace {shlex.quote(namespace)}" if namespace else "kubectl"
            keys = {"shell": f"{first}\n{_REPLACED.format(kubectl=kubectl)}{rest}", "kill_after": "30s"}
        line = line_at(manifest.node, "spec", "jobTemplate")
        self._findings.note(
            line,
            "jobTemplate (containers, retries, limits) stays in the cluster; a tick creates a Job from it and "
            "waits for it",
            name,
        )
        self._tell_early_removal(manifest, name)
        return keys

    def _tell_early_removal(self, manifest: Manifest, name: str) -> None:
        """What removes a Job so soon that the script may not see how it ended."""
        for path in (("failedJobsHistoryLimit",), ("successfulJobsHistoryLimit",), _TTL):
            number, least = number_at(manifest.node, "spec", *path), _LEAST_TTL if path is _TTL else 1
            if number is not None and number < least:
                self._findings.differs(
                    line_at(manifest.node, "spec", *path),
                    f"{path[-1]}: {number} removes the Job before its end is seen, and such a run fails; "
                    f"set it to {least} or more in the cluster",
                    name,
                )

    def _tell_rest(self, manifest: Manifest, name: str) -> None:
        """Every other field, by its path."""
        node = manifest.node
        for key, line in keys_of_node(at(node, "spec")):
            if key in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
                more = "" if self._as_command else "; the CronJob's Jobs are still removed by it"
                self._findings.left_out(
                    line,
                    f"{key}: Sexton keeps runs by time (sexton settings get retention), not by number{more}",
                    name,
                )
            elif key not in _SPEC_READ:
                self._findings.left_out(line, f"spec.{key} is not carried over", name)
        for key, line in keys_of_node(at(node, "metadata")):
            if key not in _SERVER_KEYS and key not in ("name", "namespace"):
                self._findings.left_out(
                    line, f"metadata.{key} is not carried over (tags and owner may take its place)", name
                )
        for key, line in keys_of_node(node):
            if key not in ("apiVersion", "kind", "metadata", "spec", "status"):
                self._findings.left_out(line, f"{key} is no field of a CronJob", name)


def _job_name(cronjob: str) -> str:
    """What the names of its Jobs begin with: its own name where it fits, else one that no other CronJob comes to."""
    if len(cronjob) <= _LONGEST_JOB_NAME and "." not in cronjob:
        return cronjob
    digest = sha256(cronjob.encode()).hexdigest()[:8]
    return f"{cronjob.replace('.', '-')[: _LONGEST_JOB_NAME - 9].rstrip('-')}-{digest}"


def _tell_all(findings: Findings, choices: ImportChoices, zone_from: int, *, as_command: bool) -> None:
    say = findings.differs
    if zone_from:
        say(
            0,
            "a CronJob without timeZone goes by its controller's clock, which is UTC nearly everywhere; "
            f"timezone: {choices.timezone} was written ({choices.timezone_reason}), and --timezone ZONE sets another",
        )
    say(
        0,
        "missed: {policy: latest} was written, as the controller does; it gives up where more than 100 were "
        "missed, and "
        "Sexton does not",
    )
    say(
        0,
        "the nights the clocks change: Kubernetes skips fixed times in the gap and repeats those in the "
        "overlap; Sexton runs each once",
    )
    if as_command:
        say(0, "Sexton runs no containers: the command runs on the worker, with what is installed there, as its user")
        return
    say(
        0,
        "suspend the CronJob before the job is applied, or both run: kubectl patch cronjob NAME -p "
        '\'{"spec":{"suspend":true}}\'',
    )
    say(
        0,
        "the worker needs kubectl and the right to create, get and log Jobs; a run ended by max_runtime leaves "
        "its Job running, and a Job that is deleted while it runs is a failed run",
    )
