"""The ``celery`` target: a tick handed to a Celery deployment, as a function called in a warm Python process.

    wait: false   succeeded when the broker has the task
    wait: true    ends as the task does; a run that is stopped revokes it, and has it terminated

The task's id is ``JOB@TICK-ATTEMPT``: a message that comes twice is recognisable. Its headers tell what a run is told
(``sexton_job``, ``sexton_tick``, ``sexton_attempt``, ``sexton_token``, ``sexton_deadline``, ``sexton_claim``). Each run
has a connection of its own to the broker, for one that was kept may be dead, and nobody knows what was sent into it.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from sexton.run_context import RunContext, context
from sexton_worker.targets.python_call import LARGEST_RESULT, LONGEST_ERROR, Ended
from sexton_worker.targets.time_limit import OutOfTime, TimeLimit

REFERENCE = f"{__name__}:send"

SEND_SECONDS = 10.0
ASK_SECONDS = 5.0  # how long the deployment's workers have to say what their settings are
OTHERS_SECONDS = 1.0  # and the others, if the first that spoke keeps no results
REVOKE_SECONDS = 5.0
POLL_SECONDS = 10.0
SHORTEST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
MOST_APPS = 8

_KEEP_RESULTS = ("redis", "rediss", "sentinel")  # brokers that are result backends too
_CONFIRMING = ("amqp", "amqps", "pyamqp")
_OF_RPC = "rpc"

_apps: dict[tuple[str, str | None], Any] = {}
_with_results: set[tuple[str, str | None]] = set()  # whose workers were asked, and keep results


class TaskFailed(Ended):
    """The run has failed, without an exit code."""

    def __init__(self, error: str, cause: BaseException) -> None:
        super().__init__("raised", " ".join(error.split())[:LONGEST_ERROR], cause)
        self.message["exit_code"] = None


class BrokerUnreachable(Exception):
    """The broker did not take the task."""


class TaskRevoked(Exception):
    """Somebody revoked the task."""


def send(
    *,
    broker: str,
    shown: str,
    backend: str | None,
    shown_backend: str | None,
    task: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    queue: str,
    wait: bool,
    allow: Sequence[str] | None,
) -> None:
    """Hand the run's tick over. ``shown``, ``shown_backend``: as the job has them. Raises ``Ended`` unless it
    succeeded."""
    _check_allowed(broker, shown, allow)
    if backend is not None and not backend.startswith(_OF_RPC):
        _check_allowed(backend, shown_backend or "", allow)
    run = context()
    if run.cancelled:  # from here on a request to stop is told, and does not end this process at once
        raise TaskFailed("cancelled", InterruptedError())
    place = _place(shown)
    try:
        with TimeLimit(SEND_SECONDS):
            deployment = _Deployment(broker, backend if wait else None, place, waits=wait)
            deployment.check()
        with TimeLimit(SEND_SECONDS):
            deployment.send(run, task, args, kwargs, queue)
    except OutOfTime:
        why = f"the broker {place} did not take the task {task} within {SEND_SECONDS:g} s"
        raise TaskFailed(why, BrokerUnreachable()) from None
    except ImportError as error:
        why = f"the celery target needs the library celery ({error}); install sexton[celery] where the worker runs"
        raise Ended("not started", why, error) from None
    except Ended:
        raise
    except Exception as error:
        why = f"the broker {place} did not take the task {task}: {_reason(error)}"
        raise TaskFailed(why, BrokerUnreachable()) from None
    if wait:
        deployment.wait(run, task)


class _Deployment:
    """A Celery deployment as one run meets it. ``waits``: its results will be asked for, at ``backend``."""

    def __init__(self, broker: str, backend: str | None, place: str, *, waits: bool) -> None:
        self._place = place
        self._waits = waits
        if waits and backend is None:
            backend = _results_of(broker, place)
        self._key = (broker, backend)
        self._app = _app(broker, backend)
        is_rpc = backend is not None and backend.startswith(_OF_RPC)
        # Celery listens for the result of what it sends with a backend; here it is asked for.
        self._sender = self._app if is_rpc else _app(broker, None)

    def check(self) -> None:
        """Raises ``Ended`` if results are waited for and the deployment's workers say that they keep none."""
        if not self._waits or self._key in _with_results:
            return
        said = self._settings(timeout=ASK_SECONDS, limit=1)
        if said and not any(map(_keeps_results, said.values())):
            said |= self._settings(timeout=OTHERS_SECONDS)
        if not said:
            return
        if any(map(_keeps_results, said.values())):
            _with_results.add(self._key)
            return
        who = ", ".join(sorted(said)[:3])
        why = f"wait: true needs a result backend, and the workers of {self._place} ({who}) have none"
        raise Ended("not started", f"{why}; set result_backend there, or write wait: false", LookupError())

    def _settings(self, **how: Any) -> dict[str, Any]:
        """Those of the deployment's workers that answer; empty for a broker without remote control."""
        with contextlib.suppress(Exception):
            return self._app.control.inspect(**how).conf() or {}
        return {}

    def send(self, run: RunContext, task: str, args: Sequence[Any], kwargs: Mapping[str, Any], queue: str) -> None:
        self._task_id = f"{run.claim}-{run.attempt}"
        headers = {
            "sexton_job": run.job,
            "sexton_tick": run.claim.rpartition("@")[2],
            "sexton_attempt": run.attempt,
            "sexton_token": run.token,
            "sexton_deadline": f"{run.deadline.replace(tzinfo=None).isoformat()}Z",
            "sexton_claim": run.claim,
        }
        with self._sender.connection_for_write() as connection:
            self._sender.send_task(
                task, list(args), dict(kwargs), task_id=self._task_id, queue=queue, headers=headers,
                connection=connection, retry=False,
            )  # fmt: skip

    def wait(self, run: RunContext, task: str) -> None:
        """Until the task has ended; raises ``Ended`` unless it succeeded. An outage of the backend is waited out."""
        pause, is_told = SHORTEST_PAUSE, False
        while not run.cancelled:
            try:
                with TimeLimit(POLL_SECONDS):
                    meta = self._app.backend.get_task_meta(self._task_id)
                if _conclude(meta, task):
                    return
            except Ended:
                raise
            except (OutOfTime, Exception) as error:
                if not is_told:
                    sys.stderr.write(f"the result backend of {self._place} does not answer: {_reason(error)}\n")
                    is_told = True
            time.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 1.5)
        how = "revoked"
        try:
            with TimeLimit(REVOKE_SECONDS):
                self._app.control.revoke(self._task_id, terminate=True)
        except (OutOfTime, Exception) as error:
            how = f"not revoked: {_reason(error)}"
            sys.stderr.write(f"the task {self._task_id} was {how}\n")
        raise TaskFailed(f"the task {task} was {how}", TaskRevoked())


def _conclude(meta: Mapping[str, Any], task: str) -> bool:
    """Whether the task has ended. Raises ``TaskFailed`` unless it succeeded."""
    state, result = meta["status"], meta["result"]
    if state == "SUCCESS":
        _tell(result)
        return True
    if state == "FAILURE":
        if trace := meta.get("traceback"):
            sys.stderr.write(f"{trace}\n")
        error = result if isinstance(result, BaseException) else RuntimeError(str(result))
        raise TaskFailed(f"the task {task} failed: {_reason(error)}", error)
    if state in ("REVOKED", "REJECTED", "IGNORED"):
        raise TaskFailed(f"the task {task} was {state.lower()} in its deployment", TaskRevoked())
    return False


def _tell(result: object) -> None:
    if result is None:
        return
    with contextlib.suppress(TypeError, ValueError, RecursionError):
        text = json.dumps(result)
        if len(text) <= LARGEST_RESULT:
            sys.stdout.write(f"returned {text}\n")
        else:
            sys.stderr.write(
                f"it returned {len(text):,} bytes of JSON, more than the {LARGEST_RESULT:,} that are kept\n"
            )


def _app(broker: str, backend: str | None) -> Any:
    """Kept, for they take long to make; the oldest makes room."""
    import celery  # here: other runs do not need it, and it takes long to load

    app = _apps.get((broker, backend))
    if app is None:
        if len(_apps) >= MOST_APPS:
            del _apps[next(iter(_apps))]
        app = celery.Celery("sexton", broker=broker, backend=backend, set_as_current=False)
        # To connect twice is all: when to try a run again is for the job to say.
        options: dict[str, Any] = {"max_retries": 1, "interval_start": 0.2, "interval_step": 0, "interval_max": 0.2}
        if _scheme(broker) in _CONFIRMING:
            options["confirm_publish"] = True
        else:
            options |= {"socket_connect_timeout": SEND_SECONDS, "socket_timeout": SEND_SECONDS}
        app.conf.update(broker_transport_options=options, broker_connection_retry=False, task_publish_retry=False)
        _apps[(broker, backend)] = app
    return app


def _results_of(broker: str, place: str) -> str:
    """The broker as a result backend. Raises ``Ended`` if it keeps no results."""
    if _scheme(broker) in _KEEP_RESULTS:
        return broker
    why = f"wait: true needs a result backend, and the broker {place} keeps no results"
    raise Ended("not started", f"{why}; name one as celery: {{backend: ...}}, or write wait: false", LookupError())


def _keeps_results(settings: Mapping[str, Any]) -> bool:
    backends = [value for name, value in settings.items() if name.lower().removeprefix("celery_") == "result_backend"]
    return any(value and value != "disabled" for value in backends)


# --- addresses --------------------------------------------------------------------------------------------------------


def is_allowed(broker: str, allow: Sequence[str]) -> bool:
    """Whether an entry such as ``redis://broker/`` is the beginning of the broker's address, of each of several."""
    return all(any(_begins_with(address, entry) for entry in allow if "://" in entry) for address in broker.split(";"))


def _begins_with(address: str, entry: str) -> bool:
    try:
        given, allowed = urlsplit(address), urlsplit(entry)
        is_same = (given.scheme, given.hostname, given.port) == (allowed.scheme, allowed.hostname, allowed.port)
    except ValueError:
        return False
    begin = allowed.path.rstrip("/")
    return is_same and f"{given.path}/".startswith(f"{begin}/")


def _check_allowed(broker: str, shown: str, allow: Sequence[str] | None) -> None:
    if allow is not None and not is_allowed(broker, allow):
        may = ", ".join(entry for entry in allow if "://" in entry) or "none"
        advice = "add it to `allow` in the worker's settings, or give the job the queue of another worker"
        why = f"{_place(shown)} is not among the brokers and backends that this worker may use ({may}); {advice}"
        raise Ended("not started", why, PermissionError())


def _scheme(broker: str) -> str:
    return broker.partition("://")[0].partition("+")[0].lower()


def _place(shown: str) -> str:
    """A broker without its user and password."""
    scheme, slashes, rest = shown.partition("://")
    if not slashes:
        return shown
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"


def _reason(error: BaseException) -> str:
    if isinstance(error, OutOfTime):
        return "no answer in time"
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
