"""Run commands of an installed wheel in an empty directory and check their answers: `check_wheel.py PARAMCALC`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def answer(*arguments: str) -> Any:
    """The JSON that a command prints."""
    done = subprocess.run([sys.argv[1], *arguments], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main() -> None:
    assert not list(Path.cwd().iterdir()), "the directory must be empty, so that nothing but the wheel is imported"
    count = answer("count", "--preset", "llama3-8b", "--json")
    assert count["parameters"]["total"] == 8_030_261_248
    assert count["model"]["status"] == "exact"
    presets = {preset["name"]: preset["total"] for preset in answer("presets", "--json")}
    assert presets["gpt2"] == 124_439_808
    families = {family["name"] for family in answer("families", "--json")}
    assert {"transformer", "llama", "deepseek_v3", "t5", "qwen2_5_vl"} <= families
    assert answer("schema", "count")["title"] == "CountReport"
    memory = answer("memory", "llama3-8b", "--context", "8192", "--json")
    assert memory["weights"]["bytes"] == 2 * 8_030_261_248
    assert memory["kv_cache"]["bytes"] == 8192 * 32 * 2 * 8 * 128 * 2
    sweep = answer("scale", "llama3-8b", "--depth", "16,32", "--json")
    assert [row["parameters"]["total"] for row in sweep["rows"]] == [4_540_469_248, 8_030_261_248]


if __name__ == "__main__":
    main()
