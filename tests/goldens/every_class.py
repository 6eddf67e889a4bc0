"""Write every_class.json: what each class of each family has in all, built from the config of the family's odd-1.

    python -m tests.goldens.every_class [--check]

The classes are those of classes.json that transformers exports; what cannot be built of that config is left out.
"""

import copy
import json
import sys
from pathlib import Path
from typing import Any

import transformers

from tests.goldens import make, oracle, store

HERE = Path(__file__).resolve().parent
TARGET = HERE / "every_class.json"
CLASSES = HERE.parents[1] / "paramcalc" / "families" / "classes.json"


def totals(model_type: str, names: list[str]) -> dict[str, int]:
    """Unique parameters by class, of those that can be built."""
    golden, found = store.read(store.count_file(model_type)).get("odd-1"), dict[str, int]()
    for name in names if golden else ():
        assert golden is not None
        fields: dict[str, Any] = copy.deepcopy(golden["config"]) | {"architectures": [name]}
        if not hasattr(transformers, name):
            continue
        try:
            unique, _ = oracle.owned(oracle.build(fields))
        except Exception:  # a base of other classes, a tower, or a class for other values of some flag
            continue
        if unique:
            found[name] = sum(parameter.numel() for parameter in unique.values())
    return found


def text() -> str:
    """The file: one family a line."""
    classes = json.loads(CLASSES.read_text(encoding="utf-8"))
    made = {name: found for name, names in classes.items() if (found := totals(name, names))}
    return make.one_a_line(made)


if __name__ == "__main__":
    make.written(TARGET, text(), check="--check" in sys.argv)
