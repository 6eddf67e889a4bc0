"""Write what torch's flop counter sees when `transformers` runs a small model, and never what paramcalc says.

    python -m tests.goldens.flops.make llama gpt2   # these families
    python -m tests.goldens.flops.make --all        # every family that has odd configs

Needs torch and transformers (CPU is enough). README.md beside this file describes the format.
"""

import argparse
import inspect
import json
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import yaml  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from tests.goldens import oracle, running, store  # noqa: E402

HERE = Path(__file__).resolve().parent
TARGET = HERE / "flops.jsonl"

SIZES = ((2, 12, 12), (1, 29, 17))
"""Batch, tokens, and tokens of the source: what an encoder reads, or stands in for an image."""

LONG = (1, 71, 71)
"""A third size for recurrent mixers, which work in chunks of 64 or more tokens."""

CONFIGS = ("odd-1", "odd-2", "odd-3", "odd-4")
LARGEST = 2_000_000_000
"""Parameters of the largest model that is built."""

ROTARY = re.compile(r"rotary|(^|_)rope|^pos_emb$")
"""Names of modules that make tables of angles: a product by position, which is no work on the tokens."""

TOWERS = {
    "EvollaForProteinText2Text": ("protein_encoder",),
    "Gemma3nForConditionalGeneration": ("embed_vision", "embed_audio"),
    "MusicgenForConditionalGeneration": ("text_encoder", "enc_to_dec_proj"),
    "MusicgenMelodyForConditionalGeneration": ("text_encoder", "enc_to_dec_proj", "audio_enc_to_dec_proj"),
    "VisionEncoderDecoderModel": ("enc_to_dec_proj",),
    "VoxtralRealtimeForConditionalGeneration": ("audio_tower", "multi_modal_projector"),
}
"""Names of the towers and projectors that run although there are tokens of text alone, by class."""

ALL_EXPERTS = {"Llama4TextExperts": ("num_experts", "num_experts_per_tok")}
"""Classes that run every expert on every token, for want of a kernel; only the share that the router chose is kept."""


def real(fields: dict[str, Any]) -> Any:
    """The model on the CPU, with eager attention and experts that are run one by one."""
    model = running.built(fields, torch.float32)
    for module in model.modules():
        if hasattr(module, "config") and hasattr(module.config, "_experts_implementation"):
            module.config._experts_implementation = "eager"
    return model.requires_grad_(False)  # the counter tracks modules by their gradients, where there are any


def smallest_vocabulary(config: Any) -> int:
    """Ids that every table of the model knows."""
    text = running.decoder_config(config)
    sizes = [value for key, value in text.to_dict().items() if "vocab" in key and type(value) is int and value > 3]
    return min([90, *sizes])


def inputs(model: Any, batch: int, tokens: int, source: int) -> dict[str, Any]:
    """Random tokens; for a decoder beside an encoder too, or with states that stand for a source."""
    known, config = inspect.signature(model.forward).parameters, model.config
    vocabulary = smallest_vocabulary(config)

    several = running.streams(model)

    def drawn(count: int) -> torch.Tensor:
        shape = (batch, count) if several is None else (batch, count, several)
        return torch.randint(min(3, vocabulary - 1), vocabulary, shape)

    def states(width: int) -> torch.Tensor:
        return torch.randn(batch, source, width)

    extra: dict[str, Any] = {"use_cache": False} if "use_cache" in known else {}
    if "input_features" in known and hasattr(config, "max_source_positions"):  # two frames for each position
        frames = torch.randn(batch, config.num_mel_bins, 2 * config.max_source_positions)
        return {"input_features": frames, "decoder_input_ids": drawn(tokens), **extra}
    extra |= running.seen(model, batch=batch, tokens=tokens, source=source)
    if running.seen_width(model) is not None:
        return {"decoder_input_ids": drawn(tokens), **extra}
    if "decoder_input_ids" in known and config.is_encoder_decoder:
        return {
            "input_ids": drawn(source),
            "decoder_input_ids": drawn(tokens).repeat_interleave(running.codebooks(model), 0),
            **extra,
        }
    crossed = re.search(r"cross_?att|encoder_attn", repr(model), re.IGNORECASE)
    if "encoder_hidden_states" in known and crossed and hasattr(config, "hidden_size"):
        widths = (getattr(config, key, None) for key in ("cross_attention_hidden_size", "encoder_hidden_size"))
        width = next(filter(None, widths), config.hidden_size)
        extra["encoder_hidden_states"] = states(width)
    if "cross_attention_states" in known and hasattr(config.get_text_config(), "hidden_size"):
        extra["cross_attention_states"] = states(config.get_text_config().hidden_size)
    ids = drawn(tokens).repeat_interleave(running.codebooks(model), 0)
    return extra if "inputs_embeds" in extra else {"input_ids": ids, **extra}


def counted(model: Any, batch: int, tokens: int, source: int) -> dict[str, Any]:
    """Flops by module and operator, as the counter has them."""
    given, counter = inputs(model, batch, tokens, source), FlopCounterMode(display=False, depth=99)
    torch.manual_seed(1)
    with torch.no_grad(), counter:
        model(**given)
    return {
        name: {str(op).removeprefix("aten."): n for op, n in ops.items()}
        for name, ops in counter.get_flop_counts().items()
    }


def left_out(model: Any, counts: dict[str, Any]) -> Iterator[tuple[str, Fraction]]:
    """The outermost modules that do no work on tokens, or more than is asked, and the share that is too much."""
    root = type(model).__name__
    found: list[str] = []
    for name in sorted(counts):
        inside = any(name.startswith(f"{outer}.") for outer in found)
        last = name.rpartition(".")[2]
        if name != root and (ROTARY.search(last) or last in TOWERS.get(root, ())) and not inside:
            found.append(name)
            yield name, Fraction(1)
    for name, module in model.named_modules():
        if type(module).__name__ in ALL_EXPERTS:
            every, chosen = ALL_EXPERTS[type(module).__name__]
            config = model.config.get_text_config()
            experts = getattr(module, every)
            yield f"{root}.{name}", 1 - Fraction(getattr(config, chosen), experts)


def measured(model: Any, batch: int, tokens: int, source: int) -> dict[str, Any]:
    """Flops by operator of one forward pass, without what is left out."""
    counts = counted(model, batch, tokens, source)
    if "input_features" in inspect.signature(model.forward).parameters:
        source = getattr(model.config, "max_source_positions", source)
    source = getattr(model.config, "resampler_num_latents", source)
    found: Counter[str] = Counter(counts["Global"])
    for name, share in left_out(model, counts):
        for op, number in counts.get(name, {}).items():
            found[op] -= int(share * number)
    record = {"batch": batch, "tokens": tokens, "source": source}
    return record | {"flops": {op: n for op, n in sorted(found.items()) if n}}


def configs(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The odd configs of a family's goldens, and those of configs.yaml, which were written to run."""
    goldens = store.read(store.count_file(name))
    for case in (case for case in CONFIGS if case in goldens):
        yield case, decoded(goldens[case]["config"]) if goldens[case]["total"] <= LARGEST else {}
    own = yaml.safe_load((HERE / "configs.yaml").read_text()).get(name, [])
    for number, config in enumerate([*own, *running.configs(name)], start=1):
        yield f"runs-{number}", {"model_type": name, **config}


def decoded(config: dict[str, Any]) -> dict[str, Any]:
    """A config with the floats that JSON has no word for."""
    fields: dict[str, Any] = json.loads(json.dumps(config), object_hook=store.floats)
    return fields


def records(name: str) -> dict[str, store.Record]:
    """What was measured of each config of a family; `failed` is the reason where one could not be run."""
    found: dict[str, store.Record] = {}
    for case, config in configs(name):
        found[case] = dict(oracle.VERSIONS)
        if case.startswith("runs"):  # the config of a golden is in the golden
            found[case]["config"] = config
        try:
            if not config:
                raise ValueError(f"more than {LARGEST:,} parameters")
            measure(config, found[case].setdefault("runs", []))
        except Exception as error:
            found[case]["failed"] = f"{type(error).__name__}: {error}".partition("\n")[0][:110]
        if not found[case].get("runs"):
            found[case].pop("runs", None)
    return found


def measure(config: dict[str, Any], runs: list[dict[str, Any]]) -> None:
    """Run one config at each size."""
    model = real(config)
    recurrent = re.search(r"Mamba|Delta|Linear[A-Z]|Lightning|LSTM|RecurrentBlock|ShortConv", repr(model)) is not None
    for batch, tokens, source in (*SIZES, *([LONG] if recurrent else [])):
        runs.append(measured(model, batch, tokens, source))


def main() -> None:
    """Make the goldens that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="FAMILY")
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    running.draw_little()
    known = [path.stem for path in sorted(store.COUNT_FOLDER.glob("*.jsonl")) if "odd-1" in store.read(path)]
    for name in known if args.all else args.names:
        found = records(name)
        store.replace(TARGET, name, found)
        failed = {case: record["failed"] for case, record in found.items() if "failed" in record}
        print(name, sum(len(record.get("runs", ())) for record in found.values()), failed or "", flush=True)


if __name__ == "__main__":
    main()
