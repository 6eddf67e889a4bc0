"""Write the cache goldens: what small models of `transformers` hold after they have read some tokens.

    python -m tests.goldens.cache.make llama gemma2    # these families
    python -m tests.goldens.cache.make --all           # every family that has goldens of its counts

Needs torch and transformers (CPU is enough), and never imports paramcalc. README.md beside this file describes the
format.
"""

import argparse
import collections
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
import transformers
import yaml

from tests.goldens import oracle, running, store

T = TypeVar("T")
HERE = Path(__file__).resolve().parent
TARGET = HERE / "cache.jsonl"

SOURCE = 11
"""Tokens that an encoder reads, if it reads text: unlike any number of tokens that a decoder does."""

LENGTHS = (5, 23)
"""Tokens that are read, besides those at the edges of windows."""

CONFIGS = re.compile(r"(odd|seq2seq|multimodal|anymodal)-[1-5]|causal|decoder")
"""Names of the goldens whose configs are run: classifiers and bare models hold what the main class does."""

LARGEST = 2_000_000_000
"""Parameters of a model that is run; a golden of more is too slow on a CPU."""

LONGEST = 600
"""Tokens of the widest window whose edges are tried."""

NARROW = 9
"""Tokens of the window in place of a wider one."""

WINDOW_KEYS = ("window", "chunk_size", "local_attention")
"""What the name of a key holds that says how far attention looks back."""

HOLDERS = ("cache", "past_key_values", "cache_params", "state", "mems", "past_buckets_states")
"""Where the outputs of a model have its cache."""


def is_window(key: Any, value: Any) -> bool:
    """Whether a field of a config says how far attention looks back. Tables have numbers for keys."""
    return type(value) is int and "layer" not in str(key) and any(part in str(key) for part in WINDOW_KEYS)


def windows(fields: Any) -> Iterator[int]:
    """Every number in a config that says how far attention looks back."""
    for key, value in fields.items() if isinstance(fields, dict) else ():
        if isinstance(value, dict):
            yield from windows(value)
        elif is_window(key, value):
            yield value


def lengths(config: Any) -> list[int]:
    """How many tokens to read: below, at and above every window."""
    near = [window for window in windows(config.to_dict()) if 2 <= window <= LONGEST]
    edges = {edge for window in near for edge in (window - 1, window, window + 3)}
    return sorted({*LENGTHS, *edges})


def tensors(value: Any, name: str, seen: set[int], depth: int = 0) -> Iterator[tuple[str, torch.Tensor]]:
    """All tensors reachable from a cache, each once, under the name of the attribute that holds it."""
    if depth > 8 or id(value) in seen:
        return
    if isinstance(value, torch.Tensor):
        seen.add(id(value))
        if value.numel() and value.dim():
            yield name, value
    elif isinstance(value, dict | collections.UserDict):
        for item in value.values():
            yield from tensors(item, name, seen, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors(item, name, seen, depth + 1)
    elif hasattr(value, "__dict__") and not isinstance(value, torch.nn.Module):
        for attribute, item in vars(value).items():
            yield from tensors(item, attribute, seen, depth + 1)


def source(model: Any) -> int | None:
    """Entries of an encoder's output: frames of sound come in one number only."""
    config = model.config
    if hears(model):
        return int(config.max_source_positions)
    if type(model).__name__.startswith("Evolla"):
        return int(config.resampler_num_latents)
    crossed = config.is_encoder_decoder or getattr(config, "add_cross_attention", False) or crosses(model)
    return SOURCE if crossed else None


def crosses(model: Any) -> bool:
    """Whether its layers attend to an image although its config does not say so (IDEFICS, BLIP's decoder)."""
    named = ("IdeficsForVisionText2Text", "BlipTextLMHeadModel", "MusicgenForCausalLM")
    return type(model).__name__ in named or running.seen_width(model) is not None


def hears(model: Any) -> bool:
    """Whether its encoder takes a spectrogram (Whisper)."""
    accepted = inspect.signature(model.forward).parameters
    return bool(model.config.is_encoder_decoder) and "input_features" in accepted and "input_ids" not in accepted


def inputs(model: Any, tokens: int) -> dict[str, Any]:
    """What the model reads."""
    vocabulary = min(int(getattr(running.decoder_config(model.config), "vocab_size", 90)), 90)
    ids = 3 + torch.arange(tokens)[None] % max(vocabulary - 3, 1)
    several = running.streams(model)
    given: dict[str, Any] = {"input_ids": ids if several is None else ids[..., None].expand(-1, -1, several)}
    if hears(model):
        frames = torch.zeros(1, model.config.num_mel_bins, 2 * model.config.max_source_positions)
        given = {"input_features": frames, "decoder_input_ids": ids}
    elif running.seen_width(model) is not None:
        given = {"decoder_input_ids": ids}
    elif model.config.is_encoder_decoder and "decoder_input_ids" not in inspect.signature(model.forward).parameters:
        given["encoder_hidden_states"] = torch.zeros(1, SOURCE, model.config.hidden_size)
    elif model.config.is_encoder_decoder:
        given = {
            "input_ids": 3 + torch.arange(SOURCE)[None] % max(vocabulary - 3, 1),
            "decoder_input_ids": ids.expand(running.codebooks(model), -1),
        }
    elif running.codebooks(model) > 1:
        given = {"input_ids": ids.expand(running.codebooks(model), -1)}
    if getattr(model.config, "add_cross_attention", False) or type(model).__name__ == "MusicgenForCausalLM":
        given["encoder_hidden_states"] = torch.zeros(1, SOURCE, model.config.hidden_size)
    if type(model).__name__ == "BlipTextLMHeadModel":
        given["encoder_hidden_states"] = torch.zeros(1, SOURCE, model.config.encoder_hidden_size)
        given["is_decoder"] = True
    given |= running.seen(model, batch=1, tokens=tokens, source=SOURCE)
    return {key: in_dtype(value, model.dtype) for key, value in given.items()}


def in_dtype(value: Any, dtype: torch.dtype) -> Any:
    """Floats in the model's dtype, whatever else as it is."""
    if isinstance(value, transformers.modeling_outputs.BaseModelOutputWithPooling):
        return type(value)(value.last_hidden_state.to(dtype), value.pooler_output.to(dtype))
    if isinstance(value, dict):  # keys and values by the type of layer
        return {key: tuple(in_dtype(one, dtype) for one in pair) for key, pair in value.items()}
    return value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def stateful(model: Any) -> bool:
    """Whether its modules hold states themselves, and its outputs no cache (RecurrentGemma)."""
    return any(hasattr(module, "conv1d_state") for module in model.modules())


def wants_cache(model: Any) -> bool:
    """Whether its code takes a cache and never makes one itself (Granite 4 Vision): `generate` hands it over."""
    code = inspect.getsource(sys.modules[type(model).__module__])
    return "cache" in inspect.signature(type(model).forward).parameters and "DynamicCache(" not in code


def read(model: Any, tokens: int) -> list[tuple[str, torch.Tensor]]:
    """Read so many tokens: all that the model holds then, under the names of the attributes."""
    made = {} if not stateful(model) else new_cache(model)
    found = list(read_into(model, tokens, made))
    return found or (list(read_into(model, tokens, new_cache(model))) if wants_cache(model) else [])


def new_cache(model: Any) -> dict[str, Any]:
    """An empty cache, as an argument."""
    return {"cache": transformers.DynamicCache(config=model.config)}


def read_into(model: Any, tokens: int, given: dict[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """The same, into what is given."""
    seen: set[int] = set()
    asked = {} if type(model).__name__.startswith("Switch") else {"use_cache": True}  # whose encoder is asked too
    with torch.no_grad():
        output = model(**inputs(model, tokens), **asked, **given)
    for holder in HOLDERS:
        yield from tensors(getattr(output, holder, given.get(holder)), holder, seen)
    for module in model.modules() if given else ():
        for name in ("conv1d_state", "recurrent_states"):
            yield from tensors(vars(module).get(name), name, seen)


def held(model: Any, tokens: int) -> list[list[Any]]:
    """[attribute, dtype, shape, how many] of what the model holds after one sequence of so many tokens."""
    found: collections.Counter[tuple[str, str, tuple[int, ...]]] = collections.Counter()
    for name, tensor in read(model, tokens):
        if name != "_sliding_window_tensor":
            found[name, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)] += 1
    return [[name, dtype, list(shape), count] for (name, dtype, shape), count in found.items()]


def attempt(work: Callable[[], T]) -> tuple[T | None, str]:
    """What it gives, or why it failed: many small models build and cannot run."""
    try:
        return work(), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}".strip().split("\n")[0][:160]


def measure(fields: dict[str, Any]) -> dict[str, Any]:
    """What one model holds at each length; `refused` where it cannot be run, with the reason."""
    reasons = []
    for dtype in (torch.bfloat16, torch.float32):
        model, reason = attempt(partial(running.built, fields, dtype))
        if model is None:
            return {"refused": reason}
        runs = []
        for tokens in lengths(model.config):
            found, reason = attempt(partial(held, model, tokens))
            if found is None:
                reasons.append(reason)
            else:
                runs.append({"tokens": tokens, "held": found})
        if runs:
            return {
                "class": type(model).__name__,
                "dtype": str(dtype).removeprefix("torch."),
                "source": source(model),
                "runs": runs,
            }
    return {"refused": reasons[0]}


def extra(name: str) -> list[dict[str, Any]]:
    """Further configs of a family."""
    configs: dict[str, Any] = yaml.safe_load((HERE / "extra.yaml").read_text(encoding="utf-8"))
    return [{"model_type": name, **fields} for fields in configs.get(name, ())] + running.configs(name)


def narrowed(fields: dict[str, Any], full: dict[str, Any]) -> dict[str, Any]:
    """The same config with windows of NARROW tokens in place of those too wide to be tried."""
    result = dict(fields)
    for key, value in full.items():
        if isinstance(value, dict):
            inner = narrowed(fields.get(key) or {}, value)
            if inner != (fields.get(key) or {}):
                result[key] = inner
        elif is_window(key, value) and value > LONGEST:
            result[key] = NARROW
    return result


def narrow(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """A record with narrower windows, if there are any and the model runs."""
    config, _ = attempt(partial(oracle.config_from, fields))
    changed = fields if config is None else narrowed(fields, config.to_dict())
    record = {"refused": ""} if changed == fields else measure(changed)
    return {} if "refused" in record else {name: {"config": changed, **record}}


def family(name: str) -> dict[str, Any]:
    """What the models of a family hold, by the id of the golden that has the config, or `extra-N` with the config."""
    found = {f"extra-{i}": {"config": fields, **measure(fields)} for i, fields in enumerate(extra(name), start=1)}
    for case, golden in store.read(store.count_file(name)).items():
        if not CONFIGS.fullmatch(case):
            continue
        if golden["total"] > LARGEST:
            found[case] = {"refused": f"{golden['total']:,} parameters are too many"}
        else:
            found[case] = measure(golden["config"])
            if "refused" not in found[case] and not any(key.endswith("-narrow") for key in found):
                found |= narrow(f"{case}-narrow", golden["config"])
    return found


def main() -> int:
    """Write the goldens of the families named."""
    torch.set_num_threads(1)
    running.draw_little()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    names = [path.stem for path in sorted(store.COUNT_FOLDER.glob("*.jsonl"))] if args.all else args.families
    for name in names:
        print(f"{name}: ", end="", flush=True)
        records = family(name)
        if records:
            store.replace(TARGET, name, records)
            refused = sum("refused" in record for record in records.values())
            print(f"{len(records) - refused} run, {refused} refused", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
