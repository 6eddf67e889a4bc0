"""Keys of published files that change no tensor: older versions, trainers and other implementations wrote them.

Totals are from transformers 5.24 on the meta device, which ignores these keys.
"""

from __future__ import annotations

from typing import Any

import pytest

import paramcalc
from paramcalc.reports.count import CountReport


def count(architecture: str, fields: dict[str, Any]) -> CountReport:
    return paramcalc.count(paramcalc.load({"architectures": [architecture], **fields}))


PUBLISHED: list[tuple[str, dict[str, Any], int]] = [
    (
        "BertForTokenClassification",
        {
            "model_type": "bert",
            "_num_labels": 9,
            "id2label": {"0": "0", "1": "1", "2": "2", "3": "3", "4": "4", "5": "5", "6": "6", "7": "7", "8": "8"},
            "finetuning_task": "ner",
            "output_past": True,
            "from_tf": False,
        },
        108_898_569,
    ),
    ("RobertaForQuestionAnswering", {"model_type": "roberta", "language": "english"}, 124_055_810),
    ("AlbertForMaskedLM", {"model_type": "albert", "layers_to_keep": []}, 206_368_944),
    (
        "CamembertForMaskedLM",
        {"model_type": "camembert", "attention_head_size": 64, "num_attention_head": 12},
        109_514_298,
    ),
    ("DebertaModel", {"model_type": "deberta", "padding_idx": 0}, 124_043_520),
    (
        "FunnelForPreTraining",
        {"model_type": "funnel", "rel_attn_type": "factorized", "type_vocab_size": 3},
        131_564_545,
    ),
    (
        "FNetForPreTraining",
        {"model_type": "fnet", "actual_seq_length": 512, "use_fft": True, "use_latest": True},
        83_486_722,
    ),
    ("NystromformerForMaskedLM", {"model_type": "nystromformer", "add_pooling_layer": False}, 109_122_240),
    ("ConvBertModel", {"model_type": "convbert", "num_groups": 2, "linear_groups": 2}, 77_368_968),
    (
        "NomicBertModel",
        {
            "model_type": "nomic_bert",
            "n_embd": 768,
            "n_layer": 12,
            "n_head": 12,
            "n_inner": 3072,
            "causal": False,
            "prenorm": False,
            "parallel_block": False,
            "qkv_proj_bias": False,
            "mlp_fc1_bias": False,
            "mlp_fc2_bias": False,
            "use_rms_norm": False,
            "fused_bias_fc": True,
        },
        136_731_648,
    ),
    (
        "TapasForQuestionAnswering",
        {"model_type": "tapas", "positive_weight": 10.0, "use_gumbel_for_agg": False},
        110_673_410,
    ),
    (
        "XLMWithLMHeadModel",
        {
            "model_type": "xlm",
            "id2lang": {"0": "en"},
            "lang2id": {"en": 0},
            "same_enc_dec": True,
            "share_inout_emb": True,
            "max_vocab": -1,
            "min_count": 0,
        },
        667_119_041,
    ),
    (
        "FlaubertWithLMHeadModel",
        {"model_type": "flaubert", "fp16": True, "langs": ["fr"], "word_mask": 0.8, "tokens_per_batch": -1},
        667_119_041,
    ),
    (
        "BartForConditionalGeneration",
        {"model_type": "bart", "classif_dropout": 0.1, "replacing_rate": 0, "_num_labels": 3},
        406_291_456,
    ),
    ("BlenderbotForConditionalGeneration", {"model_type": "blenderbot", "extra_layer_norm": False}, 2_696_268_800),
    (
        "ProphetNetForConditionalGeneration",
        {"model_type": "prophetnet", "decoder_max_position_embeddings": 514, "encoder_max_position_embeddings": 513},
        391_321_600,
    ),
    ("T5WithLMHeadModel", {"model_type": "t5"}, 60_506_624),
    ("UMT5EncoderModel", {"model_type": "umt5", "scalable_attention": True}, 146_941_952),
    ("GPTJForCausalLM", {"model_type": "gptj", "rotary": True}, 6_050_882_784),
    (
        "GPTNeoXForCausalLM",
        {"model_type": "gpt_neox", "custom_pipelines": {"text-generation": {"impl": "x"}}},
        20_554_567_680,
    ),
    ("CTRLLMHeadModel", {"model_type": "ctrl", "from_tf": False}, 1_637_964_550),
    ("OPTForCausalLM", {"model_type": "opt", "learned_embeddings": True, "scale_embeddings": False}, 125_239_296),
    (
        "FalconForCausalLM",
        {"model_type": "falcon", "new_decoder_architecture": True, "ffn_hidden_size": 16384, "ff_factor": 4},
        7_703_724_928,
    ),
    ("NemotronForCausalLM", {"model_type": "nemotron", "num_key_value_heads": 8, "rope_percent": 0.5}, 15_628_775_424),
    ("JambaForCausalLM", {"model_type": "jamba", "mamba_inner_layernorms": True}, 51_570_323_328),
    (
        "MambaForCausalLM",
        {
            "model_type": "mamba",
            "d_model": 768,
            "n_layer": 24,
            "hidden_size": 768,
            "num_hidden_layers": 24,
            "d_inner": 1536,
            "intermediate_size": 1536,
            "ssm_cfg": {},
            "rms_norm": True,
            "fused_add_norm": True,
            "pad_vocab_size_multiple": 8,
        },
        129_135_360,
    ),
    (
        "Zamba2ForCausalLM",
        {
            "model_type": "zamba2",
            "ffn_hidden_size": 8192,
            "state_size": 128,
            "ft_lora": False,
            "lora_rank": 128,
            "use_shared_block_lora": True,
        },
        2_481_848_336,
    ),
    (
        "Cohere2ForCausalLM",
        {
            "model_type": "cohere2",
            "layer_switch": 4,
            "order_of_interleaved_layers": "local_attn_first",
            "use_embedding_sharing": True,
            "use_gated_activation": True,
            "use_parallel_block": True,
        },
        34_980_831_232,
    ),
    (
        "LlamaForCausalLM",
        {
            "model_type": "llama",
            "transformers.js_config": {"dtype": "q4"},
            "max_seq_length": 2048,
            "eos_token_ids": [2],
        },
        6_738_415_616,
    ),
    (
        "BertForSequenceClassification",
        {
            "model_type": "bert",
            "sentence_transformers": {"version": "4.1.0"},
            "sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity",
            "num_labels": 1,
        },
        109_483_009,
    ),
    (
        "Blip2ForConditionalGeneration",
        {"model_type": "blip-2", "vision_config": {"num_channels": 3, "projection_dim": 512, "dropout": 0.0}},
        1_216_944_384,
    ),
    (
        "MiniMaxM3SparseForConditionalGeneration",
        {
            "model_type": "minimax_m3_vl",
            "num_reward_heads": 0,
            "multimodal_projector_bias": True,
            "process_image_mode": "dynamic_res",
            "vision_feature_layer": -1,
            "vision_config": {"projection_dim": 6144, "rope_mode": "3d", "vocab_size": 32000},
            "text_config": {
                "use_gemma_norm": True,
                "attention_output_gate": False,
                "use_qk_norm": True,
                "n_shared_experts": 1,
                "qk_norm_type": "per_head",
                "use_routing_bias": True,
            },
        },
        448_052_008_448,
    ),
    ("DPRQuestionEncoder", {"model_type": "dpr"}, 108_891_648),
]


@pytest.mark.parametrize(("architecture", "fields", "total"), PUBLISHED, ids=[case[0] for case in PUBLISHED])
def test_keys_of_published_files_leave_a_count_exact(architecture: str, fields: dict[str, Any], total: int) -> None:
    report = count(architecture, fields)
    assert (report.parameters.total, report.model.status, report.model.architecture) == (total, "exact", architecture)


@pytest.mark.parametrize(
    ("architecture", "fields", "key"),
    [  # the Hub's own class has other tensors than the one of that name in transformers
        (
            "BertForMaskedLM",
            {"model_type": "bert", "hidden_size": 768, "alibi_starting_size": 512},
            "alibi_starting_size",
        ),
        ("JinaBertForMaskedLM", {"model_type": "bert", "feed_forward_type": "geglu"}, "feed_forward_type"),
        ("GPT2LMHeadCustomModel", {"model_type": "gpt2", "attention_head_type": "multiquery"}, "attention_head_type"),
        ("EsmForMaskedLM", {"model_type": "esm", "vocab_size": 33, "add_bias_fnn": False}, "add_bias_fnn"),
        ("NomicBertModel", {"model_type": "nomic_bert", "num_experts": 8}, "num_experts"),
        ("NomicBertModel", {"model_type": "nomic_bert", "prenorm": True}, "prenorm"),
        ("BertForSequenceClassification", {"model_type": "bert", "_num_labels": 9}, "_num_labels"),
    ],
)
def test_keys_of_other_classes_are_doubts(architecture: str, fields: dict[str, Any], key: str) -> None:
    report = count(architecture, fields)
    assert report.model.status == "approximate"
    assert any(key in warning for warning in report.warnings)


def test_other_names_that_contradict_the_class_s_are_an_error() -> None:
    with pytest.raises(paramcalc.ParamcalcError, match="n_embd"):
        count("GPT2LMHeadModel", {"model_type": "gpt2", "hidden_size": 768, "n_embd": 1024})


@pytest.mark.parametrize(
    ("architecture", "fields", "total"),
    [  # of a file's two names for one thing the class knows one
        (
            "MambaForCausalLM",
            {"model_type": "mamba", "hidden_size": 768, "d_model": 96, "num_hidden_layers": 3},
            49_930_752,
        ),
        (
            "NomicBertForMaskedLM",
            {"model_type": "nomic_bert", "hidden_size": 768, "n_embd": 96, "num_hidden_layers": 3},
            52_392_000,
        ),
        ("FunnelForMaskedLM", {"model_type": "funnel", "d_head": 64, "head_dim": 20}, 131_003_706),
    ],
)
def test_names_that_a_class_does_not_know_are_doubts(architecture: str, fields: dict[str, Any], total: int) -> None:
    contradicted = count(architecture, fields)
    assert (contradicted.parameters.total, contradicted.model.status) == (total, "approximate")

    known = {key: value for key, value in fields.items() if key not in ("d_model", "n_embd", "head_dim")}
    agreed = count(architecture, known)
    assert (agreed.parameters.total, agreed.model.status) == (total, "exact")


def test_a_name_that_a_class_does_not_know_is_a_doubt_where_it_stands_alone() -> None:
    assert count("FunnelForMaskedLM", {"model_type": "funnel", "head_dim": 20}).model.status == "approximate"
    assert count("FunnelForMaskedLM", {"model_type": "funnel", "head_dim": 64}).model.status == "exact"


# -- the Hub's own classes ---------------------------------------------------------------------------------------


def test_mimo_has_its_further_layer_apart() -> None:
    fields = {"model_type": "mimo", "num_hidden_layers": 36, "num_key_value_heads": 8, "num_nextn_predict_layers": 1}
    parameters = count("MiMoForCausalLM", fields).parameters
    assert parameters.total + parameters.mtp == 7_833_409_536  # safetensors parameters of MiMo-7B-Base
    assert parameters.mtp == 210_790_400


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"model_type": "new", "position_embedding_type": "absolute"}, "position_embedding_type"),
        ({"model_type": "new", "layer_norm_type": "rms_norm"}, "layer_norm_type"),
        ({"model_type": "phi3small", "ff_dim_multiplier": 2}, "ff_dim_multiplier"),
        ({"model_type": "bailing_moe_v2", "multi_gate": True}, "multi_gate"),
        ({"model_type": "phi3_v", "img_processor": {"name": "siglip"}}, "img_processor"),
        ({"model_type": "phi3_v", "embd_layer": {"projection_cls": "linear"}}, "embd_layer"),
        ({"model_type": "internvl_chat", "use_llm_lora": 16}, "use_llm_lora"),
        ({"model_type": "internvl_chat", "llm_config": {"model_type": "bert"}}, "llm_config is a bert"),
    ],
)
def test_what_was_not_published_so_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(paramcalc.ParamcalcError, match=problem):
        paramcalc.load(fields)


def test_a_name_that_a_class_hears_of_too_late_is_a_doubt() -> None:
    """Zamba2 has picked its hybrid layers from layers_block_type before it hears of layer_types."""
    words, fields = ["linear_attention", "hybrid", "linear_attention"], {"model_type": "zamba2", "num_hidden_layers": 3}
    assert count("Zamba2ForCausalLM", fields | {"layer_types": words}).model.status == "approximate"
    assert count("Zamba2ForCausalLM", fields | {"layers_block_type": words}).model.status == "exact"
