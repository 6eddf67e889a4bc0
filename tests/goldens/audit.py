"""Show which config keys change a shape, and whether an odd config sets them.

    python -m tests.goldens.audit llama gpt2      # or --all

Takes every key that the config class declares or that the model class reads while it is built
(some are not declared), changes one at a time and counts again. Prints the keys that change the
total; the ones that no entry of odd.yaml sets are marked, and make the exit code 1. Run it when a
family is new and when a new release of `transformers` comes out; all families take a few minutes.
It does not see lists, nested configs, and what only two keys together change.
"""

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from typing import Any

import torch
import transformers

from tests.goldens import oracle
from tests.goldens.make import all_specs

WORDS: dict[str, list[Any]] = {
    "feed_forward_proj": ["gated-gelu", "relu"],
    "mamba_dt_rank": [5],
    "time_step_rank": [5],
}
"""Other values for keys whose value is a word."""

IRRELEVANT = {
    "architectures",
    "id2label",
    "num_labels",
    "problem_type",
    "dtype",
    "torch_dtype",
    "transformers_version",
}


def candidates(fields: dict[str, Any]) -> list[str]:
    """The keys that the config class declares, and those that the model class reads from it."""
    config = oracle.config_from(fields)
    config_class = type(config)
    read = {field.name for field in dataclasses.fields(config)}

    class Spy(config_class):  # type: ignore[misc, valid-type]
        """The same config, with a memory."""

        def __getattribute__(self, key: str) -> Any:
            if not key.startswith("_"):
                read.add(key)
            return super().__getattribute__(key)

    config.__class__ = Spy
    cls = getattr(transformers, oracle.class_name(fields))
    with torch.device("meta"):
        cls._from_config(config, dtype=torch.float32)
    config.__class__ = config_class
    return sorted(key for key in read - IRRELEVANT if not callable(getattr(config, key, None)))


def other_values(key: str, value: Any) -> list[Any]:
    """What to try instead of this value."""
    if key in WORDS:
        return WORDS[key]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value * 2, value + 1, value // 2, 1]
    return [16, 1, True] if value is None else []


def changing(fields: dict[str, Any]) -> Iterator[str]:
    """The keys of this config that change the total."""
    config = oracle.config_from(fields)
    total = oracle.measure(fields)["total"]
    for key in candidates(fields):
        for value in other_values(key, getattr(config, key, None)):
            try:
                changed = oracle.measure({**fields, key: value})["total"] != total
            except Exception:
                continue
            if changed:
                yield key
                break


def audit(model_type: str, specs: dict[str, Any]) -> list[str]:
    """Print one line for a family; return the keys that no odd config sets."""
    names = oracle.config_from({"model_type": model_type}).attribute_map
    covered = {names.get(key, key) for fields in specs["odd"] for key in fields}
    found = {names.get(key, key) for fields in specs["odd"] for key in changing({"model_type": model_type, **fields})}
    missing = sorted(found - covered)
    marked = [key if key in covered else f"{key} (NOT SET)" for key in sorted(found)]
    print(f"{model_type}: {', '.join(marked)}")
    return missing


def main(argv: list[str] | None = None) -> int:
    """Audit families."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="FAMILY")
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args(argv)
    specs = all_specs()
    missing = [key for name in (specs if args.all else args.names) for key in audit(name, specs[name])]
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
