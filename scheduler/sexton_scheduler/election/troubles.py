"""What keeps a candidate from ZooKeeper, as a sentence for an operator; pure.

``kind`` groups what is said once per outage, however many servers say it in turn.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from kazoo.exceptions import (
    AuthFailedError,
    CancelledError,
    ConnectionDropped,
    ConnectionLoss,
    InvalidACLError,
    NoAuthError,
    NoNodeError,
    OperationTimeoutError,
    SessionExpiredError,
    SessionMovedError,
    ZookeeperError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import RetryFailedError

_PASSING = (
    CancelledError,
    ConnectionDropped,
    ConnectionLoss,
    KazooTimeoutError,
    NoNodeError,  # the path was removed meanwhile, and is made again
    OperationTimeoutError,
    RetryFailedError,
    SessionExpiredError,
    SessionMovedError,
)
_NO_TLS = (
    "http request",
    "packet length too long",
    "record layer failure",
    "unexpected eof while reading",
    "wrong version number",
)
_HOST_MISMATCH, _EXPIRED, _NOT_YET_VALID = 62, 10, 9  # OpenSSL's verify codes


@dataclass(frozen=True, slots=True)
class Trouble:
    """``needs_operator``: trying again does not mend it."""

    kind: str
    sentence: str
    needs_operator: bool = False


def of_connecting(server: str, error: BaseException, *, is_tls: bool) -> Trouble:
    """Why connecting to ``server`` failed; ``error`` is what kazoo raised, or what the socket did."""
    cause = error.__context__ if not isinstance(error, OSError) and isinstance(error.__context__, OSError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return Trouble("certificate", _of_certificate(server, cause), needs_operator=True)
    if isinstance(cause, ssl.SSLError):
        return _of_tls(server, cause)
    if isinstance(error, AuthFailedError):
        return Trouble("login", f"{server} refuses the login in coordinator_login", needs_operator=True)
    if isinstance(cause, ConnectionRefusedError):
        return Trouble("refused", f"{server} refuses connections")
    if isinstance(cause, TimeoutError | KazooTimeoutError):
        return Trouble("silent", f"{server} does not answer in time")
    if isinstance(cause, OSError) and cause.strerror and not isinstance(cause, ConnectionError):
        return Trouble("unreachable", f"{server} cannot be reached ({cause.strerror})")
    hints = "it has no quorum" + (", or asks for a certificate" if is_tls else ", or speaks TLS only")
    return Trouble("dropped", f"{server} hangs up ({hints})")


def of_names(servers: str) -> Trouble:
    """No name of the coordinator resolves."""
    return Trouble("names", f"no name of {servers} resolves to an address")


def of_answer(folder: str, error: Exception, *, has_login: bool) -> Trouble | None:
    """Why a question about ``folder`` was not answered; None where a lost connection, or time, is the whole story."""
    if isinstance(error, NoAuthError):
        said = "it was made with a login; set coordinator_login"
        if has_login:
            said = "user or password in coordinator_login is wrong, or that user's permission was taken away"
        return Trouble("permission", f"ZooKeeper lets this node not stand for election in {folder}: {said}", True)
    if isinstance(error, InvalidACLError):
        return Trouble("acl", f"ZooKeeper takes no digest logins, so {folder} cannot be made", needs_operator=True)
    if isinstance(error, AuthFailedError):
        return Trouble("login", "ZooKeeper refuses the login in coordinator_login", needs_operator=True)
    if isinstance(error, _PASSING):
        return None
    if isinstance(error, ZookeeperError):
        return Trouble("answer", f"ZooKeeper refuses {folder} ({type(error).__name__})", needs_operator=True)
    return Trouble("fault", f"a campaign failed ({error!r}) and is tried again", needs_operator=True)


def _of_certificate(server: str, error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code == _HOST_MISMATCH or "mismatch" in error.verify_message:
        return f"the certificate of {server} is for another name; write the coordinator with the certificate's name"
    if error.verify_code in (_EXPIRED, _NOT_YET_VALID):
        return f"the certificate of {server} is not valid now ({error.verify_message})"
    return f"the certificate of {server} is not signed by the authority in coordinator_ca ({error.verify_message})"


def _of_tls(server: str, error: ssl.SSLError) -> Trouble:
    reason = (getattr(error, "reason", None) or "no reason given").replace("_", " ").lower()
    if "alert" in reason and any(word in reason for word in ("certificate", "unknown ca", "access denied")):
        said = f"{server} does not accept this node's certificate ({reason}); see coordinator_certificate"
        return Trouble("client certificate", said, needs_operator=True)
    if reason in _NO_TLS:
        said = f"{server} does not speak TLS ({reason}); name ZooKeeper's secure port, or leave coordinator_ca out"
        return Trouble("no TLS", said, needs_operator=True)
    return Trouble("TLS", f"TLS with {server} failed ({reason})")
