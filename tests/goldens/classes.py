"""Write paramcalc/families/classes.json: the model classes that transformers has for each model_type.

    python -m tests.goldens.classes [--check]

A class that does not stand here cannot be built, and a count of it is approximate. Part of the routine for a new
release.
"""

import importlib
import importlib.util
import json
import sys
from pathlib import Path

from transformers import PreTrainedModel
from transformers.models.auto import configuration_auto, modeling_auto

TARGET = Path(__file__).parents[2] / "paramcalc" / "families" / "classes.json"
INDEX = TARGET.with_name("index.json")


def classes(model_type: str) -> list[str]:
    """The model classes of a type: those of its own modelling module or of the one whose
    config it borrows, and those that the auto classes map it to."""
    found: set[str] = set()
    for name, mapping in vars(modeling_auto).items():
        if name.endswith("_MAPPING_NAMES") and model_type in mapping:
            mapped = mapping[model_type]
            found |= set(mapped) if isinstance(mapped, (tuple, list)) else {mapped}
    package = configuration_auto.model_type_to_module_name(model_type)
    borrowed = configuration_auto.CONFIG_MAPPING[model_type].__module__.replace("configuration_", "modeling_")
    for module in (f"transformers.models.{package}.modeling_{package}", borrowed):
        if importlib.util.find_spec(module.rpartition(".")[0]) and importlib.util.find_spec(module):
            for name, value in vars(importlib.import_module(module)).items():
                if isinstance(value, type) and issubclass(value, PreTrainedModel) and value.__module__ == module:
                    found |= {name} if takes(value, model_type) else set()
    return sorted(name for name in found if not name.endswith(("PreTrainedModel", "Config")))


def takes(model: type[PreTrainedModel], model_type: str) -> bool:
    """Whether a class is built from configs of this type, or from a section of them."""
    config = configuration_auto.CONFIG_MAPPING[model_type]
    sections = [section for section in config.sub_configs.values() if isinstance(section, type)]
    wanted = model.config_class
    return wanted is None or issubclass(config, wanted) or wanted in sections


def text() -> str:
    """The file: one family a line, of those that paramcalc knows and transformers has."""
    known = [name for name in json.loads(INDEX.read_text()) if name in configuration_auto.CONFIG_MAPPING_NAMES]
    lines = [f" {json.dumps(name)}: {json.dumps(classes(name))}" for name in known]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    made = text()
    if "--check" in sys.argv:
        sys.exit(TARGET.read_text() != made)
    TARGET.write_text(made)
