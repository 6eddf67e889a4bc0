"""A progress bar on standard error for work that takes longer than a second, on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 1.0  # seconds before anything is shown
OFTEN = 0.1  # seconds between two updates


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A context manager that yields a callback with two arguments: the finished items, and all items."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _done, _many: None
        return
    due, shown = time.monotonic() + PATIENCE, _Bar(what)

    def each(done: int, many: int) -> None:
        nonlocal due
        if (now := time.monotonic()) > due:
            shown.at(done, many)
            due = now + OFTEN

    try:
        yield each
    finally:
        shown.stop()


class _Bar:
    """A progress bar of rich, created at the first update."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.stop: Callable[[], None] = lambda: None
        self._update: Callable[[int], None] | None = None

    def at(self, done: int, many: int) -> None:
        if self._update is None:
            from rich.console import Console
            from rich.progress import Progress

            bar = Progress(console=Console(stderr=True), transient=True)
            task = bar.add_task(self.what, total=many)
            bar.start()
            self.stop = bar.stop
            self._update = lambda completed: bar.update(task, completed=completed)
        self._update(done)
