"""dots3 with towers for images and audio."""

from __future__ import annotations

from paramcalc.base.symbolic import symbolic
from paramcalc.components import Conv2d, Mlp
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import equal_heads, mha, sized_attention
from paramcalc.families.builders.audio import tower_norm
from paramcalc.families.builders.decoder import layer_norm, pre_norm, rms
from paramcalc.families.builders.ffn import glu, moe
from paramcalc.families.builders.layer_types import DENSE, SPARSE, per_layer_overrides
from paramcalc.families.builders.projectors import two_layers
from paramcalc.families.builders.towers import tower, tower_in
from paramcalc.families.builders.vision import patches
from paramcalc.families.builders.vision_language import (
    assemble_multimodal,
    own_language_model,
    section_alone,
    text_alone,
)
from paramcalc.families.registry import family, get_family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Linear, Norm

DEFAULT_EXPERT_COUNTS = [-1] * 25 + list(range(4, 65, 4)) + [64]  # experts of each layer; dense if not positive
WHISPER_NAMES = {
    "d_model": "hidden_size",
    "encoder_attention_heads": "num_attention_heads",
    "encoder_layers": "num_hidden_layers",
    "encoder_ffn_dim": "intermediate_size",
    "num_mel_bins": "feature_size",
}


@tower("dots3_note_vision_encoder")
def dots3_vision(v: Config) -> Block:
    """Llama's layer with a growing number of experts in later layers, and a merger (Dots3NoteVisionModel)."""
    d, norm = v.hidden_size, rms(v)
    attn = mha(v, bias=v.attention_bias, qk_norm=Norm(width=equal_heads(v)))
    kinds = dots3_expert_counts(v)
    v.require(not (v.mlp_bias and any(count for count, _ in kinds)), "experts have no biases, and mlp_bias is true")
    v.require(v.adapter_in_dim == d, f"adapter_in_dim ({v.adapter_in_dim}) is not hidden_size ({d})")
    ffn = {
        kind: moe(v, v.moe_intermediate_size, experts=kind[0], top_k=kind[1], correction=True)
        if kind[0]
        else glu(v, bias=v.mlp_bias)
        for kind in dict.fromkeys(kinds)
    }
    layers = {kind: pre_norm(norm, attn, part) for kind, part in ffn.items()}
    wide = d * v.adapter_merge_size * v.adapter_merge_size
    return block(
        "vision",
        patches=patches(v),
        patch_norm=norm,
        layers=stack("vision", [layers[kind] for kind in kinds]),
        norm=norm,
        merger=block("projector", norm=layer_norm(v), **two_layers(wide, wide, v.adapter_out_dim)),
    )


def dots3_expert_counts(v: Config) -> list[tuple[int, int]]:
    """The experts of each layer (none in dense ones), and how many of them a token uses."""
    depth, used = v.num_hidden_layers, v.num_experts_per_tok
    pyramid = v.list_of("pyramid_num_routed") or (DEFAULT_EXPERT_COUNTS if v.raw("mlp_layer_types") is None else None)
    if pyramid is None:
        words = v.layer_words("mlp_layer_types", (DENSE, SPARSE)) or []
        sizes = [{"num_local_experts": v.num_local_experts, "num_experts_per_tok": used}] * depth
    else:
        v.require(all(isinstance(count, int) for count in pyramid), "pyramid_num_routed must be whole numbers")
        words = [SPARSE if count > 0 else DENSE for count in pyramid]
        fits = len(words) >= depth and (v.has("per_layer_config") or SPARSE not in words[depth:])
        v.require(fits, f"pyramid_num_routed has {len(words)} entries for {depth} layers")
        sizes = [{"num_local_experts": n, "num_experts_per_tok": min(used, n)} for n in pyramid]
    stated = per_layer_overrides(v, ["num_local_experts", "num_experts_per_tok"])
    if stated is not None:
        model = {"num_local_experts": v.num_local_experts, "num_experts_per_tok": used}
        sizes = [{**model, **layer} for layer in stated]
    pairs = zip(words[:depth], sizes[:depth], strict=True)
    return [tuple(size.values()) if word == SPARSE else (0, 0) for word, size in pairs]


@tower("dots3_note_audio_encoder")
def dots3_audio(v: Config) -> Block:
    """Three strided convolutions over a spectrogram, Llama's layers, two linear layers (Dots3NoteAudioModel).

    Published files have the sizes in a section with Whisper's names; the class ignores its other keys.
    """
    stated = v.raw("whisper_config") or {}
    w = v.section("whisper_config", v.section_schema("whisper_config")._replace(unused=stated))
    d, heads, depth, hidden, bins = (getattr(w, old) or getattr(v, new) for old, new in WHISPER_NAMES.items())
    c, norm = v.downsample_hidden_size, tower_norm(d, bias=False)
    v.require(d % heads == 0, f"the width ({d}) is not divisible by its {heads} heads")
    v.require(v.adapter_input_size == d, f"adapter_input_size ({v.adapter_input_size}) is not the width ({d})")
    attn = sized_attention(d, heads, symbolic("d_h", d // heads, origin="d / h"), bias=v.attention_bias, k_bias=False)
    layer = pre_norm(norm, attn, Mlp(width=d, hidden=hidden, gated=True, bias=True))
    again, left = (
        Conv2d(channels=c, kernel=3, per_group=c),
        symbolic("f", (bins + 7) // 8, origin="bins / 8, rounded up"),
    )
    return block(
        "other",
        conv_1=Conv2d(channels=c, kernel=3),
        conv_2=again,
        conv_3=again,
        conv_out=Linear(d_in=c * left, d_out=d),
        layers=stack("audio", Run(depth, layer)),
        norm=norm,
        adapter_norm=tower_norm(d),
        **two_layers(d, v.adapter_out_dim, v.adapter_out_dim),
    )


@family("dots3_note", ties="above")
def dots3_note(c: Config) -> Component:
    """A vision tower with a pyramid of experts, an audio encoder, dots3 (Dots3NoteForConditionalGeneration).

    Published files hold the language model's fields at the top.
    """
    if text_alone(c):
        if c.raw("text_config") is None:
            c.raw("vision_config"), c.raw("audio_config")
            return get_family("dots3_note_text").recipe(c)
        return section_alone(c, "vision_config", "audio_config")
    (vision, v), (audio, a) = tower_in(c, "vision_config"), tower_in(c, "audio_config")
    language, d = own_language_model(c, flat=True)
    c.require(v.adapter_out_dim == d, f"adapter_out_dim of vision_config ({v.adapter_out_dim}) is not {d}")
    c.require(a.adapter_out_dim == d, f"adapter_out_dim of audio_config ({a.adapter_out_dim}) is not {d}")
    return assemble_multimodal(language, vision_tower=vision, audio_tower=audio)
