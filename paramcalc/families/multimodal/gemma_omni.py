"""Gemma 3n and 4 with images and audio. In Gemma 4 each tower is built only if the file describes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paramcalc.base.symbolic import symbolic
from paramcalc.components import SharedReference
from paramcalc.components.vision import PatchEmbedding
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import gqa, sized_attention
from paramcalc.families.builders.audio import tower_norm
from paramcalc.families.builders.decoder import norms_around, rms
from paramcalc.families.builders.ffn import glu, mlp
from paramcalc.families.builders.towers import assume, tower, tower_in
from paramcalc.families.builders.vision_language import assemble_multimodal, text_alone
from paramcalc.families.registry import family, get_family
from paramcalc.tree.component import Component
from paramcalc.tree.containers import Block, Run, block, stack, stacks
from paramcalc.tree.leaves import Conv1d, Embedding, Linear, Norm, Param


def gemma_language_model(c: Config, head: str | None = None, **ours: Any) -> tuple[Component, Config]:
    """The language model and its view; the outer config ties the head, and decides the fields in `ours`."""
    kind = f"{c.family}_text"
    reading = get_family(kind).schema
    fixed = {} if text_alone(c) else {"tie_word_embeddings": c.tie_word_embeddings, **ours}
    view = c.section("text_config", reading._replace(fixed={**reading.fixed, **fixed}), family=kind, head=head)
    return get_family(kind).recipe(view), view


# -- audio -----------------------------------------------------------------------------------------------------------


def gemma_conformer_layer(a: Config, *, kernel: int, clipped: bool) -> Block:
    """Half an FFN, attention with relative positions, a gated convolution, half an FFN (2005.08100); no biases.

    `clipped`: each of its ten matrices has four bounds, which are buffers.
    """
    d, h, norm = a.hidden_size, a.num_attention_heads, tower_norm(a.hidden_size, bias=False)
    d_h = symbolic("d_h", d // h, origin="d / h, rounded down")
    relative = block(relative_proj=Linear(d_in=d, d_out=h * d_h), scale=Param(shape=(d_h,)))
    attn = sized_attention(d, h, d_h, inner=relative, out_in=d)
    ffn = block(norm=norm, ffn=mlp(a, None, bias=False), post_norm=norm)
    convolution = block(
        norm=norm,
        up=Linear(d_in=d, d_out=2 * d),
        conv=Conv1d(channels=d, kernel=kernel, bias=False),
        conv_norm=norm,
        down=Linear(d_in=d, d_out=d),
    )
    return block(
        ffn_1=ffn,
        attn_norm=norm,
        attn=attn,
        post_attn_norm=norm,
        convolution=convolution,
        ffn_2=ffn,
        norm=norm,
        bounds=Param(shape=(10, 4), buffer=True) if clipped else None,
    )


def per_convolution(a: Config, name: str, default: tuple[Any, Any]) -> tuple[Any, Any]:
    """A field with an entry for each of the two convolutions."""
    stated = a.list_of(name)
    a.require(stated is None or len(stated) == 2, f"{name} must have an entry for each of the two convolutions")
    return default if stated is None else (stated[0], stated[1])


def gemma3n_audio(a: Config) -> Block:
    """Two strided convolutions over a spectrogram, then a conformer (Gemma3nAudioEncoder)."""
    channels = [a.size("sscp_conv_channel_size", n) for n in per_convolution(a, "sscp_conv_channel_size", (128, 32))]
    kernels = per_convolution(a, "sscp_conv_kernel_size", ((3, 3), (3, 3)))
    strides = per_convolution(a, "sscp_conv_stride_size", ((2, 2), (2, 2)))
    bins, front, d_in = a.input_feat_size, {}, 1
    for i, (out, (height, width), (_, stride)) in enumerate(zip(channels, kernels, strides, strict=True)):
        conv = PatchEmbedding(width=out, channels=d_in, patch=(height, width), bias=False)
        front[f"conv_{i}"] = block(conv=conv, norm=tower_norm(out, bias=False))
        bins, d_in = (bins + 2 - width) // stride + 1, out
    left = symbolic("bins", bins, origin="input_feat_size after two strided convolutions")
    return block(
        "other",
        **front,
        proj=Linear(d_in=channels[-1] * left, d_out=a.hidden_size),
        layers=stack(
            "audio", Run(a.num_hidden_layers, gemma_conformer_layer(a, kernel=a.conf_conv_kernel_size, clipped=False))
        ),
    )


def gemma4_audio(a: Config) -> Block:
    """Two strided convolutions over a spectrogram, then a conformer and a projection (Gemma4AudioModel)."""
    first, last = (
        a.size("subsampling_conv_channels", n) for n in per_convolution(a, "subsampling_conv_channels", (128, 32))
    )
    convs = {
        f"conv_{i}": block(
            conv=PatchEmbedding(width=d_out, channels=d_in, patch=(3, 3), bias=False),
            norm=tower_norm(d_out, bias=False),
        )
        for i, (d_in, d_out) in enumerate(((1, first), (first, last)))
    }
    layer = gemma_conformer_layer(a, kernel=a.conv_kernel_size, clipped=a.use_clipped_linears)
    return block(
        "other",
        **convs,
        proj=Linear(d_in=first // 4 * last, d_out=a.hidden_size),
        layers=stack("audio", Run(a.num_hidden_layers, layer)),
        out=Linear(d_in=a.hidden_size, d_out=a.output_proj_dims, bias=True),
    )


# -- images ----------------------------------------------------------------------------------------------------------


TIMM_NETWORK_SIZES = {
    "mobilenetv5_300m_enc": 294_126_912
}  # a convolutional network of timm, whose sizes are in no config


def gemma3n_vision(v: Config) -> Block:
    """MobileNet V5 of timm."""
    v.require(v.network in TIMM_NETWORK_SIZES, f"vision_config names the network {v.network}, which is not known")
    size = symbolic(v.network, TIMM_NETWORK_SIZES[v.network], origin="timm's network of that name")
    return block("vision", network=Param(shape=(size,)))


@tower("gemma4_vision")
def gemma4_vision(v: Config) -> Block:
    """Gemma's layer with QK norms, and a table of positions for each axis (Gemma4VisionModel)."""
    d, norm = v.hidden_size, Norm(width=v.head_dim)
    layer = norms_around(rms(v), gqa(v, q_norm=norm, k_norm=norm), glu(v))
    bounds = Param(shape=(7, 4), buffer=True) if v.use_clipped_linears else None
    return block(
        "vision",
        patches=PatchEmbedding(width=d, channels=3, patch=(v.patch_size, v.patch_size), bias=False),
        positions=Param(shape=(2, v.position_embedding_size, d)),
        layers=stack("vision", Run(v.num_hidden_layers, block(**layer.items, bounds=bounds))),
        standardize=Param(shape=(2, d), buffer=True) if v.standardize else None,
    )


# -- complete models -------------------------------------------------------------------------------------------------


@family("gemma3n")
def gemma3n(c: Config) -> Component:
    """MobileNet for images, a conformer for audio, Gemma 3n (Gemma3nForConditionalGeneration)."""
    text, view = gemma_language_model(c)
    if text_alone(c):
        c.raw("vision_config")
        c.raw("audio_config")
        return text
    v, a = c.section("vision_config"), c.section("audio_config")

    def embedder(tower: Config) -> Block:
        d, norm = tower.hidden_size, rms(tower)
        table = Embedding(rows=tower.vocab_size, width=d)
        return block(table=table, hard_norm=norm, soft_norm=norm, proj=Linear(d_in=d, d_out=view.hidden_size))

    towers = {"vision": gemma3n_vision(v), "audio": gemma3n_audio(a)}
    for name, built in towers.items():
        assume(c, f"{name}_config", f"gemma3n_{name}", built)
    return assemble_multimodal(
        text,
        vision_tower=towers["vision"],
        audio_tower=towers["audio"],
        projector=block("projector", vision=embedder(v), audio=embedder(a)),
    )


def optional_section(c: Config, name: str) -> Config | None:
    """A view of a tower's section; None if the file has none, or the class is that of the language model alone."""
    stated = c.raw(name) is not None
    return c.section(name) if stated and not text_alone(c) else None


@family("gemma4")
def gemma4(c: Config) -> Component:
    """A ViT, a conformer for audio, Gemma 4, each tower optional (Gemma4ForConditionalGeneration)."""
    text, view = gemma_language_model(c)
    described = c.raw("vision_config") is not None and not text_alone(c)
    vision, v = tower_in(c, "vision_config") if described else (None, None)
    a = optional_section(c, "audio_config")
    widths = {"vision": v.hidden_size if v else None, "audio": a.output_proj_dims if a else None}
    return assemble_multimodal(
        text,
        vision_tower=vision,
        audio_tower=gemma4_audio(a) if a else None,
        projector=tower_projections(widths, view.hidden_size),
    )


def tower_projections(widths: dict[str, int | None], d_out: int) -> Block | None:
    """A projection from each tower's width to the language model's."""
    found = {name: Linear(d_in=width, d_out=d_out) for name, width in widths.items() if width is not None}
    return block("projector", **found) if found else None


@family("diffusion_gemma")
def diffusion_gemma(c: Config) -> Component:
    """Gemma 4 with experts, run as an encoder and again to denoise a block (DiffusionGemmaForBlockDiffusion).

    tie_word_embeddings ties all matrices and scales of the two runs, not only the tables; biases stay separate.
    """
    alone = c.head == "encoder"
    head, passes = ("none", 1) if alone else (None, 2 if c.tie_word_embeddings else 1)
    text, view = gemma_language_model(c, head=head, passes=passes)
    vision, v = tower_in(c, "vision_config")
    return assemble_multimodal(
        text if alone else with_denoiser(text, view),
        vision_tower=vision,
        projector=tower_projections({"vision": v.hidden_size}, view.hidden_size),
    )


def with_denoiser(text: Component, c: Config) -> Block:
    """The language model with a second input: the tokens of a block, and the last prediction for them."""
    parts, tied = dict(text.parts()), c.tie_word_embeddings
    table, norm, head = parts["embed_tokens"], parts["norm"], parts.pop("lm_head", None)
    second_pass: Component | None = parts["layers"].replace(role="denoiser", causal=False)
    if tied:
        second_pass = stack("denoiser", untied_layers(parts["layers"])) if c.attention_bias else None
    return block(
        **parts,
        block_tokens=table.replace(tied_to="embed_tokens" if tied else None),
        block_guess=block(norm=rms(c), ffn=glu(c)),
        block_layers=second_pass,
        block_norm=SharedReference(part=norm, owner="norm") if tied else norm,
        lm_head=head,
    ).replace(inexact="a block is denoised in as many steps as a schedule takes; one is counted")


def untied_layers(layers: Component) -> Iterator[Component]:
    """A second pass through the layers: shared matrices, but separate biases and scaling buffers."""
    numbered = (layer for run in stacks(layers)[0].runs for layer in [run.layer] * int(run.repeat))
    for number, layer in enumerate(numbered):
        parts = dict(layer.parts())
        scalar = parts.pop("scalar")
        own = [weight for weight in layer.weights() if weight.kind == "bias"]
        biases = {weight.name.split(".")[-2]: Param(shape=weight.shape, split=weight.split) for weight in own}
        yield block(
            again=SharedReference(part=block(**parts), owner=f"layers.{number}"),
            biases=block("attention", **biases),
            scalar=scalar,
        )


@family("gemma4_unified")
def gemma4_unified(c: Config) -> Component:
    """Gemma 4 with patches and waveforms projected directly (Gemma4UnifiedForConditionalGeneration)."""
    text, view = gemma_language_model(c)
    v, a = optional_section(c, "vision_config"), optional_section(c, "audio_config")
    widths = {"vision": v.output_proj_dims if v else None, "audio": a.audio_embed_dim if a else None}
    return assemble_multimodal(
        text, patches=unified_patches(v) if v else None, projector=tower_projections(widths, view.hidden_size)
    )


def unified_patches(v: Config) -> Block:
    """Patches with positions on each axis; norms before, after, and with positions."""
    side, d = v.patch_size * v.pooling_kernel_size, v.mm_embed_dim
    norm = Norm(width=d, bias=True)
    return block(
        "projector",
        patch_norm=Norm(width=3 * side * side, bias=True),
        patches=PatchEmbedding(width=d, channels=3, patch=(side, side)),
        norm=norm,
        positions=Param(shape=(v.mm_posemb_size, 2, d)),
        position_norm=norm,
    )
