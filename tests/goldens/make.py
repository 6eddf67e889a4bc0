"""Write the golden files: what `transformers` builds for a config, and never what paramcalc says.

    python tests/goldens/make.py llama gpt2       # these families
    python tests/goldens/make.py --all            # every family of odd.yaml, and torch_blocks
    python tests/goldens/make.py --all --check    # write nothing; exit code 1 if anything differs

Needs torch and transformers (CPU is enough). README.md beside this file describes the format.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import oracle
import yaml
from torch_blocks import torch_blocks

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
    """One golden to be: its file name without suffix, its kind, what paramcalc will be given."""

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
    """The contents of a golden file."""
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
    """The goldens of a family by name, and what could not be built.

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


def render(value: Any, indent: int = 0) -> str:
    """JSON with one key a line and lists inline; a list of mappings has one of them a line."""
    pad = " " * (indent + 1)
    if isinstance(value, dict) and value:
        items = [f"{json.dumps(str(key))}: {render(item, indent + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(pad + item for item in items) + "\n" + " " * indent + "}"
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        rows = ",\n".join(pad + json.dumps(item, ensure_ascii=False) for item in value)
        return f"[\n{rows}\n" + " " * indent + "]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def one_a_line(made: Mapping[str, Any]) -> str:
    """The text of a file with one family a line."""
    return "{\n" + ",\n".join(f" {json.dumps(name)}: {json.dumps(found)}" for name, found in made.items()) + "\n}\n"


def written(target: Path, text: str, *, check: bool) -> None:
    """Write a file of totals; to `check`, print what would change in it and exit with 1 if anything would."""
    if check:
        old = target.read_text(encoding="utf-8")
        print(*differences(json.loads(old), json.loads(text)), sep="\n")
        sys.exit(old != text)
    target.write_text(text, encoding="utf-8")


def differences(old: Any, new: Any, where: str = "") -> Iterator[str]:
    """What changed between two versions of a golden, one line each."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in (*new, *(key for key in old if key not in new)):
            yield from differences(old.get(key), new.get(key), f"{where}.{key}" if where else key)
    elif old != new:
        yield f"{where}: {json.dumps(old)} -> {json.dumps(new)}"


def update(path: Path, record: dict[str, Any], *, check: bool) -> bool:
    """Write one file if it differs, say what changed, and return whether it did."""
    text = render(record) + "\n"
    label = path.relative_to(HERE)
    if not path.exists():
        print(f"new      {label}")
    elif path.read_text(encoding="utf-8") == text:
        return False
    else:
        changes = list(differences(json.loads(path.read_text(encoding="utf-8")), record))
        print(f"changed  {label}", *(changes or ["layout only"]), sep="\n           ")
    if not check:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return True


def remove_stale(folder: Path, names: set[str], *, check: bool) -> int:
    """Delete the files that no case makes any more, and return how many there were.

    A golden with a `source` was not made here and is left alone.
    """
    stale = [
        path
        for path in sorted(folder.glob("*.json"))
        if path.stem not in names and "source" not in json.loads(path.read_text(encoding="utf-8"))
    ]
    for path in stale:
        print(f"stale    {path.relative_to(HERE)}")
        if not check:
            path.unlink()
    return len(stale)


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
            changed += update(HERE / f"{name}.json", torch_blocks(), check=args.check)
            made += 1
            continue
        goldens, failed = family(name, specs[name])
        failures += failed
        made += len(goldens)
        for case, record in goldens.items():
            changed += update(HERE / name / f"{case}.json", record, check=args.check)
        if not failed:
            changed += remove_stale(HERE / name, set(goldens), check=args.check)
    print(f"{made} goldens, {changed} changed, {len(failures)} failed")
    print(*(f"failed   {failure}\n" for failure in failures), sep="", end="", file=sys.stderr)
    return 1 if failures or (args.check and changed) else 0


if __name__ == "__main__":
    sys.exit(main())
