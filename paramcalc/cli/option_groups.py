"""Groups of options that several commands share; each group builds one value from its options.

`@takes(models=MODELS, out=OUTPUT)` gives a command the options of both groups, and passes it the loaded models and the
output for its result.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.base.errors import ParamcalcError
from paramcalc.cli.options import (
    FamilyOpt,
    FormatOpt,
    JsonOpt,
    ModelsArg,
    OutputOpt,
    PresetOpt,
    SetOpt,
    StrictOpt,
    TextOnlyOpt,
    overrides,
)
from paramcalc.cli.output import Output
from paramcalc.cli.typer_classes import Preset
from paramcalc.model import Model

Command = Callable[..., None]


class OptionGroup(NamedTuple):
    """Options by the names of their parameters, and the function that builds one value from them."""

    options: Mapping[str, Any]  # name: annotation, or (annotation, default) if the default is not None
    build: Callable[..., Any]


def takes(**groups: OptionGroup) -> Callable[[Command], Command]:
    """Give a command the options of these groups: it receives the value that each group builds, and its own options."""

    def decorate(command: Command) -> Command:
        own = [p for name, p in inspect.signature(command, eval_str=True).parameters.items() if name not in groups]

        def run(**values: Any) -> None:
            wanted = {
                name: group.build(**{option: values.pop(option) for option in group.options})
                for name, group in groups.items()
            }
            command(**wanted, **values)

        shared = [_parameter(name, option) for group in groups.values() for name, option in group.options.items()]
        first = [p for p in shared if p.name == "models"]
        parameters = [*first, *own, *(p for p in shared if p.name != "models")]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # inspect and Typer read it there
            [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
        )
        return run

    return decorate


def _parameter(name: str, option: Any) -> inspect.Parameter:
    annotation, default = option if isinstance(option, tuple) else (option, None)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def load_models(
    *,
    models: list[str] | None,
    preset: list[str] | None,
    settings: list[str] | None,
    text_only: bool,
    strict: bool,
    as_family: str | None,
) -> list[Model]:
    """The models of a command line, in order: paths and names first, then presets. Raises ParamcalcError for none."""
    from paramcalc.loading.load import build
    from paramcalc.sources import files

    documents = [files.read_preset(m) if isinstance(m, Preset) else files.read_document(m) for m in models or ()]
    documents += map(files.read_preset, preset or ())
    if not documents:
        raise ParamcalcError("no model given", "give a config.json, or --preset llama3-8b")
    changed = overrides(settings)
    return [
        build(document, overrides=changed, strict=strict, as_family=as_family, text_only=text_only)
        for document in documents
    ]


MODELS = OptionGroup(
    dict(
        models=ModelsArg,
        preset=PresetOpt,
        settings=SetOpt,
        text_only=(TextOnlyOpt, False),
        strict=(StrictOpt, False),
        as_family=FamilyOpt,
    ),
    load_models,
)


def base_model(*, base: str | None, models: list[str] | None, preset: list[str] | None, **others: Any) -> Model | None:
    """The base model, or None if there is none. Raises ParamcalcError for several."""
    given = [*([base] if base is not None else []), *(models or ())]
    if not given and not preset:
        options = {"settings": "--set", "text_only": "--text-only", "strict": "--strict", "as_family": "--as-family"}
        unused = next((option for name, option in options.items() if others.get(name)), None)
        if unused is not None:
            raise ParamcalcError(
                f"{unused} needs a base model, and none is given", "give a config.json, or --preset NAME"
            )
        return None
    found = load_models(models=given, preset=preset, **others)
    if len(found) > 1:
        raise ParamcalcError(f"{len(found)} models given, and only one can be the base", "omit the others")
    return found[0]


BaseOpt = Annotated[
    str | None,
    typer.Option("--base", metavar="MODEL", help="The base model that others are derived from, given like MODEL."),
]
BASE = OptionGroup({"base": BaseOpt, **MODELS.options}, base_model)
OUTPUT = OptionGroup(
    dict(fmt=(FormatOpt, "table"), as_json=(JsonOpt, False), output=OutputOpt),
    lambda fmt, as_json, output: Output(fmt, as_json, output),
)
