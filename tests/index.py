"""Write what the package looks up at run time: the index of families, and the presets as JSON.

    python -m tests.index [--check]

Run it after adding a family, goldens or a preset. A count is `exact` only for families that have goldens here.
"""

import json
import pkgutil
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import yaml

import paramcalc.families
from paramcalc.families.registry import registered
from paramcalc.yaml_loader import StrictLoader

GOLDENS = Path(__file__).parent / "goldens"
PACKAGE = Path(paramcalc.__file__).parent
FAMILIES, PRESETS = PACKAGE / "families" / "index.json", PACKAGE / "presets.json"


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


def presets() -> dict[str, dict[str, object]]:
    """The presets as their YAML files have them."""
    files = sorted((PACKAGE.parent / "presets").glob("*.yaml"))
    return {path.stem: yaml.load(path.read_text(), StrictLoader) for path in files}


def text(entries: Mapping[str, object]) -> str:
    """One entry a line, so that a change is a line."""
    lines = [f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    made = {FAMILIES: text(index()), PRESETS: text(presets())}
    if "--check" in sys.argv:
        sys.exit(any(path.read_text() != content for path, content in made.items()))
    for path, content in made.items():
        path.write_text(content)
