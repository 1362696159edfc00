"""From an order as it was granted to what is run: its secrets read, and requests turned into calls.

``http`` and ``celery`` are functions of Sexton's (``http_call``, ``celery_call``), called in the same warm processes as
Python jobs: so isolation, deadlines, ends and outputs are theirs. What is secret travels to that process over its own
socket, and is kept nowhere.
"""

from __future__ import annotations

import dataclasses
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from sexton.job_rules import NO_LIMITS
from sexton.jobs import RunRules
from sexton.run_context import RunContext
from sexton.targets import CeleryTarget, HttpTarget, PythonTarget
from sexton.text_templates import SECRET, filled, secrets_in
from sexton_worker.core.address_masks import logins_of_address, parts_of_address
from sexton_worker.execution import RunOrder
from sexton_worker.targets import celery_call, http_call
from sexton_worker.targets.http_request import begins_secretly, full_url
from sexton_worker.targets.secrets import Secrets

CACHED = 10_000  # revisions


class Preparation:
    """For one worker. ``environ``: its own variables; ``allow``: see ``allow_list``."""

    def __init__(self, secrets: Secrets, environ: Mapping[str, str], allow: Sequence[str] | None) -> None:
        self._secrets = secrets
        self._network = {name: environ[name] for name in http_call.NETWORK_VARIABLES if name in environ}
        self._allow = None if allow is None else list(allow)
        self._known: OrderedDict[tuple[int, int], tuple[RunRules, RunRules, PythonTarget, str]] = OrderedDict()

    def of(self, order: RunOrder) -> tuple[RunOrder, PythonTarget | None]:
        """The order as it is to be run, and the call it is, None if it is a process. Raises ``NoSecret``."""
        match order.rules.target:
            case HttpTarget() as target:
                return self._request(order, target)
            case CeleryTarget() as target:
                return self._task(order, target)
            case target:
                order = self._with_secrets(order) if order.rules.env else order
                return order, target if isinstance(target, PythonTarget) else None

    def _with_secrets(self, order: RunOrder) -> RunOrder:
        env = order.rules.env
        names = secrets_in(*env.values(), is_template=False)
        if not names:
            return order
        values = self._read(names)
        full = {name: _filled(text, values) for name, text in env.items()}
        return order._replace(rules=dataclasses.replace(order.rules, env=full), secrets=_bytes(values))

    def _request(self, order: RunOrder, target: HttpTarget) -> tuple[RunOrder, PythonTarget]:
        texts = (target.url, *target.headers.values(), target.body or "")
        values = self._read(secrets_in(*texts, is_template=True))
        given = {
            "method": target.method,
            "url": target.url,
            "headers": target.headers,
            "body": target.body,
            "expect": list(target.expect),
            "expect_body": target.expect_body,
            "timeout": target.timeout.total_seconds(),
            "redirects": target.redirects,
            "allow": self._allow,
            "secrets": values,
        }
        peer = f"{_authority(target.url)} {target.timeout}"
        call = PythonTarget(http_call.REFERENCE, (), given)
        masks = _masks(target.url, full_url(_context(order), target.url, values)) if values else ()
        return self._call(order, call, self._network, peer, values, masks)

    def _task(self, order: RunOrder, target: CeleryTarget) -> tuple[RunOrder, PythonTarget]:
        values = self._read(secrets_in(target.broker, target.backend or "", is_template=False))
        broker = _filled_address(target.broker, values)
        backend = None if target.backend is None else _filled_address(target.backend, values)
        given = {
            "broker": broker,
            "shown": target.broker,
            "backend": backend,
            "shown_backend": target.backend,
            "task": target.task,
            "args": list(target.args),
            "kwargs": target.kwargs,
            "queue": target.queue,
            "wait": target.wait,
            "allow": self._allow,
        }
        peer = f"{_authority(target.broker)} {target.task if target.wait else ''}"
        call = PythonTarget(celery_call.REFERENCE, (), given)
        masks = (*_masks(target.broker, broker), *_masks(target.backend or "", backend or "")) if values else ()
        return self._call(order, call, {}, peer, values, masks)

    def _call(
        self,
        order: RunOrder,
        call: PythonTarget,
        env: dict[str, str],
        peer: str,
        secrets: dict[str, str],
        masks: Sequence[str],
    ) -> tuple[RunOrder, PythonTarget]:
        """The rules stay the same object from run to run where nothing is secret: what is made of them is kept.
        ``masks``: what is secret too, for it was made of the secrets."""
        key = (order.grant.job_id, order.grant.revision)
        known = self._known.get(key)
        if secrets or known is None or known[0] is not order.rules:
            plain: dict[str, Any] = {"cwd": None, "stdin": None, "env": env, "limits": NO_LIMITS}
            plain["success_codes"] = (0,)
            known = (order.rules, dataclasses.replace(order.rules, **plain), call, peer)
            if not secrets:
                self._known[key] = known
                if len(self._known) > CACHED:
                    self._known.popitem(last=False)
        _, rules, call, peer = known
        return order._replace(rules=rules, secrets=_bytes(secrets, masks), peer=peer), call

    def _read(self, names: Sequence[str]) -> dict[str, str]:
        return {name: self._secrets.read(name) for name in names}


def _filled(text: str, secrets: Mapping[str, str]) -> str:
    return filled(text, lambda name, _: secrets[name[len(SECRET) :]], is_template=False)


def _filled_address(text: str, secrets: Mapping[str, str]) -> str:
    """What is a part of an address is percent-encoded, but for what is the whole of it."""
    if begins_secretly(text):
        return _filled(text, secrets)
    return filled(text, lambda name, _: quote(secrets[name[len(SECRET) :]], safe=""), is_template=False)


def _masks(text: str, address: str) -> tuple[str, ...]:
    """What of an address is secret besides the secrets in it: all of it, or only what its user and password become."""
    if begins_secretly(text):
        return tuple(part for one in address.split(";") for part in parts_of_address(one))
    authority = text.partition("://")[2].partition("/")[0]
    return logins_of_address(address) if f"${{{SECRET}" in authority.rpartition("@")[0] else ()


def _context(order: RunOrder) -> RunContext:
    grant = order.grant
    return RunContext(order.job, grant.scheduled_at, grant.attempt, grant.token, order.deadline)


def _authority(address: str) -> str:
    """Who it is that will take long, roughly."""
    return address.partition("://")[2].partition("/")[0]


def _bytes(secrets: Mapping[str, str], masks: Sequence[str] = ()) -> tuple[bytes, ...]:
    return tuple(map(os.fsencode, (*secrets.values(), *masks)))
