"""Sizes as job files and settings write them."""

from __future__ import annotations

import pytest

from sexton.sizes import bytes_of, size_text


@pytest.mark.parametrize(
    ("text", "size"),
    [("1KB", 1000), ("512MB", 512_000_000), ("2GiB", 2 * 1024**3), ("0MB", 0), ("1TiB", 1024**4), ("007KB", 7000)],
)
def test_sizes(text: str, size: int) -> None:
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "MB", "1", "1 MB", "-1MB", "1.5MB", "1mb", "1M", "1MB ", "9999999999999999MB"])
def test_what_is_no_size(text: str) -> None:
    assert bytes_of(text) is None


@pytest.mark.parametrize("text", ["512MB", "1GB", "2GiB", "1KB", "1KiB", "1024TiB", "1001KB", "3TB"])
def test_a_size_is_written_as_it_was_read(text: str) -> None:
    size = bytes_of(text)
    assert size is not None
    assert bytes_of(size_text(size)) == size
    assert len(size_text(size)) <= len(text)
