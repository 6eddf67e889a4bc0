"""Standard output and standard error, which may be closed, full, narrow in their encoding, or read by nobody."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from typing import TextIO


def writable(stream: TextIO | None) -> TextIO:
    """A standard stream that accepts any text: discarded if it is closed, escaped where its encoding is narrow."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


def write_diagnostic(stream: TextIO, text: str) -> None:
    """Best-effort write of a diagnostic; failures are ignored."""
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        discard(stream)


def discard(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that the interpreter reports no error at exit."""
    with suppress(OSError):  # a stream without a descriptor is not flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def colored() -> bool:
    """True if a terminal may receive colours (no-color.org)."""
    return not os.environ.get("NO_COLOR")
