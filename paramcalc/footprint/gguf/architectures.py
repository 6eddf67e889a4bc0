"""llama.cpp's architectures: how each family's checkpoint becomes tensors of a GGUF file. Only differences are stated.

The classes of conversion/*.py (llama.cpp 0c1e570) and the loaders in src/models/*.cpp. Listed are the families whose
tensors were compared with the converter's and whose types with llama-quantize's, in tests/goldens_gguf.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Fusion = tuple[str, tuple[str, ...]]
QKV: Fusion = ("attn_qkv", ("attn_q", "attn_k", "attn_v"))
GATE_UP: Fusion = ("ffn_up", ("ffn_gate", "ffn_up"))
EXPERTS_GATE_UP: Fusion = ("ffn_gate_up_exps", ("ffn_gate_exps", "ffn_up_exps"))
SHARED_GATE_UP: Fusion = ("ffn_up_shexp", ("ffn_gate_shexp", "ffn_up_shexp"))
SHORT_CONV = (("ssm_in", "shortconv.in_proj"), ("ssm_conv1d", "shortconv.conv"), ("ssm_out", "shortconv.out_proj"))
DENSE = ("ffn_gate", "ffn_up", "ffn_down")

# How many query heads the tool finds for a key/value head: as the model has them, in the first layer alone (0 where it
# has no attention), or whatever the model has, as if there were one key/value head, or one for each query.
Heads = Literal["stated", "first layer", "one", "all"]
# What the tool takes for a model of 70B, from its layers and the query heads for a key/value head.
Size = Literal["never", "80 layers", "80 layers in groups", "68 layers"]


class Architecture(NamedTuple):
    """How llama.cpp stores one kind of model."""

    name: str
    fused: tuple[Fusion, ...] = ()  # matrices stored as one, rows after rows
    names: tuple[tuple[str, str], ...] = ()  # tensors that it calls otherwise
    drops: tuple[str, ...] = ()  # tensors that it leaves out
    lacks: tuple[str, ...] = ()  # tensors that it has no place for: the converter refuses
    splits_latent: bool = True  # latent attention's way up becomes keys and values
    llama3_rope: bool = False  # frequencies of a llama3 rope scaling become a tensor
    long_rope: bool = False  # so do both lists of factors of a longrope scaling
    kv_heads: Heads = "stated"
    mtp: Literal["dropped", "kept"] = "dropped"  # multi-token-prediction layers: not written, or after the others
    seventy_billion: Size = "never"


LLAMA = Architecture("llama", llama3_rope=True, seventy_billion="80 layers in groups")

# By model_type of the config.
ARCHITECTURES: dict[str, Architecture] = {
    **dict.fromkeys(("llama", "mistral", "mixtral", "internlm3", "iquestcoder"), LLAMA),
    "afmoe": Architecture("afmoe"),
    "arcee": Architecture("arcee", llama3_rope=True),
    "bamba": Architecture("granitehybrid", kv_heads="first layer"),
    "bloom": Architecture("bloom", fused=(QKV,)),
    "cohere": Architecture("command-r", lacks=("output",)),
    "cohere2": Architecture("cohere2"),
    "cohere2_moe": Architecture("cohere2moe"),
    "deepseek_v2": Architecture("deepseek2"),
    "deepseek_v3": Architecture("deepseek2"),
    "dots1": Architecture("dots1"),
    "ernie4_5": Architecture("ernie4_5"),
    "ernie4_5_moe": Architecture("ernie4_5-moe"),
    "exaone": Architecture("exaone", llama3_rope=True),
    "exaone4": Architecture("exaone4", llama3_rope=True),
    "falcon": Architecture("falcon", fused=(QKV,)),
    "falcon_mamba": Architecture("mamba"),
    "gemma": Architecture("gemma", drops=("output",)),
    "gemma2": Architecture("gemma2", drops=("output",)),
    "gemma3_text": Architecture("gemma3"),
    "glm": Architecture("chatglm", fused=(GATE_UP,)),
    "glm4": Architecture("glm4", fused=(GATE_UP,)),
    "glm4_moe": Architecture("glm4moe", mtp="kept"),
    "glm4_moe_lite": Architecture("deepseek2", mtp="kept"),
    **dict.fromkeys(("gpt2", "gpt-sw3"), Architecture("gpt2", fused=(QKV,))),
    "gpt_bigcode": Architecture("starcoder", fused=(QKV,), kv_heads="one"),
    "gpt_neox": Architecture("gptneox", fused=(QKV,)),
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
    "internlm2": Architecture("internlm2"),
    "jais2": Architecture("jais2", seventy_billion="68 layers"),
    "jamba": Architecture("jamba", kv_heads="first layer"),
    "laguna": Architecture("laguna"),
    "lfm2": Architecture("lfm2", names=SHORT_CONV, kv_heads="first layer"),
    "lfm2_moe": Architecture("lfm2moe", names=SHORT_CONV, lacks=("output",), kv_heads="first layer"),
    "llama4_text": Architecture("llama4", llama3_rope=True),
    "mamba": Architecture("mamba"),
    "mamba2": Architecture("mamba2"),
    "mellum": Architecture("mellum", lacks=DENSE),
    "minicpm": Architecture("minicpm", long_rope=True),
    "minicpm3": Architecture("minicpm3", splits_latent=False, long_rope=True),
    "minimax_m2": Architecture("minimax-m2"),
    "mpt": Architecture("mpt", fused=(QKV,)),
    "nemotron": Architecture("nemotron"),
    "olmo": Architecture("olmo", seventy_billion="80 layers"),
    "olmo2": Architecture("olmo2"),
    "olmo3": Architecture("olmo2"),
    "olmoe": Architecture("olmoe"),
    "phi": Architecture("phi2", lacks=("q_norm", "k_norm"), kv_heads="all"),
    "phi3": Architecture("phi3", fused=(QKV, GATE_UP), long_rope=True),
    "phimoe": Architecture("phimoe", long_rope=True),
    "qwen2": Architecture("qwen2", seventy_billion="80 layers"),
    "qwen2_moe": Architecture("qwen2moe", lacks=DENSE),
    "qwen3": Architecture("qwen3"),
    "qwen3_moe": Architecture("qwen3moe", lacks=DENSE),
    "seed_oss": Architecture("seed_oss"),
    "smollm3": Architecture("smollm3", llama3_rope=True),
    "solar_open": Architecture("glm4moe"),
    "stablelm": Architecture("stablelm"),
    "starcoder2": Architecture("starcoder2"),
}
