"""Load a Model: read the source, apply overrides, find the family, run its recipe, audit the config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcalc.base.errors import ConfigError, ParamcalcError, StrictError, one_line
from paramcalc.config import audit
from paramcalc.config.view import Config
from paramcalc.families.registry import find_family, get_family, index
from paramcalc.loading.adapter import adapter_note
from paramcalc.loading.architecture import counted_class, stated_architecture, string_field
from paramcalc.loading.assumed_sections import assumed_section_notes
from paramcalc.loading.checkpoint import checkpoint_dtype, known_dtype, quantization_config
from paramcalc.loading.facts import checkpoint_facts, config_facts
from paramcalc.loading.variants import NATIVE_TYPE, ConfigModelSource, NativeModelSource
from paramcalc.model import Model
from paramcalc.sources import files
from paramcalc.sources.document import Document, Source
from paramcalc.tree.component import Component

# Keys of a preset that describe the file rather than the model.
PRESET_METADATA_KEYS = ("source", "published", "name", "description")


def load(
    source: Source,
    *,
    overrides: Mapping[str, Any] | None = None,
    strict: bool = False,
    as_family: str | None = None,
    text_only: bool = False,
) -> Model:
    """Load a model from a path, a preset name, a mapping (a parsed config) or a config of transformers.

    `overrides` replaces config fields, under canonical or the family's own names, with dots for sections.
    `strict` raises StrictError if the model would be approximate. `as_family` reads an unknown model_type as that
    family; the result is approximate. `text_only` selects the language model of a multimodal model. Raises
    ParamcalcError if the source cannot be read or the model cannot be built.
    """
    document = files.read_document(source)
    _check_arguments(overrides, as_family)
    return build(document, overrides=overrides or {}, strict=strict, as_family=as_family, text_only=text_only)


def _check_arguments(overrides: Any, as_family: Any) -> None:
    """Raise ParamcalcError for arguments of a wrong type, for callers without a type checker."""
    if not isinstance(overrides, Mapping | None) or not all(isinstance(key, str) for key in overrides or ()):
        raise ParamcalcError("overrides must be a mapping from field names to values")
    if not isinstance(as_family, str | None):
        raise ParamcalcError(f"as_family must be the name of a family, not a {type(as_family).__name__}")


def build(
    document: Document,
    *,
    overrides: Mapping[str, Any],
    strict: bool = False,
    as_family: str | None = None,
    text_only: bool = False,
) -> Model:
    """Build the model that a document describes. Parameters and errors as for `load`."""
    about = {key: document.fields[key] for key in PRESET_METADATA_KEYS if key in document.fields}
    fields = {key: value for key, value in document.fields.items() if key not in PRESET_METADATA_KEYS}
    # These two choose the family, which then reads the other overrides.
    fields |= {key: overrides[key] for key in ("model_type", "architectures") if key in overrides}
    if fields.get("model_type") == NATIVE_TYPE:
        if as_family is not None and as_family.lower() != NATIVE_TYPE:
            raise ConfigError(
                f"model_type: {NATIVE_TYPE} cannot be counted as {as_family!r} in {document.origin}",
                "leave out --as-family: it is for an unknown model_type",
            )
        return _check_strict(_native_model(document, fields, about, overrides), strict)
    return _check_strict(_config_model(document, fields, about, overrides, as_family, text_only), strict)


def _native_model(
    document: Document, fields: dict[str, Any], about: Mapping[str, Any], overrides: Mapping[str, Any]
) -> Model:
    """The model of a document in paramcalc's own format."""
    from paramcalc.families.native import model as native

    config = NativeModelSource(fields, document.origin).config_with(overrides)
    fields = config.model_dump(exclude_none=True)
    return _model(
        document,
        about,
        fields=fields,
        family=NATIVE_TYPE,
        architecture="Transformer",
        tree=native.native_tree(config, document.origin),
        dtype_name=known_dtype(config.dtype, document.origin),
        variants=NativeModelSource(fields, document.origin),
    )


def _config_model(
    document: Document,
    fields: dict[str, Any],
    about: Mapping[str, Any],
    overrides: Mapping[str, Any],
    as_family: str | None,
    text_only: bool,
) -> Model:
    """The model of a Hugging Face config."""
    origin = document.origin
    model_type, stated = string_field(fields, "model_type", origin), stated_architecture(fields, origin)
    family = find_family(model_type, stated, origin) if as_family is None else get_family(as_family)
    foreign = as_family is not None and family.name != model_type
    architecture, head, doubts = counted_class(family, stated, model_type, origin, foreign=foreign)
    variants = ConfigModelSource(fields, origin, family, architecture, head, text_only)
    view = variants.view(overrides)
    tree = variants.build(view)
    fields = dict(view.fields)
    doubts += audit.config_doubts(view)
    if not index()[family.name].goldens:
        doubts.append(f"{family.name}: this family has not been verified against a reference")
    quantization, in_section = quantization_config({**document.sidecars, **fields})
    dtype_name, notes = checkpoint_dtype(fields, family.name, origin, quantised=quantization is not None)
    check_sizes_were_read(view)
    companions = [*document.notes, *([] if document.adapter is None else [adapter_note(document.adapter, tree)])]
    assumed = [doubt for field, doubt in document.doubts.items() if field not in overrides]
    if not set(fields) - {"model_type", "architectures", "dtype", "torch_dtype", "transformers_version"}:
        notes.append(f"{family.name}: the config states no sizes; all are defaults of {family.main_class}")
    elif not text_only:
        notes += assumed_section_notes(view, tree)
    return _model(
        document,
        about,
        fields=fields,
        family=family.name,
        architecture=architecture,
        tree=tree,
        dtype_name=dtype_name,
        variants=variants._replace(fields=fields),
        quantization=quantization,
        quantised_towers=not in_section,
        doubts=list(dict.fromkeys([*assumed, *doubts])),
        notes=[*companions, *notes, *audit.config_notes(view)],
    )


def check_sizes_were_read(view: Config) -> None:
    """Refuse a config whose sizes all stand under keys that the family does not read: the count would be defaults."""
    unread = audit.unread_sizes(view)
    if unread and not audit.read_sizes(view):
        raise ConfigError(
            f"{view.family}: no size was read, and {', '.join(map(repr, unread[:3]))} not recognised in {view.origin}",
            f"`paramcalc families {view.family}` lists the fields it reads",
        )


def _model(
    document: Document,
    about: Mapping[str, Any],
    *,
    fields: Mapping[str, Any],
    family: str,
    architecture: str,
    tree: Component,
    dtype_name: str,
    variants: NativeModelSource | ConfigModelSource,
    quantization: Mapping[str, Any] | None = None,
    quantised_towers: bool = True,
    doubts: list[str] | None = None,
    notes: list[str] | None = None,
) -> Model:
    """A model whose status and warnings follow from its doubts and notes."""
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
        facts=config_facts(fields),
        checkpoint=checkpoint_facts(family),
        variants=variants,
        quantization=quantization,
        quantised_towers=quantised_towers,
        published=about.get("published") or {},
        url=about.get("source"),
    )


def _check_strict(model: Model, strict: bool) -> Model:
    """The model, unchanged. Raises StrictError if `strict` is set and it is not exact."""
    if strict and model.status != "exact":
        raise StrictError(f"not exact: {model.warnings[0]}", "without strict, the count is marked approximate")
    return model
