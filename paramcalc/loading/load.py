"""From a source to a Model: read, override, find the family, run its recipe, and judge what was not read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcalc.base.dtypes import DEFAULT, QUANTISED_REST, dtype
from paramcalc.base.errors import ConfigError, ParamcalcError, StrictError, one_line
from paramcalc.config import audit as config_remarks
from paramcalc.families.registry import Family, exists, find, get, index, plain, split_class
from paramcalc.loading.variants import OWN, Configured, Described
from paramcalc.model import Model
from paramcalc.sources import files as readers
from paramcalc.tree.component import Component

DEEPEST_SECTION = 2  # thinker_config.text_config
# Keys of a preset that describe the file rather than the model.
ABOUT = ("source", "published", "name", "description")


def load(
    source: readers.Source,
    *,
    overrides: Mapping[str, Any] | None = None,
    strict: bool = False,
    as_family: str | None = None,
    text_only: bool = False,
) -> Model:
    """Load a model from a path, a preset name, a mapping (a parsed config) or a config of transformers.

    `overrides` replaces config fields, under their canonical or the family's own names, nested ones with dots.
    `strict` raises StrictError where the model would be approximate. `as_family` counts an unknown model_type as if it
    were that family; the result is approximate. `text_only` keeps the language model of a multimodal model. Raises
    ParamcalcError for whatever cannot be read or built.
    """
    document = readers.read(source)
    _check(overrides, as_family)
    return build(document, overrides=overrides or {}, strict=strict, as_family=as_family, text_only=text_only)


def _check(overrides: Any, as_family: Any) -> None:
    """Whoever calls from Python without types gets our errors too."""
    if not isinstance(overrides, Mapping | None) or not all(isinstance(key, str) for key in overrides or ()):
        raise ParamcalcError("overrides must be a mapping from field names to values")
    if not isinstance(as_family, str | None):
        raise ParamcalcError(f"as_family must be a family's name, not a {type(as_family).__name__}")


def build(
    document: readers.Document,
    *,
    overrides: Mapping[str, Any],
    strict: bool = False,
    as_family: str | None = None,
    text_only: bool = False,
) -> Model:
    """Build the model that a document describes."""
    about = {key: document.fields[key] for key in ABOUT if key in document.fields}
    fields = {key: value for key, value in document.fields.items() if key not in ABOUT}
    # Which family reads the other overrides depends on these two.
    fields |= {key: overrides[key] for key in ("model_type", "architectures") if key in overrides}
    if fields.get("model_type") == OWN:
        if as_family is not None and as_family.lower() != OWN:
            raise ConfigError(
                f"model_type: {OWN} cannot be counted as {as_family!r} in {document.origin}",
                "leave out --as-family: it is for a model_type that is not known",
            )
        return _strict(_own(document, fields, about, overrides), strict)
    return _strict(_from_config(document, fields, about, overrides, as_family, text_only), strict)


def _own(
    document: readers.Document, fields: dict[str, Any], about: Mapping[str, Any], overrides: Mapping[str, Any]
) -> Model:
    from paramcalc.families.native import model as own

    described = Described(fields, document.origin).changed(overrides)
    fields = described.model_dump(exclude_none=True)
    return _model(
        document,
        about,
        fields=fields,
        family=OWN,
        architecture="Transformer",
        tree=own.tree(described, document.origin),
        dtype_name=_known_dtype(described.dtype, document.origin),
        variants=Described(fields, document.origin),
    )


def _from_config(
    document: readers.Document,
    fields: dict[str, Any],
    about: Mapping[str, Any],
    overrides: Mapping[str, Any],
    as_family: str | None,
    text_only: bool,
) -> Model:
    origin = document.origin
    model_type, stated = _word(fields, "model_type", origin), _architecture(fields, origin)
    family = find(model_type, stated, origin) if as_family is None else get(as_family)
    foreign = as_family is not None and family.name != model_type
    architecture, head, doubts = _class_of(family, stated, model_type, foreign=foreign)
    configured = Configured(fields, origin, family, architecture, head, text_only)
    view = configured.view(overrides)
    tree = configured.built(view)
    fields = dict(view.fields)
    doubts += config_remarks.doubts(view)
    if not index()[family.name].goldens:
        doubts.append(f"{family.name}: this family has not been verified against a reference")
    quantization, in_section = _quantization({**document.beside, **fields})
    dtype_name, notes = _dtype(fields, family.name, origin, quantised=quantization is not None)
    if not set(fields) - {"model_type", "architectures", "dtype", "torch_dtype", "transformers_version"}:
        notes.append(f"{family.name}: the config states no sizes; all are the defaults of {family.main_class}")
    return _model(
        document,
        about,
        fields=fields,
        family=family.name,
        architecture=architecture,
        tree=tree,
        dtype_name=dtype_name,
        variants=configured._replace(fields=fields),
        quantization=quantization,
        quantised_towers=not in_section,
        doubts=list(dict.fromkeys(doubts)),
        notes=notes + config_remarks.notes(view),
    )


def _model(
    document: readers.Document,
    about: Mapping[str, Any],
    *,
    fields: Mapping[str, Any],
    family: str,
    architecture: str,
    tree: Component,
    dtype_name: str,
    variants: Described | Configured,
    quantization: Mapping[str, Any] | None = None,
    quantised_towers: bool = True,
    doubts: list[str] | None = None,
    notes: list[str] | None = None,
) -> Model:
    return Model(
        name=one_line(str(about.get("name") or document.name), most=200),
        family=family,
        architecture=one_line(architecture),
        source=document.origin,
        status="approximate" if doubts else "exact",
        dtype=dtype_name,
        warnings=tuple(map(one_line, (doubts or []) + (notes or []))),
        tree=tree,
        config=fields,
        variants=variants,
        quantization=quantization,
        quantised_towers=quantised_towers,
        published=about.get("published") or {},
        url=about.get("source"),
    )


def _strict(model: Model, strict: bool) -> Model:
    if strict and model.status != "exact":
        raise StrictError(f"not exact: {model.warnings[0]}", "without strict the count is marked approximate")
    return model


# -- which class -------------------------------------------------------------------------------------------------


def _word(fields: Mapping[str, Any], key: str, origin: str) -> str | None:
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{key} must be a word, not {value!r} in {origin}")
    return value


def _architecture(fields: Mapping[str, Any], origin: str) -> str | None:
    names = fields.get("architectures")
    if not names:
        return None
    if isinstance(names, str):
        return names
    if isinstance(names, list) and isinstance(names[0], str):
        return names[0]
    raise ConfigError(f"architectures must be a list of class names in {origin}", "such as [LlamaForCausalLM]")


def _class_of(
    family: Family, stated: str | None, model_type: str | None, *, foreign: bool
) -> tuple[str, str, list[str]]:
    """The class to count, its head, and doubts about the choice."""
    main_head = split_class(family.main_class)[1] or "lm"
    if foreign:
        return family.main_class, main_head, [f"{model_type or stated} is counted as if it were {family.name}"]
    doubts = []
    if model_type != family.name:
        said = "no model_type is stated" if model_type is None else f"model_type {model_type!r} is not known"
        doubts.append(f"{said}; counted as {family.name}, which architectures names")
    if stated is None:
        return family.main_class, main_head, doubts
    prefix, head = split_class(stated)
    if head is None or plain(prefix) not in family.class_prefixes:
        doubts.append(f"{family.name}: class {stated!r} is not known; counted as {family.main_class}")
        return family.main_class, main_head, doubts
    same_by_main_name = family.class_prefix + stated[len(prefix) :]  # ExaoneForCausalLM is LlamaForCausalLM
    known = stated == family.main_class or exists(family.name, stated) or exists(family.name, same_by_main_name)
    if not known:
        doubts.append(f"{family.name}: transformers has no class {stated!r}; its head is taken from the ending")
    return stated, head, doubts


def _known_dtype(stated: str, origin: str) -> str:
    try:
        return dtype(stated).name
    except ParamcalcError as error:
        raise ConfigError(f"{error.message} in {origin}", error.hint) from error


def _dtype(fields: Mapping[str, Any], family: str, origin: str, *, quantised: bool) -> tuple[str, list[str]]:
    default = QUANTISED_REST if quantised else DEFAULT
    places = [fields, *(fields[key] for key in ("text_config", "llm_config") if isinstance(fields.get(key), Mapping))]
    for place in places:
        for key in ("dtype", "torch_dtype"):
            stated = place.get(key)
            if isinstance(stated, str) and stated != "auto":
                return _known_dtype(stated, origin), []
            if stated is not None and not isinstance(stated, str):
                return default, [f"{family}: {key} is not the name of a dtype; {default} is assumed for the bytes"]
    return default, [f"{family}: the config names no dtype; {default} is assumed for the bytes"]


QUANTISED = ("quantization_config", "compression_config", "quantization", *readers.SIDECARS)
BESIDE = ("expert_dtype",)
"""Keys of a quantization config that DeepSeek-V4's files have beside it (DeepseekV4Config moves them there)."""


def _quantization(fields: Mapping[str, Any], depth: int = 0) -> tuple[Mapping[str, Any] | None, bool]:
    """What the files say about how the checkpoint is quantised, and whether a section says it, of itself."""
    for key in QUANTISED:
        stated = fields.get(key)
        if isinstance(stated, Mapping) and stated:
            beside = {name: fields[name] for name in BESIDE if name in fields}
            return {**beside, **stated}, depth > 0
    sections = [value for value in fields.values() if isinstance(value, Mapping)] if depth < DEEPEST_SECTION else []
    found = (_quantization(section, depth + 1) for section in sections)
    return next((one for one in found if one[0] is not None), (None, False))
