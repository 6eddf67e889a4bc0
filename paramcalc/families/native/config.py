"""The fields of `model_type: transformer`: their schema, and the errors for invalid ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from paramcalc.base.errors import ConfigError, nearest
from paramcalc.base.messages import out_of_range, short_repr


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class MoeFields(_Strict):
    """A bank of experts in place of the feed-forward network."""

    experts: int = Field(gt=0, le=10**6, description="routed experts")
    top_k: int = Field(gt=0, description="experts that one token uses")
    d_ff: int | None = Field(None, gt=0, le=10**9, description="width of an expert; the model's d_ff when absent")
    shared: int = Field(0, ge=0, le=10**9, description="experts of the same width that every token uses")
    every: int = Field(1, gt=0, le=10**9, description="experts in every n-th layer after the first dense ones")
    first_dense: int = Field(0, ge=0, le=10**9, description="layers at the start that keep a dense FFN")

    @model_validator(mode="after")
    def _top_k_fits(self) -> MoeFields:
        if self.top_k > self.experts:
            raise ValueError(f"top_k ({self.top_k}) is more than experts ({self.experts})")
        return self


class LayerFields(_Strict):
    """One entry of `layers`: the fields that differ from the model, for `repeat` consecutive layers."""

    repeat: int = Field(1, gt=0, le=100_000)
    n_heads: int | None = Field(None, gt=0, le=10**9)
    n_kv_heads: int | None = Field(None, gt=0, le=10**9)
    head_dim: int | None = Field(None, gt=0, le=10**9)
    d_ff: int | None = Field(None, gt=0, le=10**9)
    ffn: Literal["plain", "gated"] | None = None
    moe: MoeFields | Literal[False] | None = Field(None, description="experts in these layers; false: a dense FFN")
    window: int | None = Field(None, gt=0, le=10**9, description="tokens of a sliding window in these layers")


class BiasFields(_Strict):
    """Biases of the linear layers, by sublayer."""

    attention: bool = False
    ffn: bool = False
    head: bool = False


class TransformerConfig(_Strict):
    """The fields of `model_type: transformer`. Sizes are in channels, rows and layers."""

    model_type: Literal["transformer"] = "transformer"
    d_model: int = Field(gt=0, le=10**9, description="width of the residual stream")
    n_layers: int | None = Field(None, gt=0, le=100_000, description="depth; the sum of `layers` when those are given")
    n_heads: int = Field(gt=0, le=10**9, description="query heads")
    n_kv_heads: int | None = Field(None, gt=0, le=10**9, description="key/value heads; n_heads when absent")
    head_dim: int | None = Field(None, gt=0, le=10**9, description="channels per head; d_model / n_heads when absent")
    d_ff: int | None = Field(None, gt=0, le=10**9, description="FFN width; 4 d_model for a plain FFN when absent")
    ffn: Literal["plain", "gated"] = "plain"
    norm: Literal["rms", "layer"] = "rms"
    norm_position: Literal["pre", "post"] = Field("pre", description="pre also means a final norm")
    bias: bool | BiasFields = Field(False, description="biases in linear layers; a LayerNorm always has one")
    vocab_size: int | None = Field(None, gt=0, le=10**9, description="token rows; absent: layers only, no embedding")
    tie_embeddings: bool = True
    positions: Literal["none", "learned", "rope"] = "rope"
    max_positions: int | None = Field(None, gt=0, le=10**9, description="rows of learned positions")
    moe: MoeFields | None = None
    layers: list[LayerFields] | None = Field(None, description="layer by layer, where they are not all alike")
    dtype: str = Field("bfloat16", description="dtype of the weights")

    @model_validator(mode="after")
    def _consistent(self) -> TransformerConfig:
        if self.layers is not None:
            depth = sum(entry.repeat for entry in self.layers)
            if not 0 < depth <= 100_000:
                raise ValueError(f"layers describes {depth} layers; 1 to 100,000 can be meant")
            if self.n_layers is not None and self.n_layers != depth:
                raise ValueError(f"layers describes {depth} layers, n_layers says {self.n_layers}")
        elif self.n_layers is None:
            raise ValueError("n_layers is required and missing")
        if (self.positions == "learned") != (self.max_positions is not None):
            raise ValueError("positions: learned goes with max_positions")
        return self


NATIVE_SECTIONS: Mapping[str, type[BaseModel]] = {"moe": MoeFields, "bias": BiasFields, "layers": LayerFields}

# Hugging Face's names of these fields: --set accepts both, and a file with the other name gets a hint.
NATIVE_ALIASES = {
    "hidden_size": "d_model",
    "n_embd": "d_model",
    "num_hidden_layers": "n_layers",
    "n_layer": "n_layers",
    "num_attention_heads": "n_heads",
    "n_head": "n_heads",
    "num_key_value_heads": "n_kv_heads",
    "intermediate_size": "d_ff",
    "max_position_embeddings": "max_positions",
    "tie_word_embeddings": "tie_embeddings",
    "torch_dtype": "dtype",
}


def native_field_names() -> set[str]:
    """Every field; those of sections with dots."""
    nested = {f"{name}.{field}" for name in ("moe", "bias") for field in NATIVE_SECTIONS[name].model_fields}
    return {*TransformerConfig.model_fields, *nested}


def parse(fields: Mapping[str, object], origin: str) -> TransformerConfig:
    """The validated fields. Raises ConfigError for the first invalid field."""
    if "d_model" not in fields and {"hidden_size", "num_hidden_layers"} <= fields.keys():
        raise ConfigError(
            f"model_type 'transformer' is another library's in {origin}: hidden_size and num_hidden_layers are not "
            "fields of paramcalc's own family of that name",
            "flash-linear-attention has such configs; `paramcalc schema model` lists the fields that can be counted",
        )
    try:
        return TransformerConfig.model_validate(fields)
    except ValidationError as error:
        problem, hint = _told(error.errors())
        raise ConfigError(f"transformer: {problem} in {origin}", hint) from error


# -- errors for invalid fields ------------------------------------------------------------------------------------

ValidationFault = Mapping[str, Any]  # one of a ValidationError's errors
EXPECTED_TYPES = {
    "int_type": "a whole number",
    "bool_type": "true or false",
    "string_type": "a word",
    "list_type": "a list of sections, each for one or several layers",
}


def _told(faults: Iterable[ValidationFault]) -> tuple[str, str]:
    """The problem and a hint for the most informative error: an unknown key before a missing one."""
    ranked = sorted(faults, key=lambda fault: (fault["type"] != "extra_forbidden", fault["type"] == "missing"))
    at = max((_path(fault) for fault in ranked if _path(fault)[:1] == _path(ranked[0])[:1]), key=len)
    here = [fault for fault in ranked if _path(fault) == at]
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in at).removeprefix(".")
    problem = f"{where or repr('')} {_problem(here)}" if at else _problem(here)  # a key may be empty
    return problem, _hint(here[0], where)


def _path(fault: ValidationFault) -> tuple[str | int, ...]:
    """The keys to a field, without the tags by which pydantic distinguishes the alternatives of a union."""
    known = {*TransformerConfig.model_fields}.union(*(section.model_fields for section in NATIVE_SECTIONS.values()))
    last = len(fault["loc"]) - 1 if fault["type"] == "extra_forbidden" else -1
    return tuple(part for i, part in enumerate(fault["loc"]) if isinstance(part, int) or part in known or i == last)


def _problem(faults: list[ValidationFault]) -> str:
    """The problem of a field, of which each alternative of a union may state one."""
    fault = next((fault for fault in faults if fault["type"] == "value_error"), faults[0])
    value, limits = fault["input"], fault.get("ctx", {})
    match fault["type"]:
        case "missing":
            return "is required and missing"
        case "extra_forbidden":
            return "is not a field of it"
        case "value_error":
            return f"is impossible: {limits['error']}" if fault["loc"] else str(limits["error"])
        case "greater_than" | "greater_than_equal":
            return f"must be at least {limits['gt'] + 1 if 'gt' in limits else limits['ge']}, not {short_repr(value)}"
        case "less_than_equal":
            return out_of_range(value, limits["le"])
    return f"must be {' or '.join(map(_meant, faults))}, not {short_repr(value)}"


def _meant(fault: ValidationFault) -> str:
    """The values that one alternative accepts."""
    if fault["type"] == "literal_error":
        return str(fault["ctx"]["expected"]).replace("False", "false").replace("'", "")
    if fault["type"] == "model_type":
        section = next(s for s in NATIVE_SECTIONS.values() if s.__name__ == fault["ctx"]["class_name"])
        return f"a section ({', '.join(section.model_fields)})"
    return EXPECTED_TYPES[fault["type"]]


def _hint(fault: ValidationFault, where: str) -> str:
    every = "`paramcalc schema model` lists every field"
    if fault["type"] != "extra_forbidden":
        return every
    *_, section, last = ["", *(part for part in _path(fault) if isinstance(part, str))]
    if where in NATIVE_ALIASES:
        return f"paramcalc's own family calls it {NATIVE_ALIASES[where]}"
    fields = NATIVE_SECTIONS[section].model_fields if section else native_field_names()
    return nearest(last, fields, fallback=every)
