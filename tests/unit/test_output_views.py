"""What readers make of kept and live output, against what workers keep."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sexton.output_views import HEAD_BYTES, KEPT_BYTES, TAIL_BYTES, Piece, after, kept_pieces, live_pieces
from sexton_worker.core.output_tail import OutputTail

_SIZES = st.one_of(
    st.integers(0, 300_000),
    st.sampled_from([KEPT_BYTES - 1, KEPT_BYTES, KEPT_BYTES + 1, 2 * KEPT_BYTES, HEAD_BYTES, 3 * KEPT_BYTES]),
)


def stream(size: int) -> bytes:
    """Bytes of which each place is known from its neighbours."""
    return b"".join(b"%07d\n" % number for number in range(size // 8 + 1))[:size]


@given(_SIZES, st.integers(1, 100_000), st.integers(0, 300_000))
def test_pieces_stand_where_the_stream_had_them(size: int, step: int, position: int) -> None:
    tail, whole = OutputTail(), stream(size)
    for at in range(0, size, step):
        tail.feed(whole[at : at + step])
    for pieces in (kept_pieces(tail.kept(), tail.total), live_pieces(tail.newest(), tail.total)):
        for piece in (*pieces, *after(pieces, position)):
            assert whole[piece.at : piece.at + len(piece.data)] == piece.data
        end = max(piece.at + len(piece.data) for piece in pieces)
        assert end == size
        assert all(piece.at >= position and piece.data for piece in after(pieces, position))
    assert len(tail.newest()) == min(size, KEPT_BYTES)


def test_a_long_output_is_its_beginning_and_its_end() -> None:
    tail = OutputTail()
    tail.feed(stream(200_000))
    head, end = kept_pieces(tail.kept(), 200_000)
    assert (head.at, len(head.data)) == (0, HEAD_BYTES)
    assert (end.at, len(end.data)) == (200_000 - TAIL_BYTES, TAIL_BYTES)
    assert after((head, end), 200_000) == ()
    assert after((Piece(5, b"abc"),), 6) == (Piece(6, b"bc"),)
    assert kept_pieces(None, 7) == ()
