"""Write paramcalc/families/index.json: every family, its module, its class, and the goldens that verify it.

    python tests/index.py [--check]

Run it after adding a family or goldens. A count is `exact` only for families that have goldens here.
"""

import json
import pkgutil
import sys
from importlib import import_module
from pathlib import Path

import paramcalc.families
from paramcalc.families.registry import registered

GOLDENS = Path(__file__).parent / "goldens"
TARGET = Path(paramcalc.families.__file__).with_name("index.json")


def goldens(name: str) -> dict[str, object]:
    """How many goldens a family has, and what made them."""
    found = [json.loads(path.read_text()) for path in sorted((GOLDENS / name).glob("*.json"))]
    makers = sorted({golden.get("source") or f"transformers {golden['transformers']}" for golden in found})
    return {"goldens": len(found), "by": ", ".join(makers) or "nothing yet"}


def index() -> dict[str, dict[str, object]]:
    """The index, from the recipes themselves and the golden directory."""
    for module in pkgutil.iter_modules(paramcalc.families.__path__):
        import_module(f"paramcalc.families.{module.name}")
    entries: dict[str, dict[str, object]] = {"transformer": {"module": "own", "main_class": "Transformer"}}
    for name, family in registered().items():
        module = family.recipe.__module__.rpartition(".")[2]
        entries[name] = {"module": module, "main_class": family.main_class}
    return {name: entries[name] | goldens(name) for name in sorted(entries)}


def text() -> str:
    """The file: one family a line."""
    lines = [f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in index().items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(TARGET.read_text() != text())
    TARGET.write_text(text())
