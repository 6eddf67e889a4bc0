"""Draw odd configs for a family until every key that changes a shape has been moved in one of them.

    python -m tests.goldens.draw cohere2 --seed 1 --count 4       # prints a YAML entry

What odd.py does for a family whose keys it knows, without knowing them: shrink the default config, change each key of
it and of its nested sections alone and see which ones change a shape, then move all of those at once, keeping only what
builds (and runs, if the shrunken model runs on the CPU). The draws are kept in odd/drawn-*.yaml.
"""

import argparse
import copy
import dataclasses
import inspect
import logging
import random
import re
import signal
import sys
import time
import zlib
from collections.abc import Iterator
from typing import Any

import torch
import transformers
import yaml
from transformers import PretrainedConfig
from transformers.models.auto import configuration_auto

from tests.goldens import oracle

logging.disable(logging.CRITICAL)
torch.set_num_threads(1)

Path = tuple[str, ...]

WIDTH = r"^(hidden_size|n_embd|d_model|dim|emb_dim|embedding_dim|dim_model|n_embed|model_dim|hidden_dim)$"
HEADS = r"^(num_attention_heads|n_heads?|num_heads|(encoder|decoder)_attention_heads|attention_heads|num_query_heads)$"
KV = r"^(num_key_value_heads|num_kv_heads|n_head_kv|n_kv_heads|num_attention_groups)$"
DEPTH = (
    r"^(num_hidden_layers|n_layers?|num_layers|encoder_layers|decoder_layers|num_(en|de)coder_layers|num_blocks"
    r"|n_hidden_layers|depth)$"
)
INNER = r"(intermediate_size|ffn_dim|^d_ff|^n_inner|^d_inner|ffn_hidden_size|^dim_ff|inner_dim|ffn_size|^filter_size)$"
VOCAB = r"vocab_size$|^vocab$"
HEAD_DIM = r"^(head_dim|d_kv|kv_channels|dim_head|attention_head_dim|global_head_dim|swa_head_dim)$"
EXPERTS = r"^(num_experts|num_local_experts|n_routed_experts|moe_num_experts|moe_n_experts|num_routed_experts)$"
TOP_K = r"(num_experts_per_tok|num_experts_per_token|moe_top_?k|moe_k|num_selected_experts|^top_k|n_activated_experts)$"
POSITIONS = (
    r"^(max_position_embeddings|n_positions|n_ctx|max_source_positions|max_target_positions|"
    r"max_sequence_length)$"
)
SKIP = (
    r"(_token_id|_token_index|_ids?|dropout|drop|_pdrop|_eps|epsilon|rope_theta|initializer|_std|_coef|_init|use_cache"
    r"|scaling|return_|output_hidden|output_attentions|chunk_size_feed|problem_type|transformers_version|architectures"
    r"|id2label|label2id|num_labels|torch_dtype|^dtype|_attn_impl|model_type|pretraining_tp|finetuning|prefix|_name_or"
    r"|rope_parameters|quantization|generation|sampling_rate|temperature|_prob$|seed|_scale$|loss|softcap|routed_scaling"
    r"|is_decoder|is_encoder_decoder|index_topk|n_group$|topk_group|base_model|auto_map|per_layer_config$)"
)
WORDS: dict[str, list[Any]] = {
    "feed_forward_proj": ["gated-gelu", "relu"],
    "position_embedding_type": ["absolute", "relative_key", "rotary", "none", "learned", "rope", "alibi", "nope"],
    "hidden_act": ["relu", "silu", "relu2", "swiglu", "geglu"],
    "activation_function": ["relu", "silu", "swiglu", "geglu"],
    "norm_type": ["layernorm", "rmsnorm", "layer_norm", "rms_norm"],
    "embedding_type": ["absolute", "rotary"],
    "mamba_dt_rank": [5],
    "time_step_rank": [5],
    "dt_rank": [5],
    "attention_type": ["factorized", "relative_shift", "original_full", "block_sparse"],
    "conv_type": ["conv", "linear"],
    "chunk_mode": ["chunk"],
    "attn_type": ["bi", "uni"],
    "encoder_attention_type": ["local", "transient-global"],
    "separate_cls": [True, False],
    "pooling_type": ["mean", "max"],
    "weight_mode": ["single", "fused"],
}
KINDS = [
    "full_attention",
    "sliding_attention",
    "linear_attention",
    "chunked_attention",
    "attention",
    "mamba",
    "mamba2",
    "conv",
    "recurrent",
    "moe",
    "mlp",
    "dense",
    "sparse",
    "hybrid",
    "global",
    "local",
    "kda",
    "gdn",
    "lightning",
    "hash_moe",
    "compressed_sparse_attention",
    "heavily_compressed_attention",
    "minimax_m3_sparse",
    "block_sparse_attention",
    "shared",
    "full",
    "cross_attention",
]


class TimeLimitError(Exception):
    """A build or run took too long."""


def alarm(*_: Any) -> None:
    raise TimeLimitError


signal.signal(signal.SIGALRM, alarm)


def is_int(value: Any) -> bool:
    """True for a number, not for a flag."""
    return isinstance(value, int) and not isinstance(value, bool)


def put(fields: dict[str, Any], path: Path, value: Any) -> None:
    """Set a nested key in place."""
    for key in path[:-1]:
        fields = fields.setdefault(key, {})
    fields[path[-1]] = value


def get(fields: dict[str, Any], path: Path) -> Any:
    """A nested key, None if it is not set."""
    for key in path:
        if not isinstance(fields, dict) or key not in fields:  # type: ignore[redundant-expr]
            return None
        fields = fields[key]
    return fields


def sections(config: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The config and every config nested in it."""
    yield path, config
    for key, value in vars(config).items():
        if isinstance(value, PretrainedConfig):
            yield from sections(value, (*path, key))


class Family:
    """One model_type while it is being drawn."""

    def __init__(
        self, model_type: str, base: dict[str, Any] | None = None, seconds: float = 60.0, seed: int = 1
    ) -> None:
        self.model_type = model_type
        self.seed = seed
        self.class_name = (base or {}).get("architectures", [oracle.main_class(model_type)])[0]
        self.start = base or {}
        self.deadline = time.time() + seconds
        self.cache: dict[str, int | None] = {}
        self.check_run = False
        self.complete = True
        self.notes: list[str] = []
        self.fixed_sections: dict[Path, str] = {}
        self.sensitive: dict[Path, list[Any]] = {}
        cls = getattr(transformers, self.class_name)
        text = "".join(
            inspect.getsource(sys.modules[module])
            for module in {
                cls.__module__,
                cls.config_class.__module__,
                configuration_auto.CONFIG_MAPPING[model_type].__module__,
            }
        )
        self.kinds = [kind for kind in KINDS if f'"{kind}"' in text]

    def late(self) -> bool:
        return time.time() > self.deadline

    def fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {"model_type": self.model_type, "architectures": [self.class_name], **fields}

    def model(self, fields: dict[str, Any]) -> Any:
        signal.alarm(20)
        try:
            return oracle.build(self.fields(fields))
        finally:
            signal.alarm(0)

    def signature(self, fields: dict[str, Any]) -> int | None:
        """A hash of all shapes, None if it does not build."""
        key = repr(fields)
        if key not in self.cache:
            try:
                model = self.model(fields)
                oracle.idle_elements(model)
                unique, _ = oracle.owned(model)
                shapes = repr([(name, tuple(p.shape)) for name, p in unique.items()])
                text = shapes + str(oracle.persistent_elements(model))
                self.cache[key] = zlib.crc32(text.encode())
            except TimeLimitError:
                self.cache[key] = None
            except Exception as error:
                self.last_error = error
                self.cache[key] = None
        return self.cache[key]

    def runs(self, fields: dict[str, Any]) -> bool:
        """True if the model can really be called."""
        signal.alarm(20)
        try:
            with torch.no_grad():
                cls = getattr(transformers, self.class_name)
                config = oracle.config_from(self.fields(fields))
                if cls.config_class is config.sub_configs.get("text_config"):
                    config = config.get_text_config()
                model = cls._from_config(config, dtype=torch.float32).eval()
                ids = torch.tensor([[5, 6, 7, 8, 9, 10, 11, 12]])
                more = {"decoder_input_ids": ids} if getattr(config, "is_encoder_decoder", False) else {}
                model(input_ids=ids, **more)
            return True
        except TimeLimitError:
            return False
        except Exception as error:
            self.last_error = error
            return False
        finally:
            signal.alarm(0)

    def accepts(self, fields: dict[str, Any]) -> bool:
        """True if it builds, and runs where the shrunken one runs."""
        return self.signature(fields) is not None and (not self.check_run or self.runs(fields))

    def leaves(self, fields: dict[str, Any]) -> dict[Path, Any]:
        """Every key that could be changed, with its value; undeclared ones that the class reads included."""
        config = oracle.config_from(self.fields(fields))
        found: dict[Path, Any] = {}
        for path, section in sections(config):
            names = {field.name for field in dataclasses.fields(section)} | self.undeclared.get(path, set())
            for name in sorted(names):
                if re.search(SKIP, name) or name.startswith("_"):
                    continue
                try:
                    value = getattr(section, name, None)
                except Exception:
                    value = None
                if isinstance(value, (PretrainedConfig, dict, float)) or callable(value):
                    continue
                found[(*path, name)] = value
        return found

    def spy(self, fields: dict[str, Any]) -> None:
        """Find the keys that the model class reads without its config class declaring them."""
        self.undeclared: dict[Path, set[str]] = {}
        try:
            config = oracle.config_from(self.fields(fields))
            reads: dict[Path, set[str]] = {}
            cls = getattr(transformers, self.class_name)
            top = config
            if cls.config_class is config.sub_configs.get("text_config"):
                top = config.get_text_config()
            restore = []
            for path, section in sections(config):
                base = type(section)
                seen = reads.setdefault(path, set())

                def look(self: Any, key: str, base: Any = base, seen: Any = seen) -> Any:
                    if not key.startswith("_"):
                        seen.add(key)
                    return super(base, self).__getattribute__(key)

                spied = type(base.__name__, (base,), {"__getattribute__": look})
                restore.append((section, base))
                section.__class__ = spied
            try:
                with torch.device("meta"):
                    cls._from_config(top, dtype=torch.float32)
            finally:
                for section, base in restore:
                    section.__class__ = base
            for path, section in sections(config):
                declared = {field.name for field in dataclasses.fields(section)}
                mapped = set(getattr(section, "attribute_map", {}) or {})
                found = set()
                for name in reads.get(path, ()):
                    if name in declared or name in mapped or re.search(SKIP, name):
                        continue
                    own = getattr(type(section), name, None)
                    if callable(own) or isinstance(own, property):
                        continue
                    found.add(name)
                self.undeclared[path] = found - COMMON_READS
        except Exception as error:
            self.notes.append(f"spy failed: {error!r}"[:200])

    # -- shrinking ---------------------------------------------------------------------------------------------------

    def proposal(self, leaves: dict[Path, Any], rng: random.Random, small: bool = False) -> dict[Path, Any]:
        """Coherent sizes for the keys whose names say what they are, section by section."""
        out: dict[Path, Any] = {}
        vocab = rng.choice([97, 131, 250, 1031])
        for section in sorted({path[:-1] for path in leaves}):
            head_dim, heads = rng.choice([8, 16, 24]), rng.choice([4, 6, 8])
            if small:
                head_dim, heads = 16, 4
            kv = rng.choice([k for k in (1, 2, 3, 4) if heads % k == 0 and k < heads])
            factor = rng.choice([1, 2, 1.5, 2])
            depth = rng.choice([3, 5, 7]) if not small else 6
            for path, value in leaves.items():
                if path[:-1] != section:
                    continue
                name = path[-1]
                if re.search(WIDTH, name) and is_int(value):
                    out[path] = int(head_dim * heads * factor)
                elif re.search(HEADS, name) and is_int(value):
                    out[path] = heads
                elif re.search(KV, name) and (is_int(value) or path in self.sensitive):
                    out[path] = kv
                elif re.search(HEAD_DIM, name) and (is_int(value) or path in self.sensitive):
                    out[path] = head_dim
                elif re.search(DEPTH, name) and is_int(value):
                    out[path] = depth if "decoder" not in name else max(2, depth - 1)
                elif re.search(INNER, name) and is_int(value):
                    out[path] = rng.choice([40, 48, 64, 72, 96]) if not small else 48
                elif re.search(EXPERTS, name) and is_int(value) and value:
                    out[path] = rng.choice([4, 6, 8]) if not small else 8
                elif re.search(TOP_K, name) and is_int(value):
                    out[path] = rng.choice([1, 2, 3]) if not small else 2
                elif re.search(VOCAB, name) and is_int(value):
                    out[path] = vocab
                elif re.search(POSITIONS, name) and is_int(value):
                    out[path] = rng.choice([64, 96, 128, 144])
        return out

    def fix_tokens(self, leaves_config: Any, fields: dict[str, Any]) -> None:
        """Keep padding ids within small vocabularies."""
        for path, section in sections(leaves_config):
            for key in ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"):
                value = getattr(section, key, None)
                if value is not None and is_int(value) and value >= 90:
                    put(fields, (*path, key), {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}.get(key, 1))

    def with_changes(self, fields: dict[str, Any], changes: dict[Path, Any]) -> dict[str, Any]:
        new = copy.deepcopy(fields)
        for path, value in changes.items():
            for depth in range(1, len(path)):
                name = self.fixed_sections.get(path[:depth])
                if name and get(new, (*path[:depth], "model_type")) is None:
                    put(new, (*path[:depth], "model_type"), name)
            put(new, path, value)
        return new

    def shrink(self) -> dict[str, Any]:
        """A small config that builds."""
        fields = copy.deepcopy(self.start)
        self.spy(fields)
        config = oracle.config_from(self.fields(fields))
        for path, section in sections(config):
            if path and str(getattr(section, "model_type", "")):
                self.fixed_sections[path] = str(section.model_type)
        self.fix_tokens(config, fields)
        if self.signature(fields) is None:
            fields = copy.deepcopy(self.start)
        leaves = self.leaves(fields)
        rng = random.Random(zlib.crc32(f"{self.seed}-{self.model_type}-shrink".encode()))
        for attempt in range(4):
            changes = self.proposal(leaves, rng, small=attempt == 0)
            if self.signature(self.with_changes(fields, changes)) is not None:
                fields = self.with_changes(fields, changes)
                break
        else:
            changes = self.proposal(leaves, rng, small=True)
            fields = self.one_by_one(fields, changes, rng, run=False)
        for path in [path for path in changes if re.search(POSITIONS, path[-1])]:
            less = copy.deepcopy(fields)
            section = get(less, path[:-1]) if path[:-1] else less
            if isinstance(section, dict) and path[-1] in section:
                del section[path[-1]]
                if self.signature(less) == self.signature(fields):
                    fields = less
        # whatever is still large
        for path, value in self.leaves(fields).items():
            if self.late():
                break
            if is_int(value) and value > 100 and path not in changes:
                for smaller in (32, 24, 16, 64, 8, value // 8, value // 4):
                    new = self.with_changes(fields, {path: smaller})
                    if smaller < value and self.signature(new) is not None:
                        if self.signature(new) != self.signature(fields):
                            fields = new
                        break
        return fields

    def one_by_one(
        self, fields: dict[str, Any], changes: dict[Path, Any], rng: random.Random, run: bool = True
    ) -> dict[str, Any]:
        """Apply what can be applied, first by kind, then alone."""
        groups = [WIDTH + "|" + HEADS + "|" + KV + "|" + HEAD_DIM, DEPTH, EXPERTS + "|" + TOP_K]
        left = dict(changes)
        accepts = self.accepts if run else (lambda f: self.signature(f) is not None)
        for group in groups:
            part = {path: value for path, value in left.items() if re.search(group, path[-1])}
            if part and accepts(new := self.with_changes(fields, part)):
                fields = new
                left = {path: value for path, value in left.items() if path not in part}
        for _ in range(2):
            for path in sorted(left, key=lambda _: rng.random()):
                if self.late():
                    return fields
                if accepts(new := self.with_changes(fields, {path: left[path]})):
                    fields = new
                    del left[path]
        return fields

    # -- audit -------------------------------------------------------------------------------------------------------

    def others(self, path: Path, value: Any) -> list[Any]:
        """Other values to try for one key."""
        name = path[-1]
        if name in WORDS:
            return [word for word in WORDS[name] if word != value]
        if isinstance(value, bool):
            return [not value]
        if is_int(value):
            near = [value * 2, value + 1, value // 2, 1, 0]
            near = near if value < 16 else near[:3]
            return list(dict.fromkeys(item for item in near if item != value and item >= 0))
        if value is None:
            return [24, 1, True, [1, 2]]
        if isinstance(value, (list, tuple)):
            return self.other_lists(list(value))
        return []

    def other_lists(self, value: list[Any]) -> list[Any]:
        """Other values for a list: other layer kinds, other layer numbers."""
        if value and all(isinstance(item, str) for item in value):
            return [[kind] * len(value) for kind in dict.fromkeys([*sorted(set(value)), *self.kinds])]
        if value and all(is_int(item) for item in value):
            return [[v * 2 for v in value], [v + 1 for v in value], value[:-1], [1] * len(value), [0, 2], [1], [0]]
        if value and all(isinstance(item, bool) for item in value):
            return [[not v for v in value]]
        return [[0], [1], [0, 1]] if not value else []

    def audit(self, fields: dict[str, Any]) -> dict[Path, list[Any]]:
        """The keys that change a shape, each with values that did."""
        old = self.signature(fields)
        found: dict[Path, list[Any]] = {}
        leaves = self.leaves(fields)
        for path, value in leaves.items():
            if self.late():
                self.complete = False
                break
            good: list[Any] = []
            for other in self.others(path, value):
                new = self.signature(self.with_changes(fields, {path: other}))
                if new is not None and new != old:
                    good.append(other)
                    if len(good) >= (12 if isinstance(other, list) else 2):
                        break
            if good:
                found[path] = good
        return found

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draws(self, count: int) -> list[dict[str, Any]]:
        """Configs that move every sensitive key."""
        base = self.shrink()
        if self.signature(base) is None:
            raise RuntimeError(f"the shrunken config does not build: {getattr(self, 'last_error', None)!r}")
        self.base = base
        self.check_run = self.runs(base)
        if not self.check_run:
            self.notes.append(f"shrunken model does not run: {getattr(self, 'last_error', None)!r}"[:160])
        self.sensitive = self.audit(base)
        result: list[dict[str, Any]] = []
        totals: set[int] = set()
        flips = [0.0, 1.0, 0.5, 0.5, 0.5, 0.5]
        for number in range(count * 3):
            if len(result) == count or (self.late() and len(result) >= 3) or time.time() > self.deadline + 40:
                break
            rng = random.Random(zlib.crc32(f"{self.seed}-{self.model_type}-{number}".encode()))
            config = self.draw(base, rng, flips[min(len(result), 5)], first=not result)
            signature = self.signature(config)
            if signature is None or signature in totals:
                continue
            totals.add(signature)
            result.append(config)
            if len(result) == 2 and not self.late():
                for path, values in self.audit(config).items():
                    self.sensitive.setdefault(path, values)
        return result

    def draw(self, base: dict[str, Any], rng: random.Random, flip: float, first: bool) -> dict[str, Any]:
        """One config."""
        leaves = self.leaves(base)
        proposal = self.proposal(leaves, rng)
        changes = {p: v for p, v in proposal.items() if p in self.sensitive or not self.complete}
        flags: dict[Path, Any] = {}
        lists: dict[Path, Any] = {}
        rest: dict[Path, Any] = {}
        for path, values in self.sensitive.items():
            value = leaves.get(path)
            if path in changes:
                continue
            if isinstance(value, bool):
                if rng.random() < flip:
                    flags[path] = not value
            elif isinstance(value, (list, tuple)) or (values and isinstance(values[0], list)):
                if not first:
                    lists[path] = values
            elif isinstance(value, str) or value is None:
                if not first and rng.random() < max(flip, 0.5):
                    rest[path] = rng.choice(values)
            else:
                near = [v for v in [*values, value + rng.choice([1, 2]), value * 2] if v != 0]
                rest[path] = rng.choice(near or values)
        config = self.with_changes(base, changes)
        if not self.accepts(config):
            config = self.one_by_one(base, changes, rng)
        now = self.leaves(config)
        if lists:
            chosen: dict[Path, Any] = {}
            for path, values in lists.items():
                length = self.depth_for(path, now)
                chosen[path] = self.pick_list(values, now.get(path), length, rng)
            config = self.one_by_one(config, chosen, rng)
        for group in (flags, rest):
            if group and self.accepts(new := self.with_changes(config, group)):
                config = new
            elif group:
                config = self.one_by_one(config, group, rng)
        return config

    def depth_for(self, path: Path, leaves: dict[Path, Any]) -> int:
        same = [v for p, v in leaves.items() if p[:-1] == path[:-1] and re.search(DEPTH, p[-1]) and is_int(v)]
        return same[0] if same else 4

    def pick_list(self, values: list[Any], value: Any, length: int, rng: random.Random) -> Any:
        """A list of layer kinds, of layer numbers, or of sizes."""
        lists = [option for option in values if isinstance(option, list)]
        words = sorted({item for option in lists for item in option if isinstance(item, str)})
        if words:
            if isinstance(value, (list, tuple)):
                words = sorted({*words, *value})
                length = len(value)
            return [rng.choice(words) for _ in range(length)]
        if isinstance(value, (list, tuple)) and value and max([v for v in value if is_int(v)] or [0]) >= length:
            return rng.choice(values)
        if isinstance(value, (list, tuple)) and len(value) == length and length:
            return rng.choice([v for v in values if len(v) == length] or values)
        if isinstance(value, (list, tuple)) and values and len({len(v) for v in values if isinstance(v, list)}) == 1:
            return rng.choice(values)
        return sorted(rng.sample(range(length), max(1, length // 2)))


COMMON_READS: set[str] = set()
"""What every class reads, from the machinery of PreTrainedModel."""


def common_reads() -> None:
    """Fill COMMON_READS from a class without secrets."""
    family = Family("llama")
    family.spy({})
    COMMON_READS.update(*family.undeclared.values())
    COMMON_READS.discard("head_dim")
    COMMON_READS.discard("attention_bias")


def entry(config: dict[str, Any]) -> str:
    """One list item of the YAML file."""
    import textwrap

    flow = yaml.safe_dump(config, default_flow_style=True, sort_keys=False, width=10**6).strip()
    pairs = flow.replace(": ", ":\N{NO-BREAK SPACE}")
    lines = textwrap.wrap(
        pairs,
        110,
        initial_indent="  - ",
        subsequent_indent="     ",
        break_on_hyphens=False,
        break_long_words=False,
    )
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def main() -> None:
    """Print one family."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model_type")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--base", default="{}", help="YAML to start from")
    args = parser.parse_args()
    common_reads()
    family = Family(args.model_type, yaml.safe_load(args.base), seed=args.seed)
    configs = family.draws(args.count)
    print(f"{args.model_type}:\n  odd:")
    print(*map(entry, configs), sep="\n")
    print("# sensitive:", ", ".join(".".join(path) for path in family.sensitive), file=sys.stderr)
    print("# notes:", family.notes, family.undeclared, file=sys.stderr)


if __name__ == "__main__":
    main()
