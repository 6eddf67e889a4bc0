"""Layer patterns in one line: `3 x [attention + ffn]  58 x [attention + 256 experts, 8 active + 1 shared]`."""

from __future__ import annotations

from collections.abc import Sequence

from paramcalc.reports.count import LayerRun

Item = tuple[int, str]
LONGEST_GROUP = 8  # runs that are shown; a longer pattern is truncated


def patterns(layers: Sequence[LayerRun]) -> list[str]:
    """One line per stack, with the stack's name if there are several."""
    stacks = list(dict.fromkeys(layer.stack for layer in layers))
    lines = []
    for stack in stacks:
        text = pattern_text([(run.repeat, run.kind or "layer") for run in layers if run.stack == stack])
        lines.append(f"{stack}: {text}" if len(stacks) > 1 or stack != "decoder" else text)
    return lines


def pattern_text(items: Sequence[Item]) -> str:
    """The runs of one stack; a repeated group of runs is written once, with its number."""
    merged: list[Item] = []
    for repeat, kind in items:
        if merged and merged[-1][1] == kind:
            repeat += merged.pop()[0]
        merged.append((repeat, kind))
    period, times = _period(merged)
    if times > 1:
        rest = merged[period * times :]
        head = f"{times} x ({_written(merged[:period])})"
        return f"{head}  {_written(rest)}" if rest else head
    return _written(merged)


def _period(items: Sequence[Item]) -> tuple[int, int]:
    """The length of the shortest leading group that repeats and covers most items, and its number of repeats."""
    for period in range(2, len(items) // 2 + 1):
        times = 1
        while items[times * period : (times + 1) * period] == items[:period]:
            times += 1
        if times > 1 and len(items) - period * times < max(period, 2):
            return period, times
    return len(items), 1


def _written(items: Sequence[Item]) -> str:
    alone = len(items) == 1
    shown = "  ".join(
        f"{repeat} x [{kind}]" if repeat > 1 or alone else f"[{kind}]" for repeat, kind in items[:LONGEST_GROUP]
    )
    return shown if len(items) <= LONGEST_GROUP else f"{shown}  and {len(items) - LONGEST_GROUP} more runs"
