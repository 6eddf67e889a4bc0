"""llama.cpp's architectures: how each family's checkpoint becomes tensors of a GGUF file. Only differences are stated.

The classes of conversion/*.py (llama.cpp 0c1e570) and the loaders in src/models/*.cpp. Listed are the families whose
tensors were compared with the converter's and whose types with llama-quantize's, in tests/goldens/gguf.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from paramcalc.model import Model

Fusion = tuple[str, tuple[str, ...]]
QKV_FUSION: Fusion = ("attn_qkv", ("attn_q", "attn_k", "attn_v"))
GATE_UP: Fusion = ("ffn_up", ("ffn_gate", "ffn_up"))
LINEAR_QKV: Fusion = ("attn_qkv", ("linear_q", "linear_k", "linear_v"))
GATED_QUERY: Fusion = ("attn_q", ("attn_q", "attn_gate"))  # in layers of full attention
LINEAR_BA: Fusion = ("ssm_ba", ("ssm_alpha", "ssm_beta"))
EXPERTS_GATE_UP: Fusion = ("ffn_gate_up_exps", ("ffn_gate_exps", "ffn_up_exps"))
SHARED_GATE_UP: Fusion = ("ffn_up_shexp", ("ffn_gate_shexp", "ffn_up_shexp"))
SHORT_CONV = (("ssm_in", "shortconv.in_proj"), ("ssm_conv1d", "shortconv.conv"), ("ssm_out", "shortconv.out_proj"))
DENSE_FFN = ("ffn_gate", "ffn_up", "ffn_down")

# How many query heads the tool finds for a key/value head: as the model has them, in the first layer alone (0 where it
# has no attention), or whatever the model has, as if there were one key/value head, or one for each query.
KvHeadsRule = Literal["stated", "first layer", "one", "all"]
# What the tool takes for a model of 70B, from its layers and the query heads for a key/value head.
SeventyBillionRule = Literal["never", "80 layers", "80 layers in groups", "68 layers"]


class Architecture(NamedTuple):
    """How llama.cpp stores one kind of model."""

    name: str
    fused: tuple[Fusion, ...] = ()  # matrices stored as one, rows after rows
    names: tuple[tuple[str, str], ...] = ()  # tensors that it calls otherwise
    drops: tuple[str, ...] = ()  # tensors that it leaves out
    pads: tuple[str, ...] = ()  # tables that get as many rows as that of tokens
    lacks: tuple[str, ...] = ()  # tensors, or biases of them, that it has no place for: the converter refuses
    refuses: tuple[tuple[str, object], ...] = ()  # fields and values that the converter cannot deal with
    splits_latent: bool = True  # latent attention's way up becomes keys and values
    llama3_rope: bool = False  # frequencies of a llama3 rope scaling become a tensor
    full_rope: bool = False  # those of the layers of full attention are one in any case
    long_rope: bool = False  # so do both lists of factors of a longrope scaling
    kv_heads: KvHeadsRule = "stated"
    # Multi-token-prediction layers: not written; after the others, as many as the config says; as the checkpoint has.
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
