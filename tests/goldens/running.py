"""What the makers share that run models: one built on the CPU, quickly, of which only the language model is run."""

import inspect
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
import yaml
from transformers import initialization
from transformers.modeling_outputs import BaseModelOutputWithPooling

from tests.goldens import oracle

DRAWN = 300_000
"""Elements of the largest tensor that gets random values: to draw those of towers, which no text runs through, takes
minutes, and no shape depends on a value."""


def draw_little() -> None:
    """Leave larger tensors as they are allocated."""
    for name, draw in initialization.TORCH_INIT_FUNCTIONS.items():
        drawn = partial(if_small, draw)
        initialization.TORCH_INIT_FUNCTIONS[name] = drawn
        setattr(torch.nn.init, name, drawn)


def if_small(draw: Any, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    """The tensor, with the values that `draw` gives it, or without any."""
    return tensor if tensor.numel() > DRAWN else draw(tensor, *args, **kwargs)


def built(fields: dict[str, Any], dtype: torch.dtype) -> Any:
    """The model on the CPU, with eager attention."""
    cls = getattr(transformers, oracle.class_name(fields))
    config = oracle.config_from(fields)
    if cls.config_class is config.sub_configs.get("text_config"):
        config = config.get_text_config()
    torch.manual_seed(0)
    config._attn_implementation = "eager"
    return speaker(cls._from_config(config, dtype=dtype, attn_implementation="eager").eval())


def speaker(model: Any) -> Any:
    """The part that writes text, of a model that has no forward pass (Qwen's omni models) or needs an image (BLIP)."""
    if type(model).forward is torch.nn.Module.forward:
        return model.thinker
    pixels = inspect.signature(model.forward).parameters.get("pixel_values")
    if pixels is None or pixels.default is not inspect.Parameter.empty:
        return model
    return model.text_decoder if hasattr(model, "text_decoder") else model.language_model


def seen(model: Any, *, batch: int, tokens: int, source: int) -> dict[str, Any]:
    """What a class insists on besides text, in place of images: `source` vectors that a tower would have put out."""
    known, config = inspect.signature(model.forward).parameters, model.config
    if "perceiver_embeddings" in known:  # IDEFICS
        name = "perceiver_embeddings" if config.use_resampler else "image_encoder_embeddings"
        states = torch.zeros(batch, source, config.vision_config.embed_dim)
        return {name: states, "image_attention_mask": torch.ones(batch, tokens, 1)}
    if "image_embeds_position_mask" in known:  # Kosmos-2, whose image stands in the text
        first = torch.arange(tokens)[None].expand(batch, -1) < 1
        width = config.get_text_config().hidden_size
        return {"image_embeds": torch.zeros(batch, 1, width), "image_embeds_position_mask": first.long()}
    if "protein_input_ids" in known:  # Evolla, which makes latents of them, as many as its config says
        ids = 4 + torch.arange(source)[None].expand(batch, -1) % 20
        return {"protein_input_ids": ids, "protein_attention_mask": torch.ones_like(ids)}
    if "encoder_inputs_embeds" in known:  # Voxtral, whose encoder hears so many frames for each token
        frames = tokens * config.downsample_factor
        return {"encoder_inputs_embeds": torch.zeros(batch, frames, config.audio_config.hidden_size)}
    if "shared_kv_states" in known:  # Gemma 4's assistants, which write with the cache of the model that they assist
        embedded = torch.zeros(batch, tokens, 2 * config.backbone_hidden_size)
        given = {"inputs_embeds": embedded, "shared_kv_states": lent(model, batch, tokens)}
        return given | {"output_hidden_states": True}  # or else it cuts off inputs for each layer that it has not
    if "bbox" in known and config.is_encoder_decoder:  # UDOP, whose words have places
        return {"bbox": torch.zeros(batch, source, 4)}
    if (width := seen_width(model)) is not None:
        states = torch.zeros(batch, source, width)
        return {"encoder_outputs": BaseModelOutputWithPooling(states, states)}  # PP-FormulaNet attends to the latter
    return {}


def seen_width(model: Any) -> int | None:
    """Channels of what the encoder puts out, of a decoder beside an encoder of images; None for others."""
    config = model.config
    widths = {
        "VisionEncoderDecoderModel": lambda: config.encoder.hidden_size,
        "Pix2StructForConditionalGeneration": lambda: config.vision_config.hidden_size,
        "PPFormulaNetForConditionalGeneration": lambda: config.text_config.d_model,
    }
    known = widths.get(type(model).__name__)
    return None if known is None else known()


def lent(model: Any, batch: int, tokens: int) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Keys and values of the last layer of each type, as the layers of that type look for them."""
    found = {}
    for kind, layer in zip(model.config.get_text_config().layer_types, model.model.layers, strict=True):
        attn = layer.self_attn
        heads = attn.q_proj.out_features // attn.head_dim // attn.num_key_value_groups
        keys = torch.zeros(batch, heads, tokens, attn.head_dim)
        found[kind] = (keys, keys)
    return found


def decoder_config(config: Any) -> Any:
    """The config of what writes, where there are two (MusicGen) its decoder's."""
    return (
        config.decoder if config.model_type in ("musicgen", "musicgen_melody") else config.get_text_config(decoder=True)
    )


def codebooks(model: Any) -> int:
    """Rows of ids for each sequence that is written (MusicGen): one for each codebook."""
    named = type(model).__name__.startswith("Musicgen")
    return getattr(model.config, "decoder", model.config).num_codebooks if named else 1


def streams(model: Any) -> int | None:
    """Ids that stand for each token, where it is of several streams (Kyutai): one of text, and one of each codebook."""
    return model.config.num_codebooks + 1 if type(model).__name__.startswith("KyutaiSpeechToText") else None


def configs(name: str) -> list[dict[str, Any]]:
    """Small configs of a family that run, where its odd configs do not."""
    known: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "runs.yaml").read_text(encoding="utf-8"))
    return [{"model_type": name, **fields} for fields in known.get(name, ())]
