"""Write the golden files: what `transformers` builds for a config, and never what paramcalc says.

    python -m tests.goldens.make llama gpt2       # these families
    python -m tests.goldens.make --all            # every family of odd.yaml, and torch_blocks
    python -m tests.goldens.make --all --check    # write nothing; exit code 1 if anything differs

Needs torch and transformers (CPU is enough). README.md beside this file describes the format.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.goldens import oracle, store
from tests.goldens.torch_blocks import torch_blocks

HERE = Path(__file__).resolve().parent
PRESETS = HERE.parents[1] / "presets"
TORCH_BLOCKS = "torch_blocks"

NOT_CONFIG = ("source", "published")
"""Keys of a preset that are about the model and not part of its config.json."""

TASK_HEADS = {
    "base": "MODEL_MAPPING",
    "seqcls": "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING",
    "tokcls": "MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING",
    "qa": "MODEL_FOR_QUESTION_ANSWERING_MAPPING",
}
"""Head cases and the auto mapping that knows their class, if there is one."""

SECOND_TASKS = {
    "mlm": "MODEL_FOR_MASKED_LM_MAPPING",
    "seq2seq": "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING",
    "multimodal": "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING",
    "anymodal": "MODEL_FOR_MULTIMODAL_LM_MAPPING",
}
"""Other ways to use the whole model: every odd config is built with them too."""

FIRST_FAMILIES = ("bart", "bert", "gemma3", "gemma3_text", "roberta")
"""Families whose `heads` in odd.yaml say it all."""

ENCODER_HEADS = ("tokcls", "qa")
"""Heads that are made for encoder families only."""

LABELS: dict[str, dict[str, Any]] = {
    "seqcls": {"num_labels": 7},
    "tokcls": {"id2label": {str(index): f"LABEL_{index}" for index in range(5)}},
}
"""How a classifier's width is given: either way is in use. QA keeps the default of two."""


class Case(NamedTuple):
    """One golden to be: its id, its kind, what paramcalc will be given."""

    name: str
    kind: str
    config: dict[str, Any]


def read_yaml(path: Path) -> Any:
    """The contents of a YAML file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def all_specs() -> dict[str, Any]:
    """What odd.yaml and the files of odd/ say, by model_type. What odd/hand-* adds comes after what was drawn."""
    specs: dict[str, Any] = {}
    for path in (HERE / "odd.yaml", *sorted((HERE / "odd").glob("*.yaml"))):
        for name, entry in (read_yaml(path) or {}).items():
            old = specs.setdefault(name, {"odd": []})
            specs[name] = {**old, **entry, "odd": [*old["odd"], *entry.get("odd", ())]}
    return {name: entry for name, entry in specs.items() if entry["odd"]}


def published_cases(model_type: str) -> Iterator[Case]:
    """One case for every preset of this family."""
    for path in sorted(PRESETS.glob("*.yaml")):  # gpus.yaml among them, which has no model_type
        fields = read_yaml(path)
        if isinstance(fields, dict) and fields.get("model_type") == model_type:
            config = {key: value for key, value in fields.items() if key not in NOT_CONFIG}
            yield Case(path.stem, "published", config)


def head_cases(model_type: str, odd: list[dict[str, Any]]) -> Iterator[Case]:
    """Other classes than the main one, each with an odd config."""
    main = oracle.main_class(model_type)
    for index, (name, task) in enumerate(TASK_HEADS.items()):
        if name in ENCODER_HEADS and model_type not in oracle.ENCODER_ONLY:
            continue
        class_name = oracle.task_class(model_type, task)
        if class_name is not None and class_name != main:
            fields = {**odd[index % 3], "architectures": [class_name], **LABELS.get(name, {})}
            yield Case(name, "head", fields)
    seen = {main}
    for name, task in SECOND_TASKS.items():
        class_name = oracle.task_class(model_type, task)
        if class_name is None or class_name in seen or model_type in FIRST_FAMILIES:
            continue
        seen.add(class_name)
        for number, fields in enumerate(odd, start=1):
            yield Case(f"{name}-{number}", "head", {**fields, "architectures": [class_name]})


def cases(model_type: str, specs: dict[str, Any]) -> Iterator[Case]:
    """All goldens of one family. `specs` is its entry in odd.yaml or odd/."""
    yield Case("default", "default", {"model_type": model_type, **specs.get("default", {})})
    yield from published_cases(model_type)
    common = {"model_type": model_type, "architectures": [oracle.main_class(model_type)]}
    odd = [{**common, **fields} for fields in specs["odd"]]
    for number, fields in enumerate(odd, start=1):
        yield Case(f"odd-{number}", "odd", fields)
    yield from head_cases(model_type, odd)
    for name, fields in specs.get("heads", {}).items():
        yield Case(name, "head", {**common, **fields})
    if specs.get("full", True):
        yield Case("full", "full", {**oracle.full_fields(odd[0]), **common})


def golden(case: Case) -> dict[str, Any]:
    """The record of a case."""
    record = oracle.measure(case.config)
    return {
        "kind": case.kind,
        **{key: record.pop(key) for key in ("class", "transformers", "torch")},
        "config": in_order(case.config),
        **record,
    }


def in_order(value: Any) -> Any:
    """A config with its keys sorted, model_type first."""
    if not isinstance(value, dict):
        return value
    keys = sorted(value, key=lambda key: (key != "model_type", key))
    return {key: in_order(value[key]) for key in keys}


def family(model_type: str, specs: dict[str, Any]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The goldens of a family by id, and what could not be built.

    A broken preset must not keep the others from being made, so failures are collected.
    """
    goldens: dict[str, dict[str, Any]] = {}
    failures = []
    for case in cases(model_type, specs):
        if case.name in goldens:
            failures.append(f"{model_type}/{case.name}: two cases of this name")
            continue
        if any(fnmatch(case.name, pattern) for pattern in specs.get("skip", ())):
            continue
        try:
            goldens[case.name] = golden(case)
            if case.name in specs.get("notes", {}):
                goldens[case.name]["note"] = specs["notes"][case.name]
        except Exception as error:
            failures.append(f"{model_type}/{case.name}: {type(error).__name__}: {error}")
    failures += suspicions(model_type, goldens)
    return goldens, failures


def suspicions(model_type: str, goldens: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Goldens that cannot be right: equal totals of odd configs, another total in full."""
    odd = {name: record["total"] for name, record in goldens.items() if record["kind"] == "odd"}
    for name, total in odd.items():
        if list(odd.values()).count(total) > 1:
            yield f"{model_type}/{name}: another odd config has the same total"
    if "full" in goldens and odd.get("odd-1") != goldens["full"]["total"]:
        yield f"{model_type}/full: total differs from odd-1, the config it was made from"


def one_a_line(made: Mapping[str, Any]) -> str:
    """The text of a file with one family a line."""
    return "{\n" + ",\n".join(f" {json.dumps(name)}: {json.dumps(found)}" for name, found in made.items()) + "\n}\n"


def written(target: Path, text: str, *, check: bool) -> None:
    """Write a file of totals; to `check`, print what would change in it and exit with 1 if anything would."""
    if check:
        old = target.read_text(encoding="utf-8")
        print(*store.differences(json.loads(old), json.loads(text)), sep="\n")
        sys.exit(old != text)
    target.write_text(text, encoding="utf-8")


def update(path: Path, made: Mapping[str, store.Record], *, whole: bool, check: bool) -> int:
    """Bring a file up to date, say what changed, and return how many records did.

    What no case makes any more is deleted if `made` is the `whole` of the file. A golden with a `source` was not made
    here and is left alone.
    """
    old = store.read(path)
    stale = [name for name, record in old.items() if whole and name not in made and "source" not in record]
    changed = store.changed(old, made)
    for name in changed:
        changes = list(store.differences(old[name], made[name])) or ["layout only"] if name in old else []
        print(f"{'changed' if name in old else 'new':<8} {path.stem}/{name}", *changes, sep="\n           ")
    for name in stale:
        print(f"stale    {path.stem}/{name}")
    if not check and (changed or stale):
        store.write(path, {name: record for name, record in old.items() if name not in stale} | dict(made))
    return len(changed) + len(stale)


def parse(argv: list[str] | None, known: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="FAMILY", help=f"a model_type, or {TORCH_BLOCKS}")
    parser.add_argument("--all", action="store_true", help="every family of odd.yaml")
    parser.add_argument("--check", action="store_true", help="compare only, write nothing")
    args = parser.parse_args(argv)
    args.names = known if args.all else args.names
    unknown = [name for name in args.names if name not in known]
    if unknown or not args.names:
        parser.error(f"unknown: {', '.join(unknown)}" if unknown else "name a family, or --all")
    return args


def main(argv: list[str] | None = None) -> int:
    """Make or check goldens; 1 if --check finds a difference or something could not be built."""
    specs = all_specs()
    args = parse(argv, [*specs, TORCH_BLOCKS])
    changed = made = 0
    failures: list[str] = []
    for name in args.names:
        if name == TORCH_BLOCKS:
            blocks = torch_blocks()
            changed += update(HERE / f"{name}.jsonl", blocks, whole=True, check=args.check)
            made += len(blocks)
            continue
        goldens, failed = family(name, specs[name])
        failures += failed
        made += len(goldens)
        changed += update(store.count_file(name), goldens, whole=not failed, check=args.check)
    print(f"{made} goldens, {changed} changed, {len(failures)} failed")
    print(*(f"failed   {failure}\n" for failure in failures), sep="", end="", file=sys.stderr)
    return 1 if failures or (args.check and changed) else 0


if __name__ == "__main__":
    sys.exit(main())
