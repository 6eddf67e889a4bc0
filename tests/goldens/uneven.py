"""Write uneven.json: what the classes build where the heads do not divide the width, and no head_dim is stated.

    python -m tests.goldens.uneven [--check]

The config of each family's odd-1 without its head_dim and with 3 or 7 heads of their own keys and values, where these
do not divide the width, in the whole and in each section that has heads: the section, what is set there, and the total,
where the class builds that.
"""

import copy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.goldens import make, oracle, store

HERE = Path(__file__).resolve().parent
TARGET = HERE / "uneven.json"
WIDTHS = ("hidden_size", "d_model", "n_embd", "dim")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv")


def uneven(fields: dict[str, Any], heads: int) -> dict[str, int]:
    """What gives the fields that many heads; nothing where they have none or they divide the width."""
    width = next((fields[key] for key in WIDTHS if isinstance(fields.get(key), int)), None)
    key = next((key for key in HEADS if isinstance(fields.get(key), int)), None)
    if width is None or key is None or width % heads == 0:
        return {}
    return dict.fromkeys([key, *(name for name in KV_HEADS if isinstance(fields.get(name), int))], heads)


def changed(fields: dict[str, Any], changes: dict[str, int]) -> dict[str, Any]:
    """The fields with the changes, and without the width of a head."""
    return {key: value for key, value in fields.items() if key != "head_dim"} | changes


def totals(config: dict[str, Any]) -> Iterator[tuple[str, dict[str, int], int]]:
    """Each variant of a config: section, what is changed there, unique parameters."""
    sections = {"": config, **{name: section for name, section in config.items() if isinstance(section, dict)}}
    for name, fields in sections.items():
        for heads in (3, 7):
            if changes := uneven(fields, heads):
                part = changed(fields, changes)
                if built := total(config | {name: part} if name else part):
                    yield name, changes, built


def total(config: dict[str, Any]) -> int:
    """Unique parameters, 0 where the class refuses the config."""
    try:
        unique, _ = oracle.owned(oracle.build(copy.deepcopy(config)))
    except Exception:
        return 0
    return sum(parameter.numel() for parameter in unique.values())


def text() -> str:
    """The file: one family a line."""
    files = {path.stem: store.read(path) for path in sorted(store.COUNT_FOLDER.glob("*.jsonl"))}
    configs = {name: records["odd-1"]["config"] for name, records in files.items() if "odd-1" in records}
    made = {name: found for name, config in configs.items() if (found := list(totals(config)))}
    return make.one_a_line(made)


if __name__ == "__main__":
    make.written(TARGET, text(), check="--check" in sys.argv)
