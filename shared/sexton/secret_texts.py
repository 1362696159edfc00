"""What of a job's texts is shown to people: plans are pasted into merge requests, so what looks secret is hidden.

A reference (``${secret:NAME}``, ``$NAME``) is no secret and is shown. Hidden are: a value of ``env`` or of a header
whose name says that it is one; and inside any other text of a job passwords in addresses, values assigned to such a
name, private keys, and tokens that show their kind by their first letters. This is care, not proof: secrets do not
belong into job files, and ``looks_secret`` is what a plan warns by.
"""

from __future__ import annotations

import re

HIDDEN = "(hidden)"
_NAMES = (
    r"passw(?:or)?d|passphrase|pwd|secret|token|credentials?|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|auth(?:orization)?"
)
_HEADER_NAMES = re.compile(r"(?i)(?:set-)?cookie|x-hub-signature(?:-256)?|signature")
_SECRET_NAME = re.compile(rf"(?i)(?:^|[_.-]|(?<=[a-z]))(?:{_NAMES})s?(?:$|[_.-])")
_REFERENCE = re.compile(r"(?:(?i:bearer|basic|token|apikey) )?(?:[\w+.-]+://)?(?:\$\{[^}]*\}|\$\w+)")
_SHOWN_WHOLE = ("description", "owner", "tags", "name")
_VALUE = r"(?!\$|\(hidden\))[^\s\"'&;,)]+"
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)", re.S),
        HIDDEN,
    ),
    (re.compile(r"(?<![\w+.-])([A-Za-z][\w+.-]{0,30}://[^\s/:@\"']{0,200}:)(?!\$)[^\s/@\"']+(?=@)"), rf"\g<1>{HIDDEN}"),
    (re.compile(r"(?i)\b(bearer |basic )(?!\$)[\w+/=.~-]{8,}"), rf"\g<1>{HIDDEN}"),
    (re.compile(rf"(?i)(--[\w-]{{0,40}}(?:{_NAMES})[\"']?(?:=|,? {{1,3}})[\"']?){_VALUE}"), rf"\g<1>{HIDDEN}"),
    (
        re.compile(rf"(?i)(?<!\$\{{)((?:{_NAMES})[\"']?\s{{0,3}}[=:]\s{{0,3}}[\"']?)(?!bearer|basic){_VALUE}"),
        rf"\g<1>{HIDDEN}",
    ),
    (
        re.compile(
            r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{15,}|AKIA[0-9A-Z]{16}|xox[abeprs]-[\w-]{10,}"
            r"|sk-[\w-]{20,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
        ),
        HIDDEN,
    ),
    (  # addresses that are the secret themselves: whoever knows one may post there
        re.compile(
            r"(?i)(https://(?:hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/\d+/"
            r"|api\.telegram\.org/bot|[\w.-]+\.webhook\.office\.com/))(?!\$)[\w:@/-]+"
        ),
        rf"\g<1>{HIDDEN}",
    ),
    (re.compile(r"(?i)([?&](?:sig|signature|key|code)=)(?!\$)[^\s&#\"']{8,}"), rf"\g<1>{HIDDEN}"),
)


def shown_text(key: str, text: str) -> str:
    """``text``, the value of a job's key by its dotted name, with what looks like a secret replaced."""
    if key in _SHOWN_WHOLE:
        return text
    if _has_secret_name(key):
        return text if not text or _REFERENCE.fullmatch(text) else HIDDEN
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text


def _has_secret_name(key: str) -> bool:
    """Whether a variable or a header is called as secrets are."""
    for place in ("env.", "http.headers."):
        if key.startswith(place):
            name = key.removeprefix(place)
            return bool(_SECRET_NAME.search(name) or (place != "env." and _HEADER_NAMES.fullmatch(name)))
    return False


def looks_secret(key: str, text: str) -> bool:
    """Whether ``shown_text`` hides something of this value."""
    return shown_text(key, text) != text
