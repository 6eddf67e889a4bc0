"""Write what README.md shows: the output of every `$ paramcalc` line, and the table of families.

    python -m tests.readme

`test_readme.py` compares; this writes.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex

from paramcalc.cli import main
from paramcalc.families.registry import index
from tests.conftest import ROOT

README = ROOT / "README.md"
BLOCK = re.compile(r"^```console\n\$ (paramcalc [^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FAMILIES = re.compile(r"(<!-- families:[^\n]*-->\n).*?(<!-- /families -->)", re.DOTALL)


def output(command: str) -> str:
    """What a command prints, errors too."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        main(shlex.split(command)[1:])
    return out.getvalue()


def families() -> str:
    """The table of verified families."""
    lines = ["| family | reference class | mixers | goldens | verified by |", "|---|---|---|---:|---|"]
    for name, entry in index().items():
        lines.append(f"| {name} | {entry.main_class} | {entry.mixers} | {entry.goldens} | {entry.by} |")
    summary = f"<summary>{len(index())} families, their reference classes and how they were verified</summary>"
    return f"<details>{summary}\n\n" + "\n".join(lines) + "\n\n</details>\n"


def written(text: str) -> str:
    """README with everything that is made brought up to date."""
    text = BLOCK.sub(lambda m: f"```console\n$ {m[1]}\n{output(m[1])}```", text)
    return FAMILIES.sub(lambda m: m[1] + families() + m[2], text)


if __name__ == "__main__":
    README.write_text(written(README.read_text()))
