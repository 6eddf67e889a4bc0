"""Which category a parameter belongs to, decided from the modules that hold it.

A parameter that no rule knows is an error, never a guess: a new family either fits the rules or
gets one. README.md beside this file defines the categories.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch import nn

TOWER_CATEGORIES = ("vision", "audio", "projector")


class Link(NamedTuple):
    """One step of a parameter's path: what `holder` keeps as `attribute`."""

    holder: nn.Module
    attribute: str

    @property
    def class_name(self) -> str:
        """The class of the holding module."""
        return type(self.holder).__name__


Test = Callable[[Link], bool]


def held_by(pattern: str) -> Test:
    """True if the class name of the holder matches."""
    return lambda link: re.search(pattern, link.class_name) is not None


def called(*attributes: str) -> Test:
    """True if the holder keeps it under one of these names."""
    return lambda link: link.attribute in attributes


def part(pattern: str, *attributes: str) -> Test:
    """True if a holder of that class keeps it under one of these names."""
    return lambda link: held_by(pattern)(link) and called(*attributes)(link)


def in_table(link: Link) -> bool:
    """True if the holder is an embedding table."""
    return isinstance(link.holder, nn.Embedding)


def dense_only(link: Link) -> bool:
    """True if the holder has a shared MLP and no experts beside it: then it is a plain MLP."""
    names = {name for name, _ in link.holder.named_children()}
    return link.attribute == "shared_mlp" and not names & {"block_sparse_moe", "experts"}


RULES: tuple[tuple[str, tuple[Test, ...]], ...] = (
    (
        "projector",  # some classes hold it within the tower
        (
            part(r"^(Qwen|Glm4v)\w*Vision\w*Model$", "merger", "deepstack_merger_list", "downsample"),
            called("image_newline"),
        ),
    ),
    (
        "vision",
        (
            called("vision_tower", "vision_model", "image_encoder", "img_processor", "visual", "vqmodel"),
            called("vision_encoder", "video_tower", "image_tower", "high_res_vision_model", "high_res_vision_neck"),
            called("vision_tokenizer", "vqmodel", "qformer"),
            part(r"^EvollaModel$", "protein_encoder"),
            part(r"^Udop(ForConditionalGeneration|(Encoder)?Model|Stack)$", "patch_embed", "embed_patches"),
            part(r"^(Pix2StructForConditionalGeneration|PPFormulaNetModel)$", "encoder"),
            part(r"^VisionEncoderDecoderModel$", "encoder"),
            part(r"^DeepseekVLHybridModel$", "high_res_vision_alpha", "high_res_vision_proj"),
            part(r"^JanusModel$", "generation_embeddings", "generation_aligner", "generation_head"),
            part(r"^GraniteDoclingModel$", "density_router"),
            part(r"^FuyuModel$", "vision_embed_tokens"),
            part(r"^NeoMMEModel$", "patch_embeddings"),
            part(r"^GotOcr2Model$", "vision_tower"),
            part(r"^Gemma4UnifiedModel$", "vision_embedder"),
        ),
    ),
    (
        "audio",
        (
            called("audio_tower", "acoustic_tokenizer_encoder", "semantic_tokenizer_encoder"),
            called("word_timestamp_encoder", "word_timestamp_head"),
            part(r"^Apertus1p5Model$", "audio_tokenizer"),
            called("codec_model"),
            part(r"^Phi4MultimodalAudioEmbedding$", "encoder"),
            part(r"^GraniteSpeech(Plus)?Model$", "encoder"),
            part(r"^Seamless", "speech_encoder", "t2u_model", "vocoder"),
            part(r"^VibeVoiceModel$", "latent_scaling_factor", "latent_bias_factor"),
            part(r"^VibeVoiceModel$", "diffusion_head"),
            part(r"^Moshi", "audio_encoder", "depth_decoder"),
            part(r"^Musicgen(Melody)?For(Cond|Unc)", "audio_encoder", "text_encoder"),
            part(r"^Qwen(2_5Omni|3OmniMoe)ForCond", "talker", "token2wav", "code2wav"),
        ),
    ),
    (
        "projector",
        (
            called(
                "multi_modal_projector",
                "mm_projector",
                "connector",
                "semantic_connector",
                "embed_vision",
                "embed_audio",
            ),
            called("aligner", "vision_projection", "visual_embeddings_table"),
            called(
                "view_separator", "vision_adapter", "resampler_model", "image_to_text_projection", "perceiver_resampler"
            ),
            part(r"^(Blip2|InstructBlip)", "query_tokens", "language_projection"),
            part(r"^VisionEncoderDecoderModel$", "enc_to_dec_proj"),
            part(r"^BlipModel$", "text_projection", "visual_projection", "logit_scale"),
            part(r"^MiniCPM\w+Model$", "merger"),
            part(r"^Granite4VisionModel$", "layerwise_projectors", "spatial_projectors"),
            part(r"^Cosmos3EdgeModel$", "projector"),
            part(r"^NemotronH_Omni", "vision_final_layernorm"),
            part(r"^(PaddleOCRVL|HyperCLOVAXVisionV2|VideoLlama3)Model$", "projector"),
            part(r"^GitModel$", "visual_projection", "img_temporal_embedding"),
            part(r"^Musicgen(Melody)?ForCond", "enc_to_dec_proj", "audio_enc_to_dec_proj"),
            part(r"^GraniteSpeech(Plus)?Model$", "projector"),
            held_by(r"^Phi4Multimodal(Image|Audio|Feature)Embedding$"),
        ),
    ),
    (
        "norm",
        (
            held_by(
                r"^(?!RobertaPreLayerNorm|ConvDropoutLayerNorm|DbrxNormAttentionNorm)"
                r".*R?[Nn]orm(?!edEmbedding|ConvLayer)"
            ),
        ),
    ),
    ("ffn", (dense_only, held_by(r"^EvollaFeedForward$"))),  # which a class of cross attention holds
    (
        "shared_experts",
        (
            called("shared_expert", "shared_experts", "shared_expert_gate", "shared_mlp"),
            part(r"^DogeCDMoE$", "gate_proj", "up_proj", "down_proj"),
        ),
    ),
    (
        "other",
        (
            held_by(r"(HyperConnection|HyperHead|AltUp|LaurelBlock|AttentionResidual|MessageGate|GatedResidual)$"),
            part(r"PLELayer$", "key_proj", "value_proj", "conv1d"),
            held_by(r"^(Bottleneck|OutputBottleneck|MvpPrompt)$"),
            part(r"^Gemma\w+Model$", "per_layer_model_projection", "altup_projections", "altup_unembed_projections"),
            part(r"^Gemma\w+DecoderLayer$", "per_layer_input_gate", "per_layer_projection", "layer_scalar"),
            part(r"AssistantForCausalLM$", "pre_projection", "post_projection", "masked_embedding"),
            part(r"^Blt", "patch_embedding_projection", "token_embedding_projection"),
            part(r"^NemotronHMoE$", "fc1_latent_proj", "fc2_latent_proj"),
            part(r"^DoryDecoderLayer$", "lambda_1", "lambda_2"),
            part(r"^DogeDecoderLayer$", "input_residual", "post_attention_residual"),
            part(r"^NeoMMEEncoderLayer$", "lambdas"),
            part(r"^DebertaV2Encoder$", "conv"),
            part(r"^EncoderDecoderModel$", "enc_to_dec_proj"),
            part(r"^HrmTextModel$", "z_L_init"),
            part(r"^Zamba2?HybridLayer$", "linear"),
            part(r"^MuseSparkMoE$", "pre_expert_proj", "post_expert_proj"),
            held_by(r"^MuseSparkResidualGate$"),
            part(r"RotaryEmbedding$", "alpha"),
            part(r"^IdeficsGatedCrossAttentionLayer$", "alpha_cross_attn", "alpha_dense"),
            part(r"^EvollaSequenceAlignerCrossAttention$", "gate_attention", "gate_ffw"),
            part(r"^ZayaModel$", "input_hidden_states_scale", "input_hidden_states_bias"),
            held_by(r"^ZayaResidualScaling$"),
            part(r"CrossAttentionDecoderLayer$", "cross_attn_attn_gate", "cross_attn_mlp_gate"),
        ),
    ),
    (
        "router",
        (
            held_by(r"(Router|TopKGating|MoEV1Gate)$"),
            part(r"SparseMoeBlock$", "expert_bias"),
            part(r"^DogeCDMoE$", "router_gate"),
        ),
    ),
    ("experts", (held_by(r"Experts$"), part(r"^DogeCDMoE$", "down_embed", "up_embed"))),
    (
        "recurrent",
        (
            held_by(r"(Mamba2?Mixer|^(Bamba|FalconH1)Mixer|MambaLayer)$"),
            held_by(
                r"(^Glm5NextTextLinearAttention|GatedDeltaNet|DeltaAttention|LightningAttention|RecurrentBlock|RwkvSelfAttention)$"
            ),
            held_by(r"ShortConv(olution)?$"),
            held_by(r"^xLSTMLayer$"),
        ),
    ),
    (
        "attention",
        (
            held_by(
                r"(SoftmaxScaling|Attention|Attn|(?<!GatedCross)AttentionLayer|AttentionBlock|Indexer|MLA|^JetMoeMoA)$"
            ),
            part(r"^SqueezeBertModule$", "post_attention"),
            called("relative_attention_bias"),
        ),
    ),
    (
        "ffn",
        (
            held_by(r"(MLP|Mlp|^FFN|FFN|FeedForward|FeedForwardNetwork|Dense(Gated)?ActDense|DenseGatedACT|FFNLayer)$"),
            held_by(r"(Intermediate|Output)$"),
            part(r"Layer$", "fc1", "fc2"),
            part(r"^AlbertLayer$", "ffn", "ffn_output"),
            part(r"^EncoderLayer$", "ffn"),
            part(r"^SqueezeBertModule$", "intermediate", "output"),
            held_by(r"SelfConditioning$"),
            part(r"^JetMoeMoE$", "bias"),
        ),
    ),
    (
        "embedding",
        (
            in_table,
            held_by(r"(Embeddings?|PositionEncoding)$"),
            part(r"^WhisperEncoder$", "conv1", "conv2"),
            part(r"^OPTDecoder$", "project_in"),
            part(r"^(AlbertTransformer|RemBertEncoder)$", "embedding_hidden_mapping_in"),
            called("embeddings_project"),
            part(r"^XLNetModel$", "mask_emb"),
        ),
    ),
    (
        "head",
        (
            called("lm_head", "score", "classifier", "qa_outputs", "classification_head"),
            part(r"Model$", "pooler"),
            part(r"^EsmModel$", "contact_head"),
            part(r"^DPR(Encoder|SpanPredictor)$", "encode_proj", "qa_classifier"),
            part(r"^Whisper", "proj_out", "projector"),
            part(r"^PerceiverBasicDecoder$", "final_layer"),
            part(r"^NeoMMEForMaskedLM$", "unembedding_projection"),
            part(r"^GPTNeoXJapaneseForCausalLM$", "embed_out"),
            part(r"^PI0ForConditionalGeneration$", "action_out_proj"),
            part(r"^(OPTDecoder|FSMTDecoder)$", "project_out", "output_projection"),
            part(r"^(Bert|Albert)(For|LMHead)", "cls", "predictions", "sop_classifier"),
            part(r"^DistilBertFor", "vocab_transform", "vocab_projector", "pre_classifier"),
            part(r"For(MaskedLM|CausalLM)$", "decoder"),
            part(
                r"(For[A-Z]|WithLMHead|LMHeadModel|DoubleHeads)",
                *("cls", "predictions", "generator_predictions", "generator_lm_head", "pred_layer", "head", "lm_loss"),
                *("projection_head", "embedding_decoder", "entity_predictions", "output", "logits_proj"),
                *("sequence_summary", "dense", "out_proj", "pooler", "start_logits", "end_logits", "answer_class"),
                *("discriminator_predictions", "lm_heads", "transform", "output_projection"),
                "multiple_choice_head",
            ),
        ),
    ),
)
"""In order of precedence: the first rule that any link of the path satisfies decides."""

REPORTED_AS = {"audio": "other"}
"""Audio towers are a category of their own here only to keep their norms out of `norm`."""


def category(path: Sequence[Link]) -> str:
    """The category of the parameter at the end of this path.

    Raises:
        LookupError: if no rule fits.
    """
    for name, tests in RULES:
        if any(test(link) for link in path for test in tests):
            return name
    where = " > ".join(f"{link.class_name}.{link.attribute}" for link in path)
    raise LookupError(f"no category for {where}: add a rule to classify.py")
