"""Secrets in outputs: masked whatever the pieces, and wherever the kept part of an output is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sexton_worker.core.masking import MASK, SHORTEST, Masker, masked, masked_text
from sexton_worker.core.output_stream import OutputStream
from sexton_worker.core.output_tail import KEPT_BYTES
from sexton_worker.core.secret_masks import forms_of_all

# Few letters, so that secrets overlap themselves, each other, and what is around them.
_TEXT = st.binary(max_size=60).map(lambda data: bytes(b"ab\n"[byte % 3] for byte in data))
_SECRETS = st.lists(
    st.binary(min_size=1, max_size=9).map(lambda data: bytes(b"ab"[byte % 2] for byte in data)), max_size=3
)


def by_hand(data: bytes, secrets: list[bytes]) -> bytes:
    """Every byte of every occurrence marked, byte by byte; each stretch of overlapping ones is one mask."""
    known = [secret for secret in secrets if len(secret) >= SHORTEST]
    found = sorted((at, at + len(secret)) for secret in known for at in range(len(data)) if data.startswith(secret, at))
    shown, at = b"", 0
    for begin, end in found:
        if begin >= at:
            shown += data[at:begin] + MASK
        at = max(at, end)
    tail = data[at:]
    longest = max(
        (n for n in range(len(data) + 1) if any(s.startswith(data[len(data) - n :]) and len(s) > n for s in known)),
        default=0,
    )
    if longest < SHORTEST:
        return shown + tail
    if len(data) - longest >= at:
        return shown + data[at : len(data) - longest] + MASK
    return shown


@given(_TEXT, _SECRETS, st.lists(st.integers(0, 60), max_size=8))
def test_a_stream_is_masked_the_same_in_whatever_pieces_it_comes(
    data: bytes, secrets: list[bytes], cuts: list[int]
) -> None:
    whole = by_hand(data, secrets)
    assert masked(data, secrets) == whole
    masker, shown = Masker(secrets), b""
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    for begin, end in zip(places, [*places[1:], len(data)], strict=True):
        shown += masker.feed(data[begin:end])
        assert whole.startswith(shown)
    assert shown + masker.finish() == whole


def test_nothing_is_held_back_but_what_may_be_a_secret() -> None:
    masker = Masker([b"password"])
    assert masker.feed(b"user: pass") == b"user: "
    assert masker.feed(b" the salt, p") == b"pass the salt, "
    assert masker.feed(b"lease\n") == b"please\n"


def test_a_secret_that_the_kept_part_would_cut_shows_none_of_its_rest() -> None:
    secret = b"QWERTZUIOPASDFGH"
    for before in range(KEPT_BYTES // 2 - len(secret), KEPT_BYTES // 2 + 1):
        stream = OutputStream([secret])
        stream.feed(b"." * before + secret[:7])
        stream.feed(secret[7:] + b"." * KEPT_BYTES + secret + b"." * (KEPT_BYTES - 3))
        stream.finish()
        for shown in (stream.kept(), stream.newest()):
            assert not any(secret[n : n + 2] in shown for n in range(len(secret) - 1))


def test_a_run_that_is_killed_in_the_midst_of_writing_its_secret_shows_no_part_of_it() -> None:
    assert masked(b"key=hunter", [b"hunter2"]) == b"key=***"
    assert masked(b"key=hun", [b"hunter2"]) == b"key=hun"


def test_short_values_are_no_secrets() -> None:
    assert masked(b"on=1 abc", [b"1", b"on", b"abc", b""]) == b"on=1 abc"


def test_a_text_is_masked_and_stays_a_text() -> None:
    assert masked_text("Käse: päss", ["päss".encode()]) == "Käse: ***"
    assert masked_text("\udcff pass\ud800word", [b"word"]) == "\udcff pass\ud800***"
    assert masked_text("é" * 3, [b"\xa9\xc3\xa9\xc3"]) == "\ufffd***\ufffd"


def test_a_secret_is_known_in_the_forms_in_which_programs_write_it() -> None:
    forms = forms_of_all([b'pa"ss/w\xc3\xb6rd\nsecond line\n'])
    for text in (
        b'pa"ss/w\xc3\xb6rd', b"second line", b'pa\\"ss/w\\u00f6rd', b"pa%22ss%2Fw%C3%B6rd", b"c2Vjb25kIGxpbmU=",
    ):  # fmt: skip
        assert masked(b"<" + text + b">", forms) == b"<***>"
