"""The bytes of another scheduler's file, as text: such files are older than UTF-8, and nobody mends them first."""

from __future__ import annotations

from sexton.jobfiles.importers.findings import Findings

MAX_SOURCE_BYTES = 10 * 1024 * 1024
_MARKS = ((b"\xef\xbb\xbf", "utf-8", "UTF-8"), (b"\xff\xfe", "utf-16", "UTF-16"), (b"\xfe\xff", "utf-16", "UTF-16"))


def decode_source(data: bytes, findings: Findings) -> str | None:
    """The text, with line breaks as they stood; None (reported) where it is no text of a bearable size."""
    if len(data) > MAX_SOURCE_BYTES:
        findings.error(0, f"is larger than {MAX_SOURCE_BYTES // 1024 // 1024} MB; split it into several files")
        return None
    for mark, encoding, called in _MARKS:
        if data.startswith(mark):
            findings.note(1, f"the byte-order mark ({called}) at the beginning was removed")
            rest = data if encoding == "utf-16" else data[len(mark) :]
            try:
                return rest.decode(encoding)
            except UnicodeDecodeError:
                findings.error(0, f"begins like {called} and is not; save it as UTF-8")
                return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        findings.differs(
            data[: error.start].count(b"\n") + 1,
            f"byte {error.start} (0x{data[error.start]:02x}) is not UTF-8, so the file was read as Latin-1: "
            "what is beyond "
            "ASCII in commands and file names is UTF-8 from here on; compare it, or convert the file with iconv first",
        )
    return data.decode("latin-1")


def source_lines(text: str) -> list[str]:
    """The lines without their breaks; only LF ends a line, as for the programs that read such files."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines
