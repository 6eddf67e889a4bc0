"""Roles of config fields: depth, width, heads, FFN width. They hold for every family.

A field appears under its canonical name. A field in a section has a dotted name.
"""

from __future__ import annotations

from collections.abc import Mapping

from paramcalc.base.errors import ParamcalcError
from paramcalc.config.fields import DEPTH_FIELDS
from paramcalc.config.schema import FieldValue

# Per-layer lists from which the depth is inferred if no depth field is present.
PATTERN_FIELDS = ("hybrid_override_pattern", "layers_block_type", "layer_types", "attn_layers", "layers")
BLOCK_COUNT_FIELDS = ("num_blocks",)  # takes precedence over the depth if both are stated (xLSTM)
# Per-layer lists whose lengths the recipes check.
PER_LAYER_FIELDS = (
    *PATTERN_FIELDS,
    "num_query_heads",
    "num_kv_heads",
    "ffn_multipliers",
    "compress_ratios",
    "mlp_layer_types",
)
# Per-layer lists that start with a fixed number of dense layers, before the MoE layers; the value of a dense entry.
DENSE_PREFIX_LISTS = {"mlp_layer_types": "dense", "moe_layer_freq": 0}
WIDTH_FIELD = "hidden_size"
NATIVE_LAYERS_FIELD = "layers"  # of paramcalc's own family: one entry per run of layers
HEAD_COUNT_FIELDS = (
    "num_attention_heads",
    "encoder_attention_heads",
    "decoder_attention_heads",
    "swa_num_attention_heads",
    "num_sliding_attention_heads",
    "attention_other_setting.num_attention_heads",
    "num_attention_heads_per_layer",
    "num_query_heads",
    "linear_attn_config.num_heads",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "mamba_n_heads",
    "mamba_num_heads",
    "n_mamba_heads",
    "linear_num_heads",
    "num_heads",
)
KV_HEAD_COUNT_FIELDS = (
    "num_key_value_heads",
    "num_kv_heads",
    "swa_num_key_value_heads",
    "num_global_key_value_heads",
    "attn_config.kv_n_heads",
)
# Key/value heads whose query heads are not num_attention_heads.
QUERY_HEADS_OF = {"swa_num_key_value_heads": "swa_num_attention_heads"}
HEAD_DIM_FIELDS = ("head_dim", "mamba_head_dim", "mamba_d_head", "linear_key_head_dim", "linear_value_head_dim")
FFN_WIDTH_FIELDS = (
    "intermediate_size",
    "moe_intermediate_size",
    "shared_expert_intermediate_size",
    "shared_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "shared_experts_intermediate_size",
    "dense_intermediate_size",
    "prefix_dense_intermediate_size",
    "intermediate_size_mlp",
    "share_expert_dim",
    "ff_intermediate_size",
    "feed_forward_size",
    "block_ff_dim",
    "dim_ff",
    "dff",
    "ffn_dim",
    "encoder_ffn_dim",
    "decoder_ffn_dim",
    "ffn_hidden_size",
    "ffn_config.ffn_hidden_size",
    "n_inner",
    "hidden_dim",
    "inner_hidden_size",
    "expert_ffn_hidden_size",
    "d_ff",
    "d_inner",
    "moe.d_ff",
    "lru_width",
    "mamba_d_ssm",
    "attention_hidden_size",
)
# An embedding has a projection only if its width differs from the width of the model.
EMBEDDING_WIDTH_FIELDS = ("word_embed_proj_dim", "embedding_size", "input_embedding_size", "output_embedding_size")
# Generic names of fields, for any family. A name stands for the first field in its list that the family has.
GENERIC_FIELD_NAMES = {
    "d_model": (WIDTH_FIELD,),
    "n_layers": DEPTH_FIELDS,
    "n_heads": HEAD_COUNT_FIELDS,
    "n_kv_heads": KV_HEAD_COUNT_FIELDS,
    "d_ff": FFN_WIDTH_FIELDS,
    "n_experts": ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "moe.experts"),
    "top_k": ("num_experts_per_tok", "num_experts_per_token", "moe.top_k"),
}


def resolve_generic_name(values: Mapping[str, FieldValue], name: str) -> str | None:
    """The key of the field that a generic name such as n_layers stands for.

    None if the model has no such field, or if the name is not generic. Raises ParamcalcError if an encoder and a
    decoder each have one.
    """
    stated = [
        field for field in GENERIC_FIELD_NAMES.get(name, ()) if field in values and values[field].value is not None
    ]
    if not stated:
        return None
    field, decoder_field = stated[0], _decoder_field(stated[0])
    if decoder_field != field and decoder_field in values and values[decoder_field].value is not None:
        candidates = f"{values[field].key} or {values[decoder_field].key}"
        raise ParamcalcError(f"{name} is ambiguous: {candidates}", "name one of the two, or both")
    return values[field].key


def _decoder_field(field: str) -> str:
    """The decoder's name for an encoder's field."""
    return "num_decoder_layers" if field == "num_hidden_layers" else field.replace("encoder_", "decoder_", 1)
