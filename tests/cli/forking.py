"""A process that has imported the command line and forks for each command: `python -m tests.cli.forking`.

Each line that it reads is a JSON object: the arguments, and the files that the three standard streams are. It answers
with the exit code. A child ends as the command itself does, flushing its streams, but need not import anything.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from types import TracebackType


class Forking:
    """The process, started and ended with a `with` block."""

    def __enter__(self) -> Forking:
        command = [sys.executable, "-m", "tests.cli.forking"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def run(self, *argv: str, streams: tuple[str, str, str], **environment: str) -> int:
        """The exit code of a command whose standard streams are these files."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps({"argv": argv, "streams": streams, "environment": environment}) + "\n")
        stdin.flush()
        return int(stdout.readline())


def serve() -> None:
    """Fork for each line; returns in a child that has a command to run, and at the end of the lines."""
    answers = os.dup(1)
    while line := sys.stdin.readline():
        asked = json.loads(line)
        child = os.fork()
        if not child:
            for number, path in enumerate(asked["streams"]):
                os.dup2(os.open(path, os.O_WRONLY if number else os.O_RDONLY), number)
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 (as long as the process)
            sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115 (as long as the process)
            os.environ.update(asked["environment"])
            sys.argv = ["paramcalc", *asked["argv"]]
            return
        _, status = os.waitpid(child, 0)
        os.write(answers, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    sys.exit()


if __name__ == "__main__":
    from paramcalc.cli import main, run

    with contextlib.redirect_stdout(io.StringIO()):  # once, so that no child need import what these need
        main(["count", "gpt2"]), main(["count", "--help"])
    serve()
    run()
