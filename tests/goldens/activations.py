"""Write activations.json: what is built with xIELU, an activation with two parameters of its own, in every FFN.

    python -m tests.goldens.activations [--check]

Of the odd configs of each family whose reading names the key of its activation (`ffn_activation`), the first with each
class that transformers exports, the others with the main one: [golden, section, key, {class: total}]. The same for each
section whose kind has such a key.
"""

import copy
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import transformers

from tests.goldens import make, oracle, store

HERE = Path(__file__).resolve().parent
TARGET = HERE / "activations.json"
FAMILIES = HERE.parents[1] / "paramcalc" / "families"
WORDS = ("hidden_act", "activation_function", "hidden_activation", "activation")


def keys() -> dict[str, str]:
    """The key of the activation by family or kind of tower."""
    entries = (json.loads(path.read_text(encoding="utf-8")) for path in sorted((FAMILIES / "schemas").rglob("*.json")))
    fixed = {name: entry.get("fixed", {}) for file in entries for name, entry in file.items()}
    return {name: facts["ffn_activation"] for name, facts in fixed.items() if "ffn_activation" in facts}


def variants(
    model_type: str, config: dict[str, Any], known: dict[str, str]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Section, key, and the config with xIELU there."""
    if key := known.get(model_type):
        yield "", key, config | {key: "xielu"}
    for name, section in config.items():
        for key in WORDS if isinstance(section, dict) and name.endswith("_config") else ():
            built = oracle.config_from(copy.deepcopy(config))
            part = getattr(built, name, None)
            if part is not None and isinstance(getattr(part, key, None), str) and known.get(part.model_type) == key:
                yield name, key, config | {name: section | {key: "xielu"}}


def totals(config: dict[str, Any], names: list[str]) -> dict[str, int]:
    """Unique parameters by class, of those that can be built."""
    found = {}
    for name in names:
        try:
            unique, _ = oracle.owned(oracle.build(copy.deepcopy(config) | {"architectures": [name]}))
        except Exception:
            continue
        if unique:
            found[name] = sum(parameter.numel() for parameter in unique.values())
    return found


def family(model_type: str, names: list[str], known: dict[str, str]) -> Iterator[tuple[str, str, str, dict[str, int]]]:
    """Golden, section, key, and the totals."""
    goldens = store.read(store.count_file(model_type))
    for golden in ("odd-1", "odd-2", "odd-3"):
        if golden not in goldens:
            return
        config = goldens[golden]["config"]
        first = golden == "odd-1"
        exported = [name for name in names if hasattr(transformers, name)] if first else config["architectures"]
        for section, key, changed in variants(model_type, config, known):
            if found := totals(changed, exported):
                yield golden, section, key, found


def text() -> str:
    """The file: one family a line."""
    classes = json.loads((FAMILIES / "classes.json").read_text(encoding="utf-8"))
    known = keys()
    made = {name: found for name, names in classes.items() if (found := list(family(name, names, known)))}
    return make.one_a_line(made)


if __name__ == "__main__":
    make.written(TARGET, text(), check="--check" in sys.argv)
