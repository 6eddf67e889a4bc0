"""Architectures of llama.cpp: how the checkpoint of each family becomes tensors of a GGUF file, as differences.

Sources: the classes of conversion/*.py (llama.cpp 0c1e570) and the loaders in src/models/*.cpp. The table lists the
families whose tensors were compared with the converter and whose types with llama-quantize, in tests/goldens/gguf.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from paramcalc.model import Model

Fusion = tuple[str, tuple[str, ...]]
QKV_FUSION: Fusion = ("attn_qkv", ("attn_q", "attn_k", "attn_v"))
GATE_UP: Fusion = ("ffn_up", ("ffn_gate", "ffn_up"))
LINEAR_QKV: Fusion = ("attn_qkv", ("linear_q", "linear_k", "linear_v"))
GATED_QUERY: Fusion = ("attn_q", ("attn_q", "attn_gate"))  # in layers with full attention
LINEAR_BA: Fusion = ("ssm_ba", ("ssm_alpha", "ssm_beta"))
EXPERTS_GATE_UP: Fusion = ("ffn_gate_up_exps", ("ffn_gate_exps", "ffn_up_exps"))
SHARED_GATE_UP: Fusion = ("ffn_up_shexp", ("ffn_gate_shexp", "ffn_up_shexp"))
SHORT_CONV = (("ssm_in", "shortconv.in_proj"), ("ssm_conv1d", "shortconv.conv"), ("ssm_out", "shortconv.out_proj"))
DENSE_FFN = ("ffn_gate", "ffn_up", "ffn_down")

# The source of the GQA ratio in llama-quantize: the model's key/value heads; those of the first layer alone (ratio 0
# without attention); one key/value head, whatever the model has; or as many as query heads.
KvHeadsRule = Literal["stated", "first layer", "one", "all"]
# The models that llama-quantize classifies as 70B, from the number of layers and the GQA ratio.
SeventyBillionRule = Literal["never", "80 layers", "80 layers in groups", "68 layers"]


class Architecture(NamedTuple):
    """The differences of one llama.cpp architecture from the usual layout."""

    name: str
    fused: tuple[Fusion, ...] = ()  # matrices stored as one, concatenated by rows
    names: tuple[tuple[str, str], ...] = ()  # tensors with other names
    drops: tuple[str, ...] = ()  # tensors that are not stored
    pads: tuple[str, ...] = ()  # tables padded to the rows of the token embedding
    lacks: tuple[str, ...] = ()  # unsupported tensors or biases: the converter fails
    refuses: tuple[tuple[str, object], ...] = ()  # unsupported fields and values: the converter fails
    splits_latent: bool = True  # kv_b_proj of latent attention is stored as keys and values
    llama3_rope: bool = False  # the frequencies of a llama3 RoPE scaling are stored as a tensor
    full_rope: bool = False  # the frequencies of full-attention layers are always stored
    long_rope: bool = False  # both lists of factors of a LongRoPE scaling are stored
    kv_heads: KvHeadsRule = "stated"
    # MTP layers: not stored; stored after the others, as many as the config states; as many as the checkpoint has.
    mtp: Literal["dropped", "kept", "unstated"] = "dropped"
    seventy_billion: SeventyBillionRule = "never"


LLAMA = Architecture("llama", llama3_rope=True, seventy_billion="80 layers in groups")

# By model_type of the config.
ARCHITECTURES: dict[str, Architecture] = {
    **dict.fromkeys(("llama", "mistral", "mixtral", "internlm3", "iquestcoder"), LLAMA),
    "afmoe": Architecture("afmoe"),
    "arcee": Architecture("arcee", llama3_rope=True),
    "bamba": Architecture("granitehybrid", kv_heads="first layer"),
    "bloom": Architecture("bloom", fused=(QKV_FUSION,)),
    "cohere": Architecture("command-r", lacks=("output",)),
    "cohere2": Architecture("cohere2"),
    "cohere2_moe": Architecture("cohere2moe"),
    "deepseek_v2": Architecture("deepseek2"),
    "deepseek_v3": Architecture("deepseek2"),
    "deepseek_v32": Architecture("deepseek32", mtp="kept"),
    "dots1": Architecture("dots1"),
    "ernie4_5": Architecture("ernie4_5"),
    "ernie4_5_moe": Architecture("ernie4_5-moe"),
    "exaone": Architecture("exaone", llama3_rope=True),
    "exaone4": Architecture("exaone4", llama3_rope=True),
    "falcon": Architecture(
        "falcon",
        fused=(QKV_FUSION,),
        lacks=("attn_qkv.bias",),
        refuses=(("multi_query", False), ("parallel_attn", False)),
    ),
    "falcon_h1": Architecture("falcon-h1"),
    "falcon_mamba": Architecture("mamba"),
    "gemma": Architecture("gemma", drops=("output",)),
    "gemma2": Architecture("gemma2", drops=("output",)),
    "gemma3_text": Architecture("gemma3"),
    "gemma3": Architecture("gemma3"),
    "gemma3n_text": Architecture("gemma3n", pads=("per_layer_token_embd",)),
    **dict.fromkeys(("gemma4", "gemma4_text"), Architecture("gemma4", fused=(EXPERTS_GATE_UP,), full_rope=True)),
    "glm": Architecture("chatglm", fused=(GATE_UP,)),
    "glm_moe_dsa": Architecture("glm-dsa", mtp="kept"),
    "glm4": Architecture("glm4", fused=(GATE_UP,)),
    "glm4_moe": Architecture("glm4moe", mtp="kept"),
    "glm4_moe_lite": Architecture("deepseek2", mtp="kept"),
    **dict.fromkeys(("gpt2", "gpt-sw3"), Architecture("gpt2", fused=(QKV_FUSION,))),
    "gpt_bigcode": Architecture("starcoder", fused=(QKV_FUSION,), kv_heads="one"),
    "gpt_neox": Architecture("gptneox", fused=(QKV_FUSION,)),
    "gpt_oss": Architecture("gpt-oss"),
    "granite": Architecture("granite"),
    "granite_swa": Architecture("granite_swa"),
    "granitemoe": Architecture("granitemoe"),
    "granitemoe_swa": Architecture("granite_swa", fused=(EXPERTS_GATE_UP, SHARED_GATE_UP)),
    "granitemoehybrid": Architecture("granitehybrid", kv_heads="first layer"),
    "granitemoeshared": Architecture("granitemoe"),
    "hunyuan_v1_dense": Architecture("hunyuan-dense"),
    "hunyuan_v1_moe": Architecture("hunyuan-moe"),
    "hy_v3": Architecture("hy_v3", mtp="kept"),
    "internlm2": Architecture("internlm2", lacks=("attn_q.bias",)),
    "jais2": Architecture("jais2", seventy_billion="68 layers"),
    "jamba": Architecture("jamba", kv_heads="first layer"),
    "laguna": Architecture("laguna"),
    "lfm2": Architecture("lfm2", names=SHORT_CONV, kv_heads="first layer"),
    "lfm2_moe": Architecture("lfm2moe", names=SHORT_CONV, lacks=("output",), kv_heads="first layer"),
    **dict.fromkeys(("llama4", "llama4_text"), Architecture("llama4", llama3_rope=True)),
    "mamba": Architecture("mamba"),
    "mamba2": Architecture("mamba2"),
    "mellum": Architecture("mellum", lacks=DENSE_FFN),
    "minicpm": Architecture("minicpm", long_rope=True),
    "minicpm3": Architecture("minicpm3", splits_latent=False, long_rope=True),
    "minimax_m2": Architecture("minimax-m2"),
    **dict.fromkeys(("ministral3", "mistral3"), Architecture("mistral3", llama3_rope=True)),
    "mpt": Architecture("mpt", fused=(QKV_FUSION,)),
    "nemotron": Architecture("nemotron"),
    "nemotron_h": Architecture("nemotron_h_moe", kv_heads="first layer"),
    "olmo": Architecture("olmo", seventy_billion="80 layers"),
    "olmo2": Architecture("olmo2"),
    "olmo3": Architecture("olmo2"),
    "olmoe": Architecture("olmoe"),
    "phi": Architecture("phi2", lacks=("q_norm", "k_norm"), kv_heads="all"),
    "phi3": Architecture("phi3", fused=(QKV_FUSION, GATE_UP), long_rope=True),
    "phimoe": Architecture("phimoe", long_rope=True),
    "qwen2": Architecture("qwen2", seventy_billion="80 layers"),
    "qwen2_moe": Architecture("qwen2moe", lacks=DENSE_FFN),
    **dict.fromkeys(("qwen2_vl", "qwen2_5_vl"), Architecture("qwen2vl")),
    "qwen3": Architecture("qwen3"),
    "qwen3_moe": Architecture("qwen3moe", lacks=DENSE_FFN),
    "qwen3_5_text": Architecture("qwen35", fused=(LINEAR_QKV, GATED_QUERY), mtp="unstated"),
    "qwen3_5_moe_text": Architecture("qwen35moe", fused=(LINEAR_QKV, GATED_QUERY), lacks=DENSE_FFN, mtp="unstated"),
    "qwen3_next": Architecture(
        "qwen3next", fused=(LINEAR_QKV, GATED_QUERY, LINEAR_BA), lacks=DENSE_FFN, mtp="unstated"
    ),
    "qwen3_vl": Architecture("qwen3vl"),
    "seed_oss": Architecture("seed_oss"),
    "smollm3": Architecture("smollm3", llama3_rope=True),
    "solar_open": Architecture("glm4moe"),
    "stablelm": Architecture("stablelm", lacks=("q_norm", "k_norm")),
    "starcoder2": Architecture("starcoder2"),
}


def known_architecture(model: Model) -> Architecture | None:
    """The entry for a model; None where its family was not compared with llama.cpp.

    The one lookup by family in the engine: llama.cpp's converter goes by the class that config.json names.
    """
    return ARCHITECTURES.get(model.family)
