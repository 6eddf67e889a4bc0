"""What fields are for, whatever a family calls them: which follow a width or a depth, and which a word like d_ff means.

All by their canonical names; what stands in a section has dots.
"""

from __future__ import annotations

from collections.abc import Mapping

from paramcalc.base.errors import ParamcalcError
from paramcalc.config.fields import DEPTH_FIELDS
from paramcalc.config.schema import FieldValue

# What is as long as the model is deep, where no field says how deep that is.
PATTERN_FIELDS = ("hybrid_override_pattern", "layers_block_type", "layer_types", "attn_layers", "layers")
BLOCK_COUNT_FIELDS = ("num_blocks",)  # what holds in place of the depth where both are stated (xLSTM)
# Lists by layer whose lengths recipes check themselves.
PER_LAYER_FIELDS = (
    *PATTERN_FIELDS,
    "num_query_heads",
    "num_kv_heads",
    "ffn_multipliers",
    "compress_ratios",
    "mlp_layer_types",
)
# Lists that begin with the words of the first layers, which stay as many: dense ones, before those with experts.
DENSE_PREFIX_LISTS = {"mlp_layer_types": "dense", "moe_layer_freq": 0}
WIDTH_FIELD = "hidden_size"
NATIVE_LAYERS_FIELD = "layers"  # of paramcalc's own family: what each layer says of itself
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
# Key/value heads that are shared by other query heads than num_attention_heads.
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
# Embeddings of another width have projections; those that are as wide as the model have none.
EMBEDDING_WIDTH_FIELDS = ("word_embed_proj_dim", "embedding_size", "input_embedding_size", "output_embedding_size")
# What people call fields whatever the family calls them; the first one that the family has is meant.
FIELD_WORDS = {
    "d_model": (WIDTH_FIELD,),
    "n_layers": DEPTH_FIELDS,
    "n_heads": HEAD_COUNT_FIELDS,
    "n_kv_heads": KV_HEAD_COUNT_FIELDS,
    "d_ff": FFN_WIDTH_FIELDS,
    "n_experts": ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "moe.experts"),
    "top_k": ("num_experts_per_tok", "num_experts_per_token", "moe.top_k"),
}


def resolve_field_word(values: Mapping[str, FieldValue], name: str) -> str | None:
    """The key of the field that a word like n_layers means; None where the model has none, or it is no such word.

    Raises ParamcalcError where an encoder has one and a decoder another.
    """
    stated = [field for field in FIELD_WORDS.get(name, ()) if field in values and values[field].value is not None]
    if not stated:
        return None
    own, other = stated[0], _other_side(stated[0])
    if other != own and other in values and values[other].value is not None:
        sides = f"{values[own].key} or {values[other].key}"
        raise ParamcalcError(f"{name} may be {sides}, one of each side", "name the one that is meant, or both")
    return values[own].key


def _other_side(field: str) -> str:
    """What a decoder calls the field that an encoder has under this name."""
    return "num_decoder_layers" if field == "num_hidden_layers" else field.replace("encoder_", "decoder_", 1)
