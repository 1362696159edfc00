"""The container of a CronJob as a command on a worker: what of a pod has a counterpart, and what has not."""

from __future__ import annotations

import re

from sexton.jobfiles.importers.findings import Findings, shown
from sexton.jobfiles.importers.manifests import at, keys_of_node, line_at, number_at, text_at, texts_of
from sexton.jobfiles.importers.shell_words import Part, Variable, as_argument, as_text
from sexton.jobfiles.nodes import Mapping, Node, Scalar, Sequence

_VARIABLE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_DEFAULT_BACKOFF_LIMIT = 6
_JOB_READ = frozenset({"backoffLimit", "activeDeadlineSeconds", "template", "completions", "parallelism"})
_POD_READ = frozenset(
    {"containers", "initContainers", "restartPolicy", "terminationGracePeriodSeconds", "activeDeadlineSeconds"}
)
_CONTAINER_READ = frozenset({"name", "image", "command", "args", "env", "envFrom", "workingDir", "resources"})


def container_keys(job_spec: Node | None, line: int, findings: Findings, job: str) -> dict[str, object] | None:
    """The keys of a job that runs what the pod's container runs; None (reported) where that is not known."""
    pod = at(job_spec, "template", "spec")
    containers = at(pod, "containers")
    if not isinstance(containers, Sequence) or not containers.items or not isinstance(containers.items[0], Mapping):
        findings.error(line, "has no jobTemplate.spec.template.spec.containers", job)
        return None
    container = containers.items[0]
    target = _target(container, findings, job)
    if target is None:
        return None
    for other in containers.items[1:]:
        findings.error(
            other.line,
            f"container {shown(text_at(other, 'name') or '')} beside the first one is not run; write both into one "
            "shell, or import with --as kubectl",
            job,
        )
    initial = at(pod, "initContainers")
    for other in initial.items if isinstance(initial, Sequence) else []:
        findings.error(
            other.line,
            f"initContainer {shown(text_at(other, 'name') or '')} is not run before it; write both into one shell, "
            "joined by &&, or import with --as kubectl",
            job,
        )
    keys = {**target, **_pod_keys(job_spec, findings, job)}
    env, unread = _env(container, findings, job)
    if env:
        keys["env"] = env
    for name in sorted(_names_in(container) & unread if unread is not None else _names_in(container) - env.keys()):
        findings.error(
            line_at(container, "command"),
            f"$({name}) of its command comes from where the import does not read; write its value to env, or import "
            "with --as kubectl",
            job,
        )
    if (folder := text_at(container, "workingDir")) is not None:
        keys["cwd"] = folder
    findings.differs(
        line_at(container, "image"),
        f"image {shown(text_at(container, 'image') or '')} is not run: the command has to be on the workers",
        job,
    )
    _tell_resources(container, findings, job)
    _tell_rest(container, _CONTAINER_READ, "containers[0]", findings, job)
    _tell_rest(pod, _POD_READ, "template.spec", findings, job)
    _tell_rest(job_spec, _JOB_READ, "jobTemplate.spec", findings, job)
    return keys


def _target(container: Mapping, findings: Findings, job: str) -> dict[str, object] | None:
    command, arguments = at(container, "command"), at(container, "args")
    words = [*(texts_of(command) or []), *(texts_of(arguments) or [])]
    if command is None or not texts_of(command):
        findings.error(
            container.line,
            "its command is the entrypoint of the image, which the manifest does not say; import with --as kubectl, or "
            "write the command into the manifest",
            job,
        )
        return None
    if arguments is not None and texts_of(arguments) is None:
        findings.error(line_at(container, "args"), "args is no list of texts", job)
        return None
    declared = _declared(container)
    parsed = [_parts(word, declared) for word in words]
    texts = [as_text(parts) for parts in parsed]
    argv = [text for text in texts if text is not None]
    if len(argv) == len(texts):
        return {"command": argv}
    findings.differs(
        line_at(container, "command"),
        "$(VARIABLES) are filled in by a shell here, from env and the worker's environment",
        job,
    )
    return {"shell": " ".join(as_argument(parts) for parts in parsed)}


def _names_in(container: Mapping) -> set[str]:
    """The variables that command and arguments name."""
    words = [*(texts_of(at(container, "command")) or []), *(texts_of(at(container, "args")) or [])]
    return {part.name for word in words for part in _parts(word, _declared(container)) if isinstance(part, Variable)}


def _declared(container: Mapping) -> set[str] | None:
    """The names that env has, wherever their values stand; None where any name may be one."""
    if at(container, "envFrom") is not None:
        return None
    listed = at(container, "env")
    entries = listed.items if isinstance(listed, Sequence) else []
    return {name for entry in entries if (name := text_at(entry, "name"))}


def _parts(word: str, declared: set[str] | None) -> tuple[Part, ...]:
    """A word as Kubernetes fills it in: what is not declared stays as it is written."""
    parts: list[Part] = []
    end = 0
    for match in _VARIABLE.finditer(word):
        if match.start() > end:
            parts.append(word[end : match.start()])
        if match[1] is None:
            parts.append("$")
        else:
            parts.append(Variable(match[1]) if declared is None or match[1] in declared else match[0])
        end = match.end()
    if end < len(word) or not parts:
        parts.append(word[end:])
    return tuple(parts)


def _env(container: Mapping, findings: Findings, job: str) -> tuple[dict[str, str], set[str] | None]:
    """The variables, and the names of those that are not read here; None where they may have any name."""
    env: dict[str, str] = {}
    unread: set[str] | None = set() if at(container, "envFrom") is None else None

    def filled_in(match: re.Match[str]) -> str:
        return "$" if match[1] is None else env.get(match[1], match[0])

    listed = at(container, "env")
    for entry in listed.items if isinstance(listed, Sequence) else []:
        name = text_at(entry, "name")
        value = at(entry, "value")
        if not name:
            findings.error(entry.line, "an entry of env has no name", job)
        elif (source := at(entry, "valueFrom")) is not None:
            if unread is not None:
                unread.add(name)
            of = next((key for key, _ in keys_of_node(source)), "somewhere")
            findings.left_out(
                entry.line, f"env {name} comes from {of}, which is not read here: let the command get it by itself", job
            )
        elif value is not None and not isinstance(value, Scalar):
            findings.error(entry.line, f"env {name} is no text", job)
        else:
            text = value.text if isinstance(value, Scalar) else ""
            env[name] = _VARIABLE.sub(filled_in, text)
            for unknown in {match[1] for match in _VARIABLE.finditer(text) if match[1]} - env.keys():
                if unread is None or unknown in unread:
                    findings.error(
                        entry.line,
                        f"env {name}: $({unknown}) comes from where the import does not read; write it out",
                        job,
                    )
    if (more := at(container, "envFrom")) is not None:
        findings.left_out(more.line, "envFrom is not read here: let the command get these variables by itself", job)
    return env, unread


def _pod_keys(job_spec: Node | None, findings: Findings, job: str) -> dict[str, object]:
    keys: dict[str, object] = {}
    pod = at(job_spec, "template", "spec")
    limit = number_at(job_spec, "backoffLimit")
    retries = _DEFAULT_BACKOFF_LIMIT if limit is None else limit
    if retries:
        keys["retries"] = {"max": min(retries, 1_000), "delay": "10s", "factor": 2, "max_delay": "6m", "jitter": False}
        said = "backoffLimit" if limit is not None else "backoffLimit is not given, and means"
        place = line_at(job_spec, "backoffLimit") if job_spec is not None else 0
        findings.note(
            place, f"{said} {retries}: written as retries with the same delays (10s, doubled, at most 6m)", job
        )
    for node, path in ((job_spec, ("activeDeadlineSeconds",)), (pod, ("activeDeadlineSeconds",))):
        seconds = number_at(node, *path)
        if seconds and node is not None and "max_runtime" not in keys:
            keys["max_runtime"] = f"{seconds}s"
            findings.differs(
                line_at(node, *path), "activeDeadlineSeconds counts over all retries; max_runtime is for each run", job
            )
    grace = number_at(pod, "terminationGracePeriodSeconds")
    keys["kill_after"] = f"{30 if grace is None else grace}s"
    for key in ("completions", "parallelism"):
        count = number_at(job_spec, key)
        if job_spec is not None and count is not None and count != 1:
            findings.error(
                line_at(job_spec, key), f"{key}: {count} pods are one run here; import with --as kubectl", job
            )
    return keys


def _tell_resources(container: Mapping, findings: Findings, job: str) -> None:
    """Nothing of it is the same here: Kubernetes counts pages in use of the whole container, and a share of time."""
    limits = at(container, "resources", "limits")
    memory = text_at(limits, "memory") if limits is not None else None
    if memory is not None:
        findings.left_out(
            line_at(limits, "memory") if limits is not None else container.line,
            f"resources.limits.memory: {shown(memory)} is for the whole container; limits: {{memory: ...}} is the "
            "address space of each process, which some programs take much of and never use: write it by hand",
            job,
        )
    for key, line in [*keys_of_node(limits), *keys_of_node(at(container, "resources"))]:
        if key not in ("memory", "limits"):
            findings.left_out(line, f"resources {key} has no counterpart; --as kubectl keeps it in the cluster", job)


def _tell_rest(node: Node | None, read: frozenset[str], path: str, findings: Findings, job: str) -> None:
    for key, line in keys_of_node(node):
        if key not in read:
            findings.left_out(line, f"{path}.{key} has no counterpart; --as kubectl keeps it in the cluster", job)
