"""Draw odd configs for one family: unusual sizes and flipped flags that `transformers` accepts.

    python -m tests.goldens.odd llama --seed 1 --count 2

Prints entries for odd.yaml, to be appended to the family's list by hand: odd.yaml is the record, so
goldens do not change when a new release of `transformers` changes what would be drawn. Hand-written
entries find more, since they aim at the modelling code; drawn ones find what nobody thought of.
"""

import argparse
import copy
import dataclasses
import random
import textwrap
import zlib
from collections.abc import Iterator
from typing import Any

import yaml

from tests.goldens import oracle, store

FLAGS = (
    "bias",
    "tie_word",
    "norm",
    "parallel",
    "decoder_arch",
    "multi_query",
    "affine",
    "conv",
    "cross_att",
)
WIDTH = ("hidden_size", "n_embd", "d_model", "dim")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads")
DEPTH = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "depth")
DEPTH_2 = ("decoder_layers", "num_decoder_layers")
INNER = (
    "n_inner",
    "ffn_dim",
    "d_ff",
    "hidden_dim",
    "ffn_hidden_size",
    "encoder_ffn_dim",
    "decoder_ffn_dim",
)
EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")
POSITIONS = ("max_position_embeddings", "n_positions")
NESTED = ("text_config", "vision_config", "audio_config")

FLIPPED = 0.4
"""How many of the flags are flipped."""


def is_int(value: Any) -> bool:
    """True for a number, not for a flag."""
    return isinstance(value, int) and not isinstance(value, bool)


def choices(rng: random.Random) -> dict[tuple[str, ...], int]:
    """A consistent draw of sizes for the keys that may take them."""
    head_dim, heads = rng.choice([8, 16, 24, 32]), rng.choice([2, 4, 6, 8, 12])
    return {
        WIDTH: head_dim * heads * rng.choice([1, 1, 2]),
        HEADS: heads,
        ("decoder_attention_heads",): heads,
        KV_HEADS: rng.choice([k for k in (1, 2, 3, 4, 6) if heads % k == 0 and k < heads]),
        ("head_dim", "d_kv"): head_dim,
        DEPTH: rng.randint(2, 7),
        DEPTH_2: rng.randint(1, 5),
        EXPERTS: rng.choice([3, 4, 8]),
        ("num_experts_per_tok",): rng.choice([1, 2]),
        ("n_shared_experts",): rng.choice([1, 2]),
        ("q_lora_rank", "kv_lora_rank"): rng.choice([16, 24, 32]),
        ("qk_rope_head_dim",): rng.choice([8, 16]),
        ("qk_nope_head_dim", "v_head_dim"): rng.choice([8, 16, 32]),
        ("first_k_dense_replace", "decoder_sparse_step"): rng.choice([1, 2]),
        POSITIONS: rng.choice([33, 128, 512]),
        ("vocab_size",): rng.choice([97, 256, 1000, 1031]),
        ("embedding_size", "word_embed_proj_dim"): rng.choice([12, 20, 40]),
        ("state_size", "mamba_d_state"): rng.choice([4, 8, 12]),
        ("n_groups", "num_hidden_groups", "inner_group_num"): rng.choice([1, 2]),
    }


def mutate(config: dict[str, Any], rng: random.Random) -> None:
    """Change the shape-giving fields of a config in place."""
    for keys, value in choices(rng).items():
        for key in keys:
            if is_int(config.get(key)):
                config[key] = value
    for key, value in config.items():
        if isinstance(value, bool) and any(flag in key for flag in FLAGS) and rng.random() < FLIPPED:
            config[key] = not value
        elif key in INNER or ("intermediate" in key and is_int(value)):
            config[key] = rng.choice([48, 64, 96, 128, 160])
    reconcile(config)


def reconcile(config: dict[str, Any]) -> None:
    """Repair in place what some families insist on."""
    if is_int(config.get("pad_token_id")) and config["pad_token_id"] >= config.get("vocab_size", 0):
        config["pad_token_id"] = 0  # phi3
    if "attention_types" in config and "num_layers" in config:
        config["attention_types"] = [[["global"], config["num_layers"]]]  # gpt_neo
    if {"n_groups", "expand", "head_dim", "num_heads"} <= set(config):
        config["num_heads"] = config["hidden_size"] * config["expand"] // config["head_dim"]  # mamba2


def declared(config: Any) -> dict[str, Any]:
    """The keys a config class declares, with their values, without what it derives from them."""
    names = {field.name for field in dataclasses.fields(config)}
    fields = {key: value for key, value in config.to_dict().items() if key in names}
    for key in NESTED:
        if isinstance(fields.get(key), dict):
            fields[key] = declared(getattr(config, key))
    return fields


def start(model_type: str) -> dict[str, Any]:
    """What must be said for the class to build: the config of the type's default golden."""
    golden = store.read(store.count_file(model_type)).get("default")
    fields = golden["config"] if golden else {}
    return {key: value for key, value in fields.items() if key not in ("model_type", "architectures")}


def defaults(config: Any) -> dict[str, Any]:
    """What the class takes for keys that are left out: within a section that is stated, the section's own class."""
    fields = declared(config)
    nested = [key for key in NESTED if isinstance(fields.get(key), dict)]
    return fields | {key: declared(type(getattr(config, key))()) for key in nested}


def merged(fields: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The fields with the changes, sections key by key."""
    both = {key: merged(fields[key], changes[key]) for key in fields if isinstance(changes.get(key), dict)}
    return fields | changes | both


def sparse(fields: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    """Only the keys that differ from the defaults."""
    changed: dict[str, Any] = {}
    for key, value in fields.items():
        unstated = base.get(key)
        if isinstance(value, dict) and isinstance(unstated, dict):
            if inner := sparse(value, unstated):
                changed[key] = inner
        elif value != unstated:
            changed[key] = value
    return changed


def draw(model_type: str, seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Sparse configs that build and that all count differently."""
    stated = start(model_type)
    config = oracle.config_from({"model_type": model_type, **stated})
    base, unstated = declared(config), defaults(config)
    seen: set[int] = set()
    tried: list[dict[str, Any]] = []
    for attempt in range(count * 50):
        if len(seen) == count:
            return
        rng = random.Random(zlib.crc32(f"{seed}-{model_type}-{attempt}".encode()))
        fields = copy.deepcopy(base)
        for part in (fields, *(fields[key] for key in NESTED if isinstance(fields.get(key), dict))):
            mutate(part, rng)
        drawn = merged(stated, sparse(fields, unstated))
        if drawn in tried:
            continue
        tried.append(drawn)
        try:
            total = oracle.measure({"model_type": model_type, **drawn})["total"]
        except Exception:
            continue
        if total not in seen:
            seen.add(total)
            yield drawn


def entry(config: dict[str, Any]) -> str:
    """One list item of odd.yaml."""
    flow = yaml.safe_dump(config, default_flow_style=True, sort_keys=False, width=10**6).strip()
    pairs = flow.replace(": ", ":\N{NO-BREAK SPACE}")  # keep a key and its value on one line
    lines = textwrap.wrap(pairs, 100, initial_indent="  - ", subsequent_indent="     ", break_on_hyphens=False)
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def main() -> None:
    """Print the drawn configs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model_type")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2)
    args = parser.parse_args()
    for config in draw(args.model_type, args.seed, args.count):
        print(entry(config))


if __name__ == "__main__":
    main()
