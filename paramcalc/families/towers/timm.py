"""Vision networks of timm, by their name and the arguments of their constructor."""

from __future__ import annotations

from typing import NamedTuple

from paramcalc.base.symbolic import symbolic
from paramcalc.components.vision import PatchEmbedding
from paramcalc.config.view import Config
from paramcalc.families.builders.attention import mha
from paramcalc.families.builders.decoder import layer_norm, layer_scaled, pre_norm
from paramcalc.families.builders.ffn import mlp
from paramcalc.families.builders.towers import tower
from paramcalc.families.builders.vision import height_and_width
from paramcalc.tree.containers import Block, Run, block, stack
from paramcalc.tree.leaves import Param


class PerceptionEncoder(NamedTuple):
    """A Perception Encoder (2504.13181): the arguments of its constructor in timm 1.0.31."""

    img_size: int
    patch_size: int
    embed_dim: int
    depth: int
    num_heads: int
    mlp_ratio: float = 4.0
    class_token: bool = True
    core: bool = False  # ends in a norm and attention pooling
    scaled: bool = False  # layers with LayerScale


TIMM_ARGUMENTS = ("img_size", "patch_size", "hidden_size", "depth", "num_attention_heads", "mlp_ratio", "class_token")
GIGANTIC_MLP_RATIO = 8960 / 1536
PERCEPTION_ENCODERS = {
    "vit_pe_core_tiny_patch16_384": PerceptionEncoder(384, 16, 192, 12, 3, core=True),
    "vit_pe_core_small_patch16_384": PerceptionEncoder(384, 16, 384, 12, 6, core=True),
    "vit_pe_core_base_patch16_224": PerceptionEncoder(224, 16, 768, 12, 12, core=True),
    "vit_pe_core_large_patch14_336": PerceptionEncoder(336, 14, 1024, 24, 16, core=True),
    "vit_pe_core_gigantic_patch14_448": PerceptionEncoder(
        448, 14, 1536, 50, 16, GIGANTIC_MLP_RATIO, class_token=False, core=True
    ),
    "vit_pe_lang_large_patch14_448": PerceptionEncoder(448, 14, 1024, 23, 16, scaled=True),
    "vit_pe_lang_gigantic_patch14_448": PerceptionEncoder(
        448, 14, 1536, 47, 16, GIGANTIC_MLP_RATIO, class_token=False, scaled=True
    ),
    "vit_pe_spatial_tiny_patch16_512": PerceptionEncoder(512, 16, 192, 12, 3),
    "vit_pe_spatial_small_patch16_512": PerceptionEncoder(512, 16, 384, 12, 6),
    "vit_pe_spatial_base_patch16_512": PerceptionEncoder(512, 16, 768, 12, 12),
    "vit_pe_spatial_large_patch14_448": PerceptionEncoder(448, 14, 1024, 24, 16),
    "vit_pe_spatial_gigantic_patch14_448": PerceptionEncoder(
        448, 14, 1536, 50, 16, GIGANTIC_MLP_RATIO, class_token=False, scaled=True
    ),
}
POOLINGS = ("", "avg", "avgmax", "max", "token", "map")
# Convolutional networks, whose sizes are in no config: FastViT (2303.14189) and the image encoders of
# MobileCLIP, for training and with folded branches (`inference_mode`): parameters and buffers of each.
FASTVIT_SIZES = {
    "fastvit_t8": ((3_257_232, 27_334), (3_227_040, 3_658)),
    "fastvit_t12": ((6_528_704, 41_552), (6_483_840, 5_900)),
    "fastvit_s12": ((8_448_576, 41_552), (8_403_712, 5_900)),
    "fastvit_sa12": ((10_555_968, 35_402), (10_520_320, 7_950)),
    "fastvit_sa24": ((20_529_216, 58_752), (20_476_288, 15_900)),
    "fastvit_sa36": ((30_502_464, 82_102), (30_432_256, 23_850)),
    "fastvit_ma36": ((42_851_004, 97_462), (42_767_632, 28_314)),
    "fastvit_mci0": ((10_882_176, 50_802), (10_832_704, 11_030)),
    "fastvit_mci1": ((21_016_832, 89_552), (20_936_256, 22_060)),
    "fastvit_mci2": ((35_159_360, 124_708), (35_047_120, 30_128)),
    "fastvit_mci3": ((122_875_584, 165_722), (122_714_208, 35_756)),
    "fastvit_mci4": ((318_638_336, 229_084), (318_423_168, 55_854)),
}


@tower("timm_wrapper")
def timm_network(v: Config) -> Block:
    """The network of that name without its classifier (TimmWrapperModel)."""
    name = v.network
    if name in PERCEPTION_ENCODERS:
        return perception_encoder(v, PERCEPTION_ENCODERS[name])
    folded = v.section("model_args").inference_mode or not v.given
    parameters, buffers = FASTVIT_SIZES[name][folded]
    size, kept = (symbolic(name, count, origin="timm's network of that name") for count in (parameters, buffers))
    return block("vision", network=Param(shape=(size,)), statistics=Param(shape=(kept,), buffer=True))


def perception_encoder(v: Config, e: PerceptionEncoder) -> Block:
    """A ViT with learned and rotary positions; the config can override most arguments (timm's Eva)."""
    own = dict(zip(TIMM_ARGUMENTS, e, strict=False)) | {"global_pool": "map" if e.core else "avg"}
    a = v.section("model_args", v.section_schema("model_args")._replace(defaults=own))
    pool, d = a.global_pool, a.hidden_size
    a.require(pool in POOLINGS, f"global_pool {pool!r} is not known", f"known: {', '.join(POOLINGS)}")
    a.require(pool != "token" or a.class_token, "global_pool is token, and there is no class token")
    pooled_norm, last_norm = optional_flag(a, "use_fc_norm"), optional_flag(a, "use_post_transformer_norm")
    if pooled_norm is None:
        pooled_norm = e.core and pool == "avg"
    if last_norm is None:
        last_norm = e.core and not pooled_norm
    join = layer_scaled if a.raw("init_values") is not None or e.scaled else pre_norm
    norm, (height, width) = layer_norm(a), height_and_width(a, "img_size")
    places = symbolic("patches", (height // a.patch_size) * (width // a.patch_size), origin="img_size / patch_size")

    def hidden(ratio: float) -> int:
        return symbolic("d_ff", int(d * ratio), origin="embed_dim x mlp_ratio")

    layer = join(norm, mha(a), mlp(a, hidden(a.mlp_ratio)))
    token = Param(shape=(1, 1, d))
    pooling = block(probe=token, attn=mha(a), norm=norm, ffn=mlp(a, hidden(4.0 if e.core else a.mlp_ratio)))
    return block(
        "vision",
        patches=PatchEmbedding(width=d, channels=3, patch=(a.patch_size, a.patch_size), bias=False),
        class_token=token if a.class_token else None,
        positions=Param(shape=(1, places + (1 if a.class_token else 0), d)),
        pre_norm=norm,
        layers=stack("vision", Run(a.depth, layer)),
        norm=norm if last_norm else None,
        pooling=pooling if pool == "map" else None,
        pooled_norm=norm if pooled_norm else None,
    )


def optional_flag(a: Config, name: str) -> bool | None:
    """True or false, or None if the file omits the field."""
    value: bool | None = a.raw(name)
    a.require(value is None or isinstance(value, bool), f"{name} must be true or false, not {value!r}")
    return value
