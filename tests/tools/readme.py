"""Write what README.md and docs/*.md show: the output of each command, and the tables that commands print.

    python -m tests.tools.readme

`test_readme.py` compares; this writes. Each page is one shell session in an empty directory, from top to bottom:

- `$ paramcalc ...` in a console block is run in this process; a pipe behind it (`| jq ...`) is run by `sh`;
- `$ cat FILE` prints a file that an earlier command wrote; else the block defines the file for the commands below;
- `$ echo $?` prints the exit code of the command before it;
- a table between `<!-- $ paramcalc ... -->` and `<!-- end -->` is the output of that command.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from paramcalc.cli import main
from tests.conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ ([^\n]*)\n(.*?)(?=^\$ |\Z)", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"(<!-- \$ (paramcalc [^\n]*) -->\n).*?(<!-- end -->)", re.DOTALL)


class Session:
    """The commands of one page, run in the current directory."""

    def __init__(self) -> None:
        self.code = 0

    def run(self, command: str, shown: str) -> str:
        """The output of one command, errors first where a pipe takes the rest."""
        program, _, rest = command.partition(" ")
        if command == "echo $?":
            return f"{self.code}\n"
        if program == "cat":
            path = Path(rest)
            if not path.exists():
                path.write_text(shown, encoding="utf-8")
            return path.read_text(encoding="utf-8")
        command, _, pipe = command.partition(" | ")
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err if pipe else out):
            self.code = main(shlex.split(command)[1:])
        return err.getvalue() + (self.piped(pipe, out.getvalue()) if pipe else out.getvalue())

    def piped(self, pipe: str, text: str) -> str:
        """What the rest of a pipe makes of a command's output."""
        done = subprocess.run(["sh", "-c", pipe], input=text, capture_output=True, text=True, encoding="utf-8")
        self.code = done.returncode
        return done.stdout + done.stderr


def missing(command: str) -> list[str]:
    """The programs behind pipes that this machine does not have."""
    programs = [shlex.split(part)[0] for part in command.split(" | ")[1:]]
    return [name for name in (["sh", *programs] if programs else []) if not shutil.which(name)]


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Every command of a page with the output that the page shows."""
    for block in BLOCK.findall(text):
        yield from COMMAND.findall(block)


def table(command: str) -> str:
    """A table that a command prints, between the blank lines that Markdown needs around it."""
    return f"\n{Session().run(command, '')}\n"


def written(text: str) -> str:
    """A page with everything brought up to date. Files are written into the current directory."""
    session = Session()

    def line(match: re.Match[str]) -> str:
        return f"$ {match[1]}\n{session.run(match[1], match[2])}"

    text = BLOCK.sub(lambda m: f"```console\n{COMMAND.sub(line, m[1])}```", text)
    return TABLE.sub(lambda m: m[1] + table(m[2]) + m[3], text)


if __name__ == "__main__":
    for page in PAGES:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
            os.chdir(ROOT)
