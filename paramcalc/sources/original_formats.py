"""Configs in the format of a model's first release, as fields of Hugging Face: Meta's params.json, and Mamba's.

Only files whose every key is known are translated; a key that could be a part of the model is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from paramcalc.base.errors import SourceError
from paramcalc.sources.document import Document

Fields = Mapping[str, Any]

METADATA_KEYS = frozenset(("model_type", "name", "source", "published", "description", "_name_or_path"))
DTYPE_KEYS = frozenset(("dtype", "torch_dtype"))


def translated(document: Document) -> Document:
    """The document with fields of Hugging Face where it is in an original format; any other as it is.

    Raises SourceError for a key of the format that has no translation, or a size that is missing.
    """
    fields = document.fields
    for detect, translate in FORMATS:
        if detect(fields):
            return translate(document)
    return document


# -- Meta's params.json -----------------------------------------------------------------------------------------------

META_SIZES = frozenset(("dim", "n_layers", "n_heads"))
META_KEYS = META_SIZES | {
    *("n_kv_heads", "head_dim", "hidden_dim", "vocab_size", "multiple_of", "ffn_dim_multiplier"),
    *("norm_eps", "rope_theta", "use_scaled_rope", "max_seq_len", "max_batch_size", "sliding_window"),
    *("tie_word_embeddings", "dropout"),
}
TIED_BELOW = 4096  # Llama 3.2 1B and 3B share embedding and output, which the file does not say; larger ones do not


def is_meta(fields: Fields) -> bool:
    """The fields of ModelArgs in Meta's llama, under no model_type or under Llama's."""
    return (
        fields.keys() >= META_SIZES
        and fields.get("model_type") in (None, "llama", "mistral")
        and fields.keys().isdisjoint(("hidden_size", "num_hidden_layers", "architectures"))
    )


def translate_meta(document: Document) -> Document:
    """LlamaConfig of ModelArgs: an FFN of 2/3 of 4 d, times a factor, rounded up to a multiple (llama, model.py)."""
    fields, origin = document.fields, document.origin
    refuse_unknown(fields, META_KEYS, "params.json of Llama's first release", origin)
    d = whole(fields, "dim", origin)
    doubts = {}
    new = {
        "hidden_size": d,
        "num_hidden_layers": whole(fields, "n_layers", origin),
        "num_attention_heads": whole(fields, "n_heads", origin),
        "intermediate_size": meta_ffn_width(fields, d, origin),
    }
    new |= {ours: fields[key] for key, ours in META_NAMES.items() if fields.get(key) is not None}
    if fields.get("vocab_size") in (None, -1):
        doubts["vocab_size"] = "params.json does not state vocab_size; the 32,000 tokens of Llama 1 and 2 are assumed"
        new["vocab_size"] = 32000
    if d < TIED_BELOW and "tie_word_embeddings" not in fields:
        doubts["tie_word_embeddings"] = (
            "params.json does not say whether embedding and output share a matrix (--set tie_word_embeddings=true); "
            "they are counted apart"
        )
    model_type = "mistral" if fields.get("sliding_window") else "llama"
    return finished(document, new, model_type, "params.json", doubts)


META_NAMES = {
    "n_kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "vocab_size": "vocab_size",
    "norm_eps": "rms_norm_eps",
    "rope_theta": "rope_theta",
    "max_seq_len": "max_position_embeddings",
    "sliding_window": "sliding_window",
    "tie_word_embeddings": "tie_word_embeddings",
}


def meta_ffn_width(fields: Fields, d: int, origin: str) -> int:
    """The stated hidden_dim, or what FeedForward of Meta's llama makes of the width."""
    if fields.get("hidden_dim") is not None:
        return whole(fields, "hidden_dim", origin)
    hidden, factor = 2 * 4 * d // 3, fields.get("ffn_dim_multiplier")
    if factor is not None:
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < 1000:
            raise SourceError(f"ffn_dim_multiplier must be a positive number, not {factor!r} in {origin}")
        hidden = int(factor * hidden)  # a float in the reference too, whose product is cut
    multiple = whole(fields, "multiple_of", origin, default=256)
    return multiple * -(-hidden // multiple)


# -- Mamba's original config ------------------------------------------------------------------------------------------

MAMBA_KEYS = frozenset(
    (
        *("d_model", "n_layer", "vocab_size", "ssm_cfg", "rms_norm", "residual_in_fp32", "fused_add_norm"),
        *("pad_vocab_size_multiple", "tie_embeddings", "d_intermediate", "attn_layer_idx", "attn_cfg"),
    )
)
# Keys of ssm_cfg: arguments of the classes Mamba and Mamba2, with their names and defaults.
MAMBA1_CELL = {
    "d_state": ("state_size", 16),
    "d_conv": ("conv_kernel", 4),
    "expand": ("expand", 2),
    "dt_rank": ("time_step_rank", "auto"),
    "conv_bias": ("use_conv_bias", True),
    "bias": ("use_bias", False),
}
MAMBA2_CELL = {
    **{key: MAMBA1_CELL[key] for key in ("d_conv", "expand", "conv_bias", "bias")},
    "d_state": ("state_size", 128),
    "headdim": ("head_dim", 64),
    "ngroups": ("n_groups", 1),
    "chunk_size": ("chunk_size", 256),
}


def is_mamba(fields: Fields) -> bool:
    """The fields of MambaConfig in state-spaces/mamba, which has no model_type."""
    named = "model_type" in fields or "architectures" in fields
    return fields.keys() >= {"d_model", "n_layer", "ssm_cfg"} and not named


def translate_mamba(document: Document) -> Document:
    """MambaConfig of transformers: the vocabulary padded, the cell's arguments by their other names."""
    fields, origin = document.fields, document.origin
    what = "config of state-spaces/mamba"
    refuse_unknown(fields, MAMBA_KEYS, what, origin)
    cell = fields["ssm_cfg"]
    if not isinstance(cell, Mapping):
        raise SourceError(f"ssm_cfg must be a mapping, not {cell!r} in {origin}")
    second = cell.get("layer", "Mamba1") == "Mamba2"
    known = MAMBA2_CELL if second else MAMBA1_CELL
    refuse_unknown(cell, {*known, "layer"}, f"ssm_cfg in the {what}", origin)
    for key, built in (("d_intermediate", 0), ("attn_layer_idx", []), ("rms_norm", True)):
        if fields.get(key, built) != built:
            raise SourceError(f"{origin} is a {what} with {key}: that is not counted", "only plain Mamba layers are")
    if cell.get("layer", "Mamba1") not in ("Mamba1", "Mamba2"):
        raise SourceError(f"ssm_cfg.layer is {cell['layer']!r} in {origin}", "known: Mamba1, Mamba2")
    d, multiple = whole(fields, "d_model", origin), whole(fields, "pad_vocab_size_multiple", origin, default=8)
    rows = whole(fields, "vocab_size", origin, default=50277)
    new: dict[str, Any] = {
        "hidden_size": d,
        "num_hidden_layers": whole(fields, "n_layer", origin),
        "vocab_size": multiple * -(-rows // multiple),
        "tie_word_embeddings": fields.get("tie_embeddings", True),
        **{ours: cell.get(key, default) for key, (ours, default) in known.items()},
    }
    if second:
        inner, head = whole(new, "expand", origin) * d, whole(new, "head_dim", origin)
        if inner % head:
            raise SourceError(f"expand x d_model ({inner}) is not divisible by headdim ({head}) in {origin}")
        new["num_heads"] = inner // head
    return finished(document, new, "mamba2" if second else "mamba", "the original Mamba config", {})


# -- both --------------------------------------------------------------------------------------------------------------


def refuse_unknown(fields: Fields, known: Collection[str], what: str, origin: str) -> None:
    """Refuse keys that the format does not have: each may stand for a part of the model."""
    unknown = sorted(fields.keys() - {*known, *METADATA_KEYS, *DTYPE_KEYS})
    if unknown:
        raise SourceError(
            f"{origin} is a {what} with {', '.join(unknown)}: that is not counted",
            "give the config.json of the Hugging Face conversion",
        )


def whole(fields: Fields, key: str, origin: str, *, default: int | None = None) -> int:
    """A size. Raises SourceError for anything but a positive integer."""
    value = fields.get(key)
    value = default if value is None else value
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SourceError(f"{key} must be a positive integer, not {value!r} in {origin}")
    return value


def finished(document: Document, new: dict[str, Any], model_type: str, source: str, doubts: dict[str, str]) -> Document:
    """The document with the new fields, its metadata, and a note about the translation."""
    kept = {key: value for key, value in document.fields.items() if key in METADATA_KEYS | DTYPE_KEYS}
    note = f"{source} was translated to the fields of a {model_type} config"
    return document._replace(
        fields={"model_type": model_type, **kept, **new},
        notes=(note,),
        doubts=doubts,
    )


FORMATS: tuple[tuple[Callable[[Fields], bool], Callable[[Document], Document]], ...] = (
    (is_meta, translate_meta),
    (is_mamba, translate_mamba),
)
