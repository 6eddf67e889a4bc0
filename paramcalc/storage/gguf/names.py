"""GGUF names of the parts of a model, and the tensors that are never quantised.

Sources in llama.cpp 0c1e570: gguf-py/gguf/constants.py (TENSOR_NAMES) for the names, `prepare_tensors` in
conversion/base.py and `tensor_allows_quantization` in src/llama-quant.cpp for unquantised tensors.
"""

from __future__ import annotations

from paramcalc.storage.gguf.type_rules import TypeRole

# (category, part) or (parent, part) of the component tree -> name in the file, without layer and suffix.
GGUF_NAMES: dict[tuple[str, str], str] = {
    ("embedding", "embed_tokens"): "token_embd",
    ("embedding", "positions"): "position_embd",
    ("embedding", "embed_per_layer"): "per_layer_token_embd",
    ("other", "per_layer_proj"): "per_layer_model_proj",
    ("other", "altup_proj"): "altup_proj",
    ("other", "altup_unembed"): "altup_unembd_proj",
    ("other", "router"): "altup_router",
    ("other", "predict"): "altup_predict_coef",
    ("other", "correct"): "altup_correct_coef",
    ("other", "down"): "laurel_l",
    ("other", "up"): "laurel_r",
    ("other", "gate"): "inp_gate",
    ("other", "proj"): "proj",
    ("head", "lm_head"): "output",
    ("attention", "q_proj"): "attn_q",
    ("attention", "k_proj"): "attn_k",
    ("attention", "v_proj"): "attn_v",
    ("attention", "o_proj"): "attn_output",
    ("attention", "sinks"): "attn_sinks",
    ("attention", "inner"): "attn_gate",
    ("attention", "q_a_proj"): "attn_q_a",
    ("attention", "q_b_proj"): "attn_q_b",
    ("attention", "kv_a_proj"): "attn_kv_a_mqa",
    ("attention", "kv_b_proj"): "attn_kv_b",
    ("indexer", "q_proj"): "indexer.attn_q_b",
    ("indexer", "k_proj"): "indexer.attn_k",
    ("indexer", "weights_proj"): "indexer.proj",
    ("ffn", "gate_proj"): "ffn_gate",
    ("ffn", "up_proj"): "ffn_up",
    ("ffn", "down_proj"): "ffn_down",
    ("experts", "gate_proj"): "ffn_gate_exps",
    ("experts", "up_proj"): "ffn_up_exps",
    ("experts", "down_proj"): "ffn_down_exps",
    ("shared_experts", "gate_proj"): "ffn_gate_shexp",
    ("shared_experts", "up_proj"): "ffn_up_shexp",
    ("shared_experts", "down_proj"): "ffn_down_shexp",
    ("shared_experts", "shared_gate"): "ffn_gate_inp_shexp",
    ("router", "gate"): "ffn_gate_inp",
    ("router", "proj"): "ffn_gate_inp",
    ("router", "correction"): "exp_probs_b",
    ("recurrent", "conv1d"): "ssm_conv1d",
    ("recurrent", "in_proj"): "ssm_in",
    ("recurrent", "x_proj"): "ssm_x",
    ("recurrent", "dt_proj"): "ssm_dt",
    ("recurrent", "A_log"): "ssm_a",
    ("recurrent", "D"): "ssm_d",
    ("recurrent", "out_proj"): "ssm_out",
    ("recurrent", "q_proj"): "linear_q",
    ("recurrent", "k_proj"): "linear_k",
    ("recurrent", "v_proj"): "linear_v",
    ("recurrent", "gate_proj"): "attn_gate",
    ("recurrent", "a_proj"): "ssm_alpha",
    ("recurrent", "b_proj"): "ssm_beta",
    ("recurrent", "o_proj"): "ssm_out",
}

# Parts that only MTP layers have.
MTP_NAMES = {"proj": "nextn.eh_proj", "embed_tokens": "nextn.embed_tokens", "lm_head": "nextn.shared_head_head"}

# Matrices that the converter writes in F32 and llama-quantize leaves in F32.
NEVER_QUANTISED = {
    "ffn_gate_inp",
    "ffn_gate_inp_shexp",
    "position_embd",
    "token_types",
    "ssm_conv1d",
    "ssm_a",
    "shortconv.conv",
    "altup_predict_coef",
    "altup_correct_coef",
}
# Matrices that the converter writes in F32 and llama-quantize quantises.
F32_CONVERTED = {"indexer.proj"}
# Matrices that llama-quantize leaves as the converter wrote them, in 16 bits.
AS_CONVERTED = {
    "per_layer_model_proj",
    "altup_proj",
    "altup_unembd_proj",
    "altup_router",
    "laurel_l",
    "laurel_r",
}


TABLE_ROLES: dict[str, TypeRole] = {
    "output": "output",
    "token_embd": "token_embd",
    "per_layer_token_embd": "token_embd",
}
ROLE_BY_SUFFIX: dict[str, TypeRole] = {
    "attn_qkv": "value",
    "attn_kv_b": "value",
    "attn_v": "value",
    "attn_k": "key",  # also that of an indexer
    "attn_q": "query",
    "attn_output": "attn_output",
}
ROLE_BY_SUBSTRING: dict[str, TypeRole] = {"ffn_up": "up", "ffn_gate": "gate", "ffn_down": "down"}
OTHER_ROLE: TypeRole = "other"


def tensor_role(name: str) -> TypeRole:
    """The role of a tensor in the type rules, from its name (tensor_get_category in src/llama-quant.cpp)."""
    if name in TABLE_ROLES:
        return TABLE_ROLES[name]
    by_suffix = next((role for end, role in ROLE_BY_SUFFIX.items() if name.endswith(end)), OTHER_ROLE)
    if by_suffix != OTHER_ROLE:
        return by_suffix
    return next((role for part, role in ROLE_BY_SUBSTRING.items() if part in name), OTHER_ROLE)
