"""Streams that fail or cannot show a character, and terminals without colour."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from tests.cli.forking import Forking

FULL = Path("/dev/full")
COMMAND = [sys.executable, "-m", "paramcalc"]


NOTHING = "no preset 'nothing'"


@pytest.fixture(scope="module")
def forking() -> Iterator[Forking]:
    with Forking() as process:
        yield process


@pytest.mark.skipif(not FULL.exists(), reason="needs a full device")
@pytest.mark.parametrize(
    ("argv", "stdout", "stderr", "code"),
    [
        (["count", "nothing"], None, FULL, 2),
        (["count", "nothing", "--json"], FULL, None, 2),
        (["count", "nothing", "--json"], FULL, FULL, 2),
        (["count", "gpt2"], FULL, FULL, 2),
        (["nothing"], None, FULL, 2),
        (["count", "gpt2", "--strict", "--set", "architectures=GPT2ForSomethingElse"], None, FULL, 1),
        (["count", "gpt2", "--set", "architectures=GPT2ForSomethingElse"], None, FULL, 0),
    ],
    ids=str,
)
def test_streams_that_fail_do_not_change_the_exit_code(
    forking: Forking, argv: list[str], stdout: Path | None, stderr: Path | None, code: int
) -> None:
    streams = (os.devnull, str(stdout or os.devnull), str(stderr or os.devnull))

    assert forking.run(*argv, streams=streams) == code


def test_a_failure_that_nobody_reads_keeps_its_exit_code() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as gone:
        done = subprocess.run(
            [*COMMAND, "count", "nothing", "--json"], stdout=gone, stderr=subprocess.PIPE, check=False
        )

    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {NOTHING}\n".encode())


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("argv", [[], ["--help"], ["count", "--help"], ["presets", "-h"], ["count", "gpt2"]], ids=str)
@pytest.mark.parametrize("no_color", ["1", ""], ids=["NO_COLOR=1", "NO_COLOR="])
def test_no_color_is_respected_on_a_terminal(forking: Forking, argv: list[str], no_color: str) -> None:
    written = on_terminal(forking, argv, no_color)

    assert "Usage" in written or "124,439,808" in written
    assert ("\x1b" in written) is (no_color == "")


def on_terminal(forking: Forking, argv: list[str], no_color: str) -> str:
    """What a command writes to a terminal of 80 columns."""
    import pty

    ours, theirs = pty.openpty()
    written: list[bytes] = []
    reader = Thread(target=read_all, args=(ours, written))
    reader.start()  # the command waits where nobody reads
    name = os.ttyname(theirs)
    forking.run(*argv, streams=(name, name, name), NO_COLOR=no_color, TERM="xterm-256color", COLUMNS="80")
    os.close(theirs)
    reader.join()
    os.close(ours)
    return b"".join(written).decode()


def read_all(descriptor: int, into: list[bytes]) -> None:
    """Read until the other end is closed, which Linux says by an error."""
    with contextlib.suppress(OSError):
        while block := os.read(descriptor, 65536):
            into.append(block)


def test_a_closed_pipe_is_no_accident() -> None:
    command = f"{sys.executable} -m paramcalc presets --json | head -c 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)

    assert done.stdout == "[0\n"
    assert done.stderr == ""


@pytest.mark.skipif(not FULL.exists(), reason="needs a full device")
@pytest.mark.parametrize("arguments", [["count", "gpt2"], ["count", "gpt2", "--json"], ["--help"], ["schema"]])
def test_a_full_device_ends_in_one_line(forking: Forking, tmp_path: Path, arguments: list[str]) -> None:
    stderr = tmp_path / "stderr"
    stderr.touch()

    assert forking.run(*arguments, streams=(os.devnull, str(FULL), str(stderr))) == 2
    assert stderr.read_text() == "error: cannot write standard output: No space left on device\n"


def test_a_narrow_encoding_escapes_what_it_lacks() -> None:
    done = subprocess.run(
        [*COMMAND, "count", "gpt2"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert done.returncode == 0
    assert b"124,439,808" in done.stdout
