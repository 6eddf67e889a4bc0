"""Every model_type stands in the file that its name leads to: the rule at the top of paramcalc/families/README.md."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from paramcalc.families.registry import index
from tests.conftest import ROOT

FAMILIES = ROOT / "paramcalc" / "families"
FOLDERS = ("text", "encoders", "seq2seq", "multimodal")
FILES = sorted(path for folder in FOLDERS for path in (FAMILIES / folder).glob("*.py") if path.name != "__init__.py")
TYPES = [name for name in index() if name != "transformer"]
FEW = 3  # types that make a lineage
LONG = 100  # lines for which fewer types have a file of their own
LONGEST = 350  # lines after which a file is split by subject

# Types that stand elsewhere than their names lead to.
EXCEPTIONS = {
    "hy_v3": ("hunyuan", "HY is Hunyuan's later name"),
    "hy_v4": ("hunyuan", "HY is Hunyuan's later name"),
    "hy_v4_vl": ("hunyuan", "HY is Hunyuan's later name"),
    "unlimited_ocr_text": ("deepseek", "the decoder of DeepSeek-OCR with another cache"),
    "ministral": ("mistral", "Mistral's small models"),
    "mixtral": ("mistral", "Mistral's models with experts"),
    "mixformer-sequential": ("phi", "Phi-1.5 as it was first published"),
    "nemo_speechlm": ("nemotron", "Nemotron 3.5 Transcribe under the name of its toolkit"),
    "pp_formulanet": ("paddle", "PP is short for PaddlePaddle"),
    "pp_formulanet_text": ("paddle", "PP is short for PaddlePaddle"),
    "molmo2_text": ("other", "Molmo holds OLMo by chance of letters"),
    "xglm": ("other", "XGLM holds GLM by chance of letters"),
}


def recipes(path: Path) -> Iterator[str]:
    """The name of each recipe in a file: the first in its decorators. Its other names follow it."""
    for node in ast.parse(path.read_text()).body:
        for call in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "family":
                yield ast.literal_eval(call.args[0])
                break


def first_word(name: str) -> str:
    """The letters that a name begins with: `qwen` of `qwen2_5_vl`, but `t5` of `t5gemma2`."""
    found = re.match(r"t5|[a-z]+", name.lower())
    assert found
    return found[0]


def lineage(path: Path) -> str:
    """The first word of a file's name; `other` for the files of those that have none."""
    return path.stem.partition("_")[0]


RECIPES = [(name, path) for path in FILES for name in recipes(path)]
LINEAGES = {folder: {lineage(path) for path in FILES if path.parent.name == folder} - {"other"} for folder in FOLDERS}


def by_rule(name: str, folder: str) -> str:
    """The longest lineage that a type contains, of those with a file in its folder; one that it begins with first."""
    letters = re.sub(r"[-_.]", "", name.lower())
    contained = [each for each in LINEAGES[folder] if each in letters]
    return max(contained, key=lambda each: (letters.startswith(each), len(each)), default="other")


def test_every_type_stands_in_the_file_of_its_lineage() -> None:
    wanted = {name: by_rule(name, path.parent.name) for name, path in RECIPES}
    wanted |= {name: place for name, (place, _) in EXCEPTIONS.items()}

    assert {name: lineage(path) for name, path in RECIPES} == wanted


def test_no_exception_follows_the_rule() -> None:
    folders = {name: path.parent.name for name, path in RECIPES}

    assert [name for name, (place, _) in EXCEPTIONS.items() if place == by_rule(name, folders[name])] == []


def test_every_type_has_a_recipe_that_was_looked_at() -> None:
    modules = {entry.module for name, entry in index().items() if name != "transformer"}

    assert modules == {f"{path.parent.name}.{path.stem}" for _, path in RECIPES}
    assert {name for name, _ in RECIPES} <= set(TYPES)


def test_three_types_make_a_lineage() -> None:
    begins = Counter(map(first_word, TYPES))
    others = [name for name, path in RECIPES if lineage(path) == "other" and name not in EXCEPTIONS]

    assert [name for name in others if begins[first_word(name)] >= FEW] == []


def test_fewer_have_a_file_only_if_it_is_long() -> None:
    short = {lineage(path) for path in FILES if len(path.read_text().splitlines()) <= LONG} - {"other"}
    types = {each: [name for name in TYPES if each in name.lower()] for each in short}
    for name, (place, _) in EXCEPTIONS.items():
        types.get(place, []).append(name)

    assert {each: names for each, names in types.items() if len(names) < FEW} == {}


def test_no_file_grows_too_long() -> None:
    assert [path for path in FILES if len(path.read_text().splitlines()) > LONGEST] == []
