"""Module names of checkpoints for the paths of the tree, and the patterns of rules that match them.

Quantisation configs refer to modules by their names in the reference classes: `model.layers.0.self_attn.q_proj`,
`lm_head`, `re:.*mlp.gate$`. SYNONYMS is the only translation: it lists the names in use for each part of a path.
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
# Enclosing modules that do not identify a tensor: `encoder` and `decoder` if the model has only one of the two, and
# the wrappers around a language model.
STACK_PREFIXES = frozenset(("encoder", "decoder"))
WRAPPERS = frozenset(
    ("model", "language_model", "transformer", "text_model", "backbone", "gpt_neox", "base_model", "thinker", "llm")
)
PREFIXES = ("model.", "model.language_model.", "language_model.model.", "")
# A regular expression is tried with so many names of each enclosing module; the most common names come first.
MAX_SYNONYMS = 3
FUSED_QKV_NAMES = "qkv_proj qkv query_key_value c_attn W_pack Wqkv wqkv att_proj in_proj in_proj_qkv in_proj_qkvz"
GATE_NAMES = "in_proj_z in_proj_qkvz g_proj output_gate"
SYNONYM_TEXT = {
    "layers": "layers h blocks block layer",
    "attn": "self_attn attention attn self_attention mixer SelfAttention",
    "recurrent": "linear_attn mamba mixer temporal_block self_attn attn attention",  # `attn` of a recurrent mixer
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
# Names of fused modules, and the text that a wildcard or a regular expression must contain to match them: `*v_proj`
# does not match `qkv_proj`, nor `*up_proj` `gate_up_proj`.
FUSED = {word: word for word in FUSED_QKV_NAMES.split()} | {
    "qkv_proj": "qkv",
    "gate_up_proj": "gate_up",
    "in_proj_ba": "in_proj_ba",
    "in_proj_qkv": "qkv",
    "in_proj_qkvz": "qkvz",
    "fused_qkv_a_proj": "fused",
    "fused_qkv_a_proj_with_mqa": "fused",
}
# Names of modules for two consecutive parts of a path.
CONTEXT_SYNONYMS = {
    ("router", "gate"): ("gate", "router", "wg", "gate_linear"),
    ("per_layer", "gate"): ("per_layer_input_gate",),
    ("per_layer", "proj"): ("per_layer_projection",),
}
MTP_SYNONYMS = {"proj": ("eh_proj", "fc", "proj"), "lm_head": ("shared_head", "lm_head")}
# A rule about one of these modules excludes the whole tower: no quantiser converts a part of a tower.
TOWER_SYNONYMS = frozenset((*SYNONYMS["vision_tower"], *SYNONYMS["projector"], *SYNONYMS["audio_tower"]))
# Names that a rule may list although the model has no such matrix: no warning if nothing matches.
NOT_A_MATRIX = re.compile(
    r"norm|ln_|embed|wte|bias|conv|rotary|lm_head|mtp|eh_proj|head|sinks|A_log|dt_|shared_expert_gate|weights_proj"
)


class ModuleNames(NamedTuple):
    """The possible names of a tensor's module: names for each part of the path, and the layer numbers."""

    parts: tuple[tuple[str, ...], ...]
    layers: tuple[range, ...]
    experts: int
    first: int = 0  # number of the first layer of its stack: MTP modules come after all layers of the model


def module_names(weight: Weight, depth: int) -> ModuleNames:
    """The names of the module that holds a tensor, in a model of `depth` layers."""
    path, parts = _path_and_synonyms(weight.name, recurrent=weight.category == "recurrent")
    if path[:1] != ("mtp",):
        return ModuleNames(parts, weight.layers, weight.experts)
    number = re.fullmatch(r"layer(?:_(\d+))?", path[1]) if len(path) > 1 else None
    if number is None:
        return ModuleNames((("mtp",), MTP_SYNONYMS.get(path[1], parts[1]), *parts[2:]), (), weight.experts)
    at = depth + int(number[1] or 0)  # checkpoints number an MTP module as one more layer
    return ModuleNames(
        (("mtp",), SYNONYMS["layers"], (NUMBER,), *parts[2:]), (range(at, at + 1),), weight.experts, depth
    )


@lru_cache(maxsize=4096)
def _path_and_synonyms(name: str, *, recurrent: bool) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The parts of a module's path in the tree, and the names in use for each part."""
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
    """Names of the module in one layer, for regular expressions; the first expert represents all."""
    numbers = iter((str(layer), "0"))
    filled = [(next(numbers, "0"),) if words == (NUMBER,) else words for words in names.parts]
    around = [words[:MAX_SYNONYMS] for words in filled[:-1]]
    return tuple(".".join(words) for words in product(*around, filled[-1])) if filled else ()


# -- rules -----------------------------------------------------------------------------------------------------------


class NamePattern(NamedTuple):
    """The text of a rule without its numbers, so that equal rules about many layers have one pattern."""

    parts: tuple[str, ...]  # empty: a regular expression
    regex: re.Pattern[str] | None
    exact: bool  # the full name of a module, not a part of it or an enclosing module
    digits: bool  # a regular expression that depends on the layer number


@lru_cache(maxsize=4096)
def name_pattern(text: str, *, exact: bool) -> tuple[NamePattern, tuple[int, ...]]:
    """The text of a rule as a pattern, and the numbers in it.

    The text is a regular expression if it starts with `re:` (compressed-tensors) or contains special characters
    (transformers). `*` is a wildcard. Any other text is the name of a module, or a part of one unless `exact`.
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
            warnings.simplefilter("ignore")  # such as a FutureWarning about nested sets
            return re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return None


def _has_layer_digits(text: str) -> bool:
    return bool(re.search(r"\d", re.sub(r"\\d|\{[\d,]*\}|[a-z]\d|\d+-\d", "", text)) or re.search(r"\[\d-\d\]", text))


@lru_cache(maxsize=4096)
def pattern_matches(pattern: NamePattern, names: ModuleNames) -> bool:
    """True if the pattern matches a name of the module, ignoring numbers."""
    if pattern.regex is not None:
        layer = names.layers[0].start if names.layers else 0
        return regex_matches(pattern.regex, names, layer)
    parts = pattern.parts
    if STACK_PREFIXES & set(parts) and not any(STACK_PREFIXES & set(words) for words in names.parts):
        parts = tuple(part for part in parts if part not in STACK_PREFIXES)
    return bool(parts) and any(_parts_match(parts, variant, exact=pattern.exact) for variant in _variants(names.parts))


def regex_matches(regex: re.Pattern[str], names: ModuleNames, layer: int) -> bool:
    """True if the regular expression matches a possible name of the module in one layer."""
    *around, words = names.parts
    names = names._replace(parts=(*around, matching_words(words, regex.pattern)))
    prefixes = ("",) if regex.pattern.startswith(".*") and "model" not in regex.pattern else PREFIXES
    return any(regex.match(prefix + name) for name in layer_module_names(names, layer) for prefix in prefixes)


def matching_words(words: tuple[str, ...], text: str) -> tuple[str, ...]:
    """The names that a wildcard or a regular expression may match; fused modules only if it contains their mark."""
    return tuple(word for word in words if word not in FUSED or FUSED[word] in text)


def _variants(parts: tuple[tuple[str, ...], ...]) -> Iterator[tuple[tuple[str, ...], ...]]:
    """The path; without the expert number, for experts in one tensor; without the module of an FFN or of MTP."""
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
    """True if the parts start with `wanted`, so that a rule covers submodules. A wildcard matches across dots."""
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
    """True if the rule mentions a vision tower, an audio tower or a projector."""
    return not TOWER_SYNONYMS.isdisjoint(re.findall(r"\w+", text))
