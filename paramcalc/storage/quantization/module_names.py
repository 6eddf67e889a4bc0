"""What the ecosystem calls a tensor: from paths in the tree to names of modules in checkpoints, and rules about them.

Quantisation configs speak of modules by their names in the reference classes: `model.layers.0.self_attn.q_proj`,
`lm_head`, `re:.*mlp.gate$`. WORDS is the one translation: for each part of a path the words that stand for it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from paramcalc.tree.weights import Weight

NUMBER = "{}"  # stands for the number of a layer or of an expert
# Words of the modules around a language model, which say nothing about which tensor is meant.
# Those of encoders and decoders too, where the model has one of the two.
STACK_PREFIXES = frozenset(("encoder", "decoder"))
WRAPPERS = frozenset(
    ("model", "language_model", "transformer", "text_model", "backbone", "gpt_neox", "base_model", "thinker", "llm")
)
PREFIXES = ("model.", "model.language_model.", "language_model.model.", "")
MAX_SYNONYMS = 3  # words for the modules around one that a regular expression is tried with: the most common come first
FUSED_QKV_NAMES = "qkv_proj qkv query_key_value c_attn W_pack Wqkv wqkv att_proj in_proj in_proj_qkv in_proj_qkvz"
GATE_NAMES = "in_proj_z in_proj_qkvz g_proj output_gate"
SYNONYM_TEXT = {
    "layers": "layers h blocks block layer",
    "attn": "self_attn attention attn self_attention mixer SelfAttention",
    "recurrent": "linear_attn mamba mixer temporal_block self_attn attn attention",  # an `attn` that is none
    "cross_attn": "encoder_attn cross_attn EncDecAttention crossattention",
    "mixer": "linear_attn mixer mamba self_attn temporal_block conv short_conv",
    "mamba": "mamba mixer",
    "ffn": "mlp feed_forward block_sparse_moe ffn moe mixer mlp_block DenseReluDense",
    "moe": "mlp block_sparse_moe feed_forward moe",
    "experts": "experts switch_mlp",
    "shared_experts": "shared_experts shared_expert shared_mlp",
    "shared_gate": "shared_expert_gate shared_experts_gate",
    "q_proj": f"q_proj wq query q wq_b {FUSED_QKV_NAMES}",
    "k_proj": f"k_proj wk key k {FUSED_QKV_NAMES}",
    "v_proj": f"v_proj wv value v {FUSED_QKV_NAMES}",
    "o_proj": "o_proj out_proj wo dense proj c_proj attn_out out linear_out o projection_layer",
    "out_proj": "out_proj o_proj",
    "q_a_proj": "q_a_proj fused_qkv_a_proj fused_qkv_a_proj_with_mqa wq_a",
    "q_b_proj": "q_b_proj wq_b",
    "kv_a_proj": "kv_a_proj_with_mqa kv_a_proj fused_qkv_a_proj fused_qkv_a_proj_with_mqa wkv_a",
    "kv_b_proj": "kv_b_proj wkv_b",
    "gate_proj": f"gate_proj w1 gate_up_proj wi_0 ff_proj input_linear {GATE_NAMES}",
    "inner": f"q_proj gate_proj {GATE_NAMES}",
    "up_proj": "up_proj w3 gate_up_proj fc1 linear_fc1 c_fc dense_h_to_4h fc_in wi_1 wi input_linear",
    "gate_up_proj": "gate_up_proj",
    "down_proj": "down_proj w2 fc2 linear_fc2 c_proj dense_4h_to_h fc_out ff_out wo output_linear",
    "z_proj": GATE_NAMES,
    "a_proj": "in_proj_a in_proj_ba a_proj",
    "b_proj": "in_proj_b in_proj_ba b_proj",
    "x_proj": "x_proj linear_x",
    "y_proj": "y_proj linear_y",
    "forget_a_proj": "f_a_proj",
    "forget_b_proj": "f_b_proj",
    "output_a_proj": "g_a_proj",
    "output_b_proj": "g_b_proj",
    "per_layer_proj": "per_layer_model_projection",
    "lm_head": "lm_head output embed_out head proj_out",
    "embed_tokens": "embed_tokens wte word_embeddings embed_in tok_embeddings embeddings",
    "vision_tower": "vision_tower vision_model visual vision_encoder vision_backbone vit vpm vision",
    "projector": "multi_modal_projector embed_vision mm_projector merger connector aligner mlp1",
    "audio_tower": "audio_tower audio_encoder speech_encoder audio embed_audio",
    "correction": "e_score_correction_bias correction_bias gate",
}
SYNONYMS = {part: tuple(words.split()) for part, words in SYNONYM_TEXT.items()}
# Words for modules in which several matrices are one, and what a wildcard or an expression must have in it to mean
# them: `*v_proj` is not meant for `qkv_proj`, nor `*up_proj` for `gate_up_proj`.
FUSED = {word: word for word in FUSED_QKV_NAMES.split()} | {
    "qkv_proj": "qkv",
    "gate_up_proj": "gate_up",
    "in_proj_ba": "in_proj_ba",
    "in_proj_qkv": "qkv",
    "in_proj_qkvz": "qkvz",
    "fused_qkv_a_proj": "fused",
    "fused_qkv_a_proj_with_mqa": "fused",
}
# Two parts of a path that are one module.
CONTEXT_SYNONYMS = {
    ("router", "gate"): ("gate", "router", "wg", "gate_linear"),
    ("per_layer", "gate"): ("per_layer_input_gate",),
    ("per_layer", "proj"): ("per_layer_projection",),
}
MTP_SYNONYMS = {"proj": ("eh_proj", "fc", "proj"), "lm_head": ("shared_head", "lm_head")}
# A rule about anything in here says that the whole tower is left alone: nobody quantises a part of one.
TOWER_SYNONYMS = frozenset((*SYNONYMS["vision_tower"], *SYNONYMS["projector"], *SYNONYMS["audio_tower"]))
# What a rule may name without there being a matrix of that name: nothing is lost where it matches none.
NOT_A_MATRIX = re.compile(
    r"norm|ln_|embed|wte|bias|conv|rotary|lm_head|mtp|eh_proj|head|sinks|A_log|dt_|shared_expert_gate|weights_proj"
)


class ModuleNames(NamedTuple):
    """What a tensor may be called: the words for each part of its module's name, and the numbers of its layers."""

    parts: tuple[tuple[str, ...], ...]
    layers: tuple[range, ...]
    experts: int
    first: int = 0  # number of the first layer of its stack: not 0 for multi-token prediction, which comes after all


def module_names(weight: Weight, depth: int) -> ModuleNames:
    """The names of the module that holds a tensor, in a model of so many layers."""
    path, parts = _path_and_synonyms(weight.name, recurrent=weight.category == "recurrent")
    if path[:1] != ("mtp",):
        return ModuleNames(parts, weight.layers, weight.experts)
    number = re.fullmatch(r"layer(?:_(\d+))?", path[1]) if len(path) > 1 else None
    if number is None:
        return ModuleNames((("mtp",), MTP_SYNONYMS.get(path[1], parts[1]), *parts[2:]), (), weight.experts)
    at = depth + int(number[1] or 0)  # published files number it as one more layer
    return ModuleNames(
        (("mtp",), SYNONYMS["layers"], (NUMBER,), *parts[2:]), (range(at, at + 1),), weight.experts, depth
    )


@lru_cache(maxsize=4096)
def _path_and_synonyms(name: str, *, recurrent: bool) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The parts of a module's path in the tree, and the words for each."""
    path = tuple(part for part in name.split(".")[:-1] if part not in WRAPPERS)
    parts: list[tuple[str, ...]] = []
    for before, part in zip(("", *path), path, strict=False):
        if (before, part) in CONTEXT_SYNONYMS:
            parts[-1] = CONTEXT_SYNONYMS[before, part]
        elif part == "expert" or (part[0].isdigit() and before == "layers"):
            parts.append((NUMBER,))
        else:
            words = SYNONYMS.get("recurrent" if part == "attn" and recurrent else part, ())
            parts.append(words if part in words else (*words, part))
    return path, tuple(parts)


@lru_cache(maxsize=4096)
def layer_module_names(names: ModuleNames, layer: int) -> tuple[str, ...]:
    """Names that the module of one layer may have, for regular expressions; the first expert stands for all."""
    numbers = iter((str(layer), "0"))
    filled = [(next(numbers, "0"),) if words == (NUMBER,) else words for words in names.parts]
    around = [words[:MAX_SYNONYMS] for words in filled[:-1]]
    return tuple(".".join(words) for words in product(*around, filled[-1])) if filled else ()


# -- rules -----------------------------------------------------------------------------------------------------------


class NamePattern(NamedTuple):
    """A rule's text, with the numbers taken out of it: equal rules about many layers are one."""

    parts: tuple[str, ...]  # empty: a regular expression
    regex: re.Pattern[str] | None
    exact: bool  # the whole name of a module, not part of it or a module around it
    digits: bool  # a regular expression that tells layers apart


@lru_cache(maxsize=4096)
def name_pattern(text: str, *, exact: bool) -> tuple[NamePattern, tuple[int, ...]]:
    """A rule's text as a pattern and the numbers in it.

    `re:` before it (compressed-tensors) or the signs of one (transformers) make it a regular expression; `*` is a
    wildcard; all else is the name of a module, or where not `exact` a part of one.
    """
    stated = text.removeprefix("re:")
    if text.startswith(("re:", ".*")) or set(stated) & set("\\^$|()[]+"):
        return NamePattern((), _compiled(stated), exact, _has_layer_digits(stated)), ()
    parts, numbers = [], []
    for part in stated.split("."):
        if part.isdigit():
            numbers.append(int(part))
            parts.append(NUMBER)
        elif part not in WRAPPERS and part != "weight":
            parts.append(part)
    return NamePattern(tuple(parts), None, exact, digits=False), tuple(numbers)


def _compiled(text: str) -> re.Pattern[str] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what an expression may mean in later versions of Python
            return re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return None


def _has_layer_digits(text: str) -> bool:
    return bool(re.search(r"\d", re.sub(r"\\d|\{[\d,]*\}|[a-z]\d|\d+-\d", "", text)) or re.search(r"\[\d-\d\]", text))


@lru_cache(maxsize=4096)
def pattern_matches(pattern: NamePattern, names: ModuleNames) -> bool:
    """Whether the pattern, numbers aside, speaks of this tensor's module."""
    if pattern.regex is not None:
        layer = names.layers[0].start if names.layers else 0
        return regex_matches(pattern.regex, names, layer)
    parts = pattern.parts
    if STACK_PREFIXES & set(parts) and not any(STACK_PREFIXES & set(words) for words in names.parts):
        parts = tuple(part for part in parts if part not in STACK_PREFIXES)
    return bool(parts) and any(_parts_match(parts, variant, exact=pattern.exact) for variant in _variants(names.parts))


def regex_matches(regex: re.Pattern[str], names: ModuleNames, layer: int) -> bool:
    """Whether a regular expression fits a name that the module may have in one layer."""
    *around, words = names.parts
    names = names._replace(parts=(*around, matching_words(words, regex.pattern)))
    prefixes = ("",) if regex.pattern.startswith(".*") and "model" not in regex.pattern else PREFIXES
    return any(regex.match(prefix + name) for name in layer_module_names(names, layer) for prefix in prefixes)


def matching_words(words: tuple[str, ...], text: str) -> tuple[str, ...]:
    """The words that a wildcard or an expression may be about."""
    return tuple(word for word in words if word not in FUSED or FUSED[word] in text)


def _variants(parts: tuple[tuple[str, ...], ...]) -> Iterator[tuple[tuple[str, ...], ...]]:
    """As it is; without the number of an expert, where all are one tensor; without a module around an FFN's layers."""
    yield parts
    if SYNONYMS["ffn"] in parts:
        at = parts.index(SYNONYMS["ffn"])
        yield parts[:at] + parts[at + 1 :]
    if SYNONYMS["experts"] in parts:
        at = parts.index(SYNONYMS["experts"])
        yield parts[: at + 1] + parts[at + 2 :]
    if parts and parts[0] == ("mtp",):
        yield parts[1:]


def _parts_match(wanted: tuple[str, ...], parts: tuple[tuple[str, ...], ...], *, exact: bool) -> bool:
    if exact and "*" not in "".join(wanted):
        return len(wanted) == len(parts) and all(map(_word_fits, wanted, parts))
    return any(_begins(wanted, parts[at:]) for at in range(len(parts)))


def _begins(wanted: tuple[str, ...], parts: tuple[tuple[str, ...], ...]) -> bool:
    """Whether the parts begin with what is wanted: a module holds all in it. A wildcard reaches over dots."""
    if not wanted:
        return True
    if not parts or not _word_fits(wanted[0], parts[0]):
        return bool(parts) and wanted[0].startswith("*") and _begins(wanted, parts[1:])
    return _begins(wanted[1:], parts[1:]) or (wanted[0].endswith("*") and _begins(wanted, parts[1:]))


def _word_fits(wanted: str, words: tuple[str, ...]) -> bool:
    return wanted in words or (
        "*" in wanted and any(fnmatchcase(word, wanted) for word in matching_words(words, wanted))
    )


def mentions_towers(text: str) -> bool:
    """Whether a rule speaks of what sees or hears beside the language model."""
    return not TOWER_SYNONYMS.isdisjoint(re.findall(r"\w+", text))
