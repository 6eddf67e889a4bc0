"""The layers import in one direction, and a count imports little."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "paramcalc"


@cache
def loaded_after(statement: str) -> frozenset[str]:
    """The names of all modules in a fresh interpreter after a statement."""
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return frozenset(done.stdout.split())


COUNT = "import paramcalc; paramcalc.count(paramcalc.load('llama3-8b'))"
FIGURES = "count_figures(paramcalc.load('llama3-8b'))"
RUN = "import paramcalc.cli; paramcalc.cli.main(['count', 'llama3-8b', '--json', '--output', '/dev/null'])"


def test_the_library_loads_neither_rich_nor_typer() -> None:
    assert not loaded_after(COUNT) & {"rich", "typer", "difflib"}


def test_json_loads_no_rich() -> None:
    assert not {name for name in loaded_after(RUN) if name.split(".")[0] == "rich"}


def test_figures_need_no_schema_library() -> None:
    assert "pydantic" not in loaded_after(
        f"from paramcalc.counting.count import count_figures\nimport paramcalc\n{FIGURES}"
    )


def test_a_count_imports_the_recipes_of_one_lineage() -> None:
    loaded = {name.removeprefix("paramcalc.families.") for name in loaded_after(COUNT) if ".families." in name}
    builders = {f"builders.{name}" for name in ("attention", "decoder", "ffn", "heads", "layer_types")}

    assert loaded == {"registry", "schemas", "builders", "text", "text.llama"} | builders


def test_a_dense_decoder_loads_no_rare_components() -> None:
    components = {path.stem for path in (PACKAGE / "components").glob("*.py")}
    loaded = {name.removeprefix("paramcalc.components.") for name in loaded_after(COUNT)} & components

    assert loaded == {"attention", "ffn"}


def test_this_guard_can_fail() -> None:
    assert "rich" in loaded_after("import rich.table")
    assert "typer" in loaded_after("import typer")


@cache
def imports(path: Path) -> set[str]:
    """The paramcalc modules that a file imports, wherever in the file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def offenders(files: list[Path], *banned: str) -> list[str]:
    return [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files
        for name in sorted(imports(path))
        if any(name == ban or name.startswith(f"{ban}.") for ban in banned)
    ]


FILES = sorted(PACKAGE.rglob("*.py"))
FAMILY_FILES = sorted((PACKAGE / "families").rglob("*.py"))
RECIPE_FOLDERS = ("text", "encoders", "seq2seq", "multimodal", "native")
RECIPES = [path for path in FAMILY_FILES if path.parent.name in RECIPE_FOLDERS]
TOWERS = sorted((PACKAGE / "families" / "towers").glob("*.py"))
BUILDERS = sorted((PACKAGE / "families" / "builders").glob("*.py"))


def test_only_render_and_cli_import_rich_and_only_cli_imports_typer() -> None:
    outside = [path for path in FILES if not {"render", "cli"} & set(path.parts)]

    assert offenders(outside, "rich", "typer") == []
    assert offenders([path for path in FILES if "render" in path.parts], "typer") == []


def test_nobody_imports_the_command_line() -> None:
    outside = [path for path in FILES if "cli" not in path.parts and path.name != "__main__.py"]

    assert offenders(outside, "paramcalc.cli") == []


# From the ground up. A folder imports itself and what lies below, never what is beside it (|) or above.
LAYERS = (
    "base",
    "sources | config | tree | reports",
    "components",
    "model assumptions",
    "counting | storage | parallel",
    "footprint",
    "compute | families",
    "loading",
    "scaling | plots",
    "catalog | render",
    "__init__ __main__ cli",
)
PLACES = {
    name: (level, group)
    for level, layer in enumerate(LAYERS)
    for group, names in enumerate(layer.split("|"))
    for name in names.split()
}


def upwards(name: str, imported: set[str]) -> list[str]:
    """Which of the imports of a module or package, by its name, go up or aside."""
    level, group = PLACES[name]
    found = {unit for one in imported if one.startswith("paramcalc.") and (unit := one.split(".")[1]) in PLACES}
    return sorted(unit for unit in found if PLACES[unit] != (level, group) and PLACES[unit][0] >= level)


def unit(path: Path) -> str:
    """The top-level module or package that a file is, or is in."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def test_every_module_has_a_place_in_the_layers() -> None:
    assert {unit(path) for path in FILES} == set(PLACES)


@pytest.mark.parametrize("name", PLACES)
def test_imports_go_one_way(name: str) -> None:
    files = [path for path in FILES if unit(path) == name]

    assert files
    assert {str(path.relative_to(ROOT)): up for path in files if (up := upwards(name, imports(path)))} == {}


@pytest.mark.parametrize(
    ("name", "imported"),
    [
        ("tree", "paramcalc.components.attention"),
        ("families", "paramcalc.loading.load"),
        ("counting", "paramcalc.families.text.llama"),
        ("storage", "paramcalc.parallel.sharding"),
        ("footprint", "paramcalc.families"),
        ("compute", "paramcalc.render.table"),
        ("scaling", "paramcalc.cli.options"),
        ("compute", "paramcalc.loading.load"),
        ("render", "paramcalc.cli"),
    ],
)
def test_the_guard_of_the_layers_can_fail(name: str, imported: str) -> None:
    assert upwards(name, {"paramcalc.base.errors", imported}) == [imported.split(".")[1]]


ENGINE = (
    "base",
    "tree",
    "components",
    "assumptions",
    "counting",
    "storage",
    "parallel",
    "footprint",
    "compute",
    "reports",
    "plots",
)


@pytest.mark.parametrize("name", ENGINE)
def test_the_engine_knows_no_configs(name: str) -> None:
    files = [path for path in FILES if unit(path) == name]

    assert offenders(files, "paramcalc.families", "paramcalc.config", "paramcalc.loading", "paramcalc.sources") == []


def test_recipes_import_components_and_builders_and_never_each_other() -> None:
    recipes = [f"paramcalc.families.{folder}" for folder in RECIPE_FOLDERS]
    folds = [f"paramcalc.{name}" for name in ("counting", "storage", "parallel", "footprint", "compute", "loading")]

    lineages = [path for path in RECIPES if path.parent.name != "native"]  # whose two files are one recipe
    assert offenders([*lineages, *TOWERS, *BUILDERS], *recipes) == []
    assert offenders(BUILDERS, "paramcalc.families.towers") == []
    assert offenders(FAMILY_FILES, *folds, "paramcalc.sources", "paramcalc.render") == []


def test_the_direction_guard_can_fail() -> None:
    assert offenders([PACKAGE / "loading/load.py"], "paramcalc.families") != []


# What folds may not do: read the config, or ask which family a model is of. Facts that they need are fields of the
# model (`Model.facts`, `Model.checkpoint`), filled when it is loaded.
FOLDS = ("tree", "components", "counting", "storage", "parallel", "footprint", "compute")
LOOKUP = "storage/gguf/architectures.py"  # llama.cpp's own table has the names of families as its keys


def side_doors(code: str) -> list[str]:
    """The reads of a config, and the decisions by the name of a family, in some code."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute) and node.attr == "config":
            found.append(ast.unparse(node))
        decides: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            decides = [node.left, *node.comparators]
        elif isinstance(node, ast.Call):
            decides = [node.func, *(node.args if not isinstance(node.func, ast.Name) else [])]
        elif isinstance(node, ast.Subscript):
            decides = [node.slice]
        found += [ast.unparse(node) for one in decides if "family" in attributes(one)]
    return found


def attributes(node: ast.AST) -> set[str]:
    """The last names of attributes and variables in an expression."""
    return {
        one.attr if isinstance(one, ast.Attribute) else one.id
        for one in ast.walk(node)
        if isinstance(one, ast.Attribute | ast.Name)
    }


@pytest.mark.parametrize("name", FOLDS)
def test_folds_read_no_config_and_know_no_family(name: str) -> None:
    files = [path for path in FILES if unit(path) == name and str(path.relative_to(PACKAGE)) != LOOKUP]

    assert files
    assert {path.name: doors for path in files if (doors := side_doors(path.read_text()))} == {}


@pytest.mark.parametrize(
    "code",
    [
        "heads = model.config.get('num_key_value_heads')",
        "if model.family == 'gpt2': pass",
        "wide = model.family in ('deepseek_v3',)",
        "narrow = family.startswith('qwen')",
        "entry = TABLE[model.family]",
        "entry = TABLE.get(model.family)",
    ],
)
def test_the_guard_of_the_folds_can_fail(code: str) -> None:
    assert side_doors(code)


def test_a_family_may_be_named_in_a_message() -> None:
    assert side_doors("text = f'{model.family}: not compared'\nanswer = {'family': model.family}") == []
