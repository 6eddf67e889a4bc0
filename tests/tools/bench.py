"""Timings: `python -m tests.tools.bench`, with paramcalc installed. Prints medians; asserts nothing.

The command and the bare import of its libraries run in turn, so that a busy machine slows both; quote the ratio.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import paramcalc

BARE = [sys.executable, "-c", "import typer, rich.table, pydantic, yaml"]
COMMAND = [sys.executable, "-m", "paramcalc", "count", "--preset", "llama3-8b", "--json"]


def wall(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def microseconds(function: Callable[[], object], times: int = 300) -> float:
    function()
    samples = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples) * 1e6


def load_and_count(fields: dict[str, Any]) -> None:
    paramcalc.count(paramcalc.load(fields))


def main() -> None:
    wall(BARE), wall(COMMAND)
    pairs = [(wall(COMMAND), wall(BARE)) for _ in range(21)]
    command, bare = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(c / b for c, b in pairs)
    print(f"paramcalc count --preset llama3-8b --json   {command * 1e3:6.0f} ms")
    print(f"import typer, rich.table, pydantic, yaml    {bare * 1e3:6.0f} ms")
    print(f"ratio, median of {len(pairs)} pairs                  {ratio:6.2f}")
    print()
    for name, overrides in (
        ("llama3-8b", {}),
        ("llama3-8b", {"num_hidden_layers": 10}),
        ("llama3-8b", {"num_hidden_layers": 10_000}),
        ("mixtral-8x7b", {"num_local_experts": 8}),
        ("mixtral-8x7b", {"num_local_experts": 4096}),
    ):
        model = paramcalc.load(name, overrides=overrides)
        fields = dict(model.config)
        what = f"{name} {' '.join(f'{key}={value}' for key, value in overrides.items())}"
        counting = microseconds(partial(paramcalc.count, model))
        both = microseconds(partial(load_and_count, fields))
        print(f"{what:<42} count {counting:5.0f} us   load and count {both:5.0f} us")
    print()
    for name, step in (("tutorial-110m", 64), ("mixtral-8x7b", 128)):
        model, grid = paramcalc.load(name), {"depth": range(1, 101), "width": range(step, 101 * step, step)}
        seconds = microseconds(partial(paramcalc.scale, model, grid), times=3) / 1e6
        print(f"{name:<42} scale {seconds:5.1f} s for 10,000 points")


if __name__ == "__main__":
    main()
