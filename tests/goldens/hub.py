"""Write the goldens of models that live on the Hub alone: counted by hand, and checked against what is published.

    python -m tests.goldens.hub            # write all
    python -m tests.goldens.hub --check    # write nothing; exit code 1 if anything differs

The derivations are the files in hub/; README.md beside this file says how they read. Needs PyYAML alone.
"""

import argparse
import ast
import operator
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from tests.goldens import store

HUB = Path(__file__).resolve().parent / "hub"

Entry = Mapping[str, Any]
Sizes = Mapping[str, int]
Formulas = Mapping[str, str | int]
Part = tuple[int, dict[str, int]]  # so many layers, each with these parameters by category

DECODER = {
    "kv": "h",
    "d_h": "d // h",
    "q_bias": "0",  # and on keys and values
    "out_bias": "0",
    "gated": "1",
    "up_bias": "0",  # and on the gate
    "down_bias": "0",
    "norm_size": "1",  # 2 for a LayerNorm's scale and bias
    "norms": "2",  # in each layer
    "embed_norm": "0",
    "final_norm": "1",
    "tied": "0",
    "headless": "0",
    "head_bias": "0",
    "attn": "2*d*h*d_h + 2*d*kv*d_h + q_bias*(h + 2*kv)*d_h + out_bias*d",
    "ffn": "(2 + gated)*d*d_ff + up_bias*(1 + gated)*d_ff + down_bias*d",
    "head": "(1 - headless)*((1 - tied)*V*d + head_bias*V)",
}
"""A decoder of equal layers. An entry states V, d, L, h and d_ff, and numbers or formulas for the names that differ."""
AROUND = {"embedding": "V*d", "head": "head", "norm": "norm_size*d*(final_norm + embed_norm)"}
LAYER = {"attention": "attn", "ffn": "ffn", "norm": "norms*norm_size*d"}

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}


def value(formula: str | int, sizes: Sizes) -> int:
    """What a formula of integers, names and + - * // comes to. Raises ValueError for anything else."""

    def at(node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name) if name in sizes:
                return sizes[name]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return int(OPERATORS[type(op)](at(left), at(right)))
        raise ValueError(f"{formula}: {ast.unparse(node)} is not understood")

    return at(ast.parse(str(formula), mode="eval").body)


def named(formulas: Formulas) -> dict[str, int]:
    """The values of named formulas, each of which may use those before it."""
    sizes: dict[str, int] = {}
    for name, formula in formulas.items():
        sizes[name] = value(formula, sizes)
    return sizes


def in_order(formulas: Formulas) -> dict[str, str | int]:
    """The same formulas, each after those that it uses. Raises ValueError where one needs itself."""
    used = {
        name: {node.id for node in ast.walk(ast.parse(str(formula), mode="eval")) if isinstance(node, ast.Name)}
        for name, formula in formulas.items()
    }
    graph = {name: names & formulas.keys() for name, names in used.items()}
    return {name: formulas[name] for name in TopologicalSorter(graph).static_order()}


def merged(runs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """[repeat, total] runs, neighbours with equal totals joined."""
    return [[sum(n for n, _ in group), total] for total, group in groupby(runs, key=lambda run: run[1])]


def parts(entry: Entry) -> tuple[dict[str, int], list[Part], Sizes]:
    """What is around the layers, the layers, and the sizes of an entry."""
    if "decoder" in entry:
        sizes = named(in_order(DECODER | entry["decoder"]))
        around: Any = AROUND
        rows: Any = [[sizes["L"], LAYER]]
    else:
        sizes, around, rows = named(entry.get("where", {})), entry["around"], entry["layers"]
    layers = [(n, {kind: value(formula, sizes) for kind, formula in row.items()}) for n, row in rows]
    return {kind: value(formula, sizes) for kind, formula in around.items()}, layers, sizes


def counted(entry: Entry) -> dict[str, Any]:
    """The figures of a golden. Raises ValueError where they do not come to the published total."""
    around, layers, sizes = parts(entry)
    categories = Counter(around)
    for repeat, row in layers:
        categories.update({kind: repeat * size for kind, size in row.items()})
    total = sum(categories.values())
    if total != entry.get("total", total):
        raise ValueError(f"the parts come to {total:,}, published are {entry['total']:,}")
    tied = entry.get("tied") or (sizes.get("tied") and not sizes["headless"])
    stacks = {"decoder": merged((n, sum(row.values())) for n, row in layers)}
    if "vision" in entry:
        stacks["vision"] = [[n, value(formula, sizes)] for n, formula in entry["vision"]]
    return {
        "total": total,
        "active": total - value(entry.get("idle", 0), sizes),
        "buffers": value(entry.get("buffers", 0), sizes),
        "tied": [["lm_head.weight", "embed_tokens.weight"]] if tied else [],
        "layers": stacks,
        "categories": {kind: size for kind, size in sorted(categories.items()) if size},
    }


def golden(name: str, entry: Entry) -> dict[str, Any]:
    """The record of an entry."""
    config = {"model_type": name.partition("/")[0], "architectures": [entry["class"]], **entry["config"]}
    about = {key: entry[key] for key in ("note", "approximate") if key in entry}
    record = {"kind": entry.get("kind", "published"), "source": entry["source"], **about}
    record |= {"class": entry["class"], "config": config}
    if "same_as" not in entry:
        return record | counted(entry)
    family, _, case = entry["same_as"].partition("/")
    other = store.read(store.count_file(family))[case]
    keys = ("total", "active", "buffers", "tied", "layers", "categories")
    return record | {key: other[key] for key in keys}


def checked(name: str, entry: Entry) -> dict[str, Any]:
    """The record. Exits with the entry's name where its derivation does not hold."""
    try:
        return golden(name, entry)
    except (ValueError, KeyError) as error:
        raise SystemExit(f"{name}: {error}") from error


def goldens() -> dict[str, dict[str, store.Record]]:
    """The records of each family by id."""
    found: dict[str, dict[str, store.Record]] = {}
    for path in sorted(HUB.glob("*.yaml")):
        for name, entry in yaml.safe_load(path.read_text(encoding="utf-8")).items():
            family, _, case = name.partition("/")
            found.setdefault(family, {})[case] = checked(name, entry)
    return found


def main(argv: list[str] | None = None) -> int:
    """Write or compare; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, exit code 1 if anything differs")
    check, differs = parser.parse_args(argv).check, False
    for family, made in goldens().items():
        old = store.read(store.count_file(family))
        changed = store.changed(old, made)
        for name in changed:
            print(f"{'differs' if check else 'written'}  {family}/{name}")
        if changed and not check:
            store.write(store.count_file(family), old | made)
        differs = differs or bool(changed)
    return int(check and differs)


if __name__ == "__main__":
    sys.exit(main())
