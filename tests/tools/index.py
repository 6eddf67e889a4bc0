"""Write what the package looks up at run time: the index of families, the presets as JSON, the schemas in tidy form.

    python -m tests.tools.index [--check]

Run it after adding a family, goldens or a preset, or editing a schema. A count is `exact` only for families that
have goldens here.
"""

import contextlib
import json
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

import paramcalc
import paramcalc.families
from paramcalc.families.builders.towers import TOWER_RECIPES
from paramcalc.families.registry import registered
from paramcalc.sources.yaml_loader import StrictLoader
from paramcalc.tree.component import Component
from paramcalc.tree.containers import stacks
from tests.goldens import defaults, store
from tests.goldens.store import COUNT

PACKAGE = Path(paramcalc.__file__).parent
FAMILIES, TOWERS, PRESETS, GPUS = (
    PACKAGE / "families" / "index.json",
    PACKAGE / "families" / "towers.json",
    PACKAGE / "sources" / "presets.json",
    PACKAGE / "footprint" / "devices.json",
)
FOLDER = PACKAGE.parent / "presets"
DEVICES = FOLDER / "gpus.yaml"
COMPONENTS = "paramcalc.components."  # where mixers live; blocks of leaves are none


def goldens(name: str) -> dict[str, object]:
    """How many goldens a family has, and what made them."""
    found = [COUNT[case] for case in COUNT.families.get(name, ())]
    makers = sorted({golden.get("source") or f"transformers {golden['transformers']}" for golden in found})
    return {"goldens": len(found), "by": ", ".join(makers) or "nothing yet", "mixers": mixers(found)}


def mixers(found: list[dict[str, Any]]) -> str:
    """The kinds of attention and recurrence in the layers of a family's goldens, in the order they appear."""
    kinds: dict[str, None] = {}
    for golden in found:
        with contextlib.suppress(paramcalc.ParamcalcError):
            for stack in stacks(paramcalc.load(golden["config"]).tree):
                for run in stack.runs:
                    kinds |= dict.fromkeys(mixers_in(run.layer))
    return ", ".join(kinds)


def mixers_in(component: Component) -> Iterator[str]:
    """The names of the outermost mixers in a component: `latent attention` for LatentAttention."""
    if component.category in ("attention", "recurrent") and type(component).__module__.startswith(COMPONENTS):
        yield re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(component).__name__).lower()
        return
    for part in component.children():
        yield from mixers_in(part.component)


def import_recipes() -> None:
    """Import every module of recipes, which registers them."""
    for module in pkgutil.walk_packages(paramcalc.families.__path__, "paramcalc.families."):
        import_module(module.name)


def towers() -> dict[str, str]:
    """The module of each kind of tower, sorted."""
    return {kind: module_of(TOWER_RECIPES[kind]) for kind in sorted(TOWER_RECIPES)}


def module_of(recipe: Callable[..., object]) -> str:
    """Where a recipe stands, from the folder of families on."""
    return recipe.__module__.removeprefix("paramcalc.families.")


def index() -> dict[str, dict[str, object]]:
    """The index, from the recipes themselves and the golden directory."""
    entries: dict[str, dict[str, object]] = {"transformer": {"module": "native.model", "main_class": "Transformer"}}
    for name, family in registered().items():
        entries[name] = {"module": module_of(family.recipe), "main_class": family.main_class}
    blocks = list(store.read(store.HERE / "torch_blocks.jsonl").values())
    own = {"goldens": len(blocks), "by": f"{blocks[0]['class']}, torch {blocks[0]['torch']}, and by hand"}
    verified = {name: goldens(name) for name in entries} | {"transformer": own | {"mixers": "attention"}}
    return {name: entries[name] | verified[name] for name in sorted(entries)}


def presets() -> dict[str, dict[str, object]]:
    """The presets as their YAML files have them."""
    files = sorted(path for path in FOLDER.glob("*.yaml") if path != DEVICES)
    return {path.stem: yaml.load(path.read_text(), StrictLoader) for path in files}


def gpus() -> dict[str, dict[str, object]]:
    """The devices as their YAML file has them."""
    return dict(yaml.load(DEVICES.read_text(), StrictLoader))


def text(entries: Mapping[str, object]) -> str:
    """One entry a line, so that a change is a line."""
    lines = [f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def files() -> dict[Path, str]:
    """Every generated file with the text that it should have."""
    tidy = {path: defaults.schema_text(json.loads(path.read_text())) for path in defaults.SCHEMAS.rglob("*.json")}
    tidy |= {path: defaults.defaults_text(json.loads(path.read_text())) for path in defaults.DEFAULTS.rglob("*.json")}
    import_recipes()
    return tidy | {FAMILIES: text(index()), TOWERS: text(towers()), PRESETS: text(presets()), GPUS: text(gpus())}


def main(argv: list[str]) -> int:
    """Write what differs, or name it to `--check`; 1 if there is such a file or the recipes are incomplete."""
    try:
        outdated = {path: made for path, made in files().items() if path.read_text(encoding="utf-8") != made}
    except paramcalc.ParamcalcError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if "--check" in argv:
        for path in outdated:
            print(f"{path.relative_to(PACKAGE.parent)} is not up to date: python -m tests.tools.index", file=sys.stderr)
        return int(bool(outdated))
    for path, made in outdated.items():
        path.write_text(made, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
