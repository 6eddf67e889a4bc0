"""What llama.cpp makes of a config: its converter run without weights, and `llama-quantize --dry-run` on the result.

The reference model is built on torch's meta device, its state dict is brought into the form of the published
checkpoint, and the converter's own class turns that into tensors of a GGUF file: names, shapes and types are the
converter's, only the data is missing. The file is written with a hole where the data would be, and the tool says for
every tensor which type it would choose. Nothing here knows a rule, and nothing here may import paramcalc.
"""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import torch

LINE = re.compile(
    r"^\[ *\d+/ *\d+\] +(\S+) +- \[([\d, ]+)\], type = +(\S+), size = +[\d.]+ MiB(?: -> +[\d.]+ MiB \((\S+)\))?"
)

# Classes that transformers does not call as their checkpoints and the converter do.
RENAMED = {"MptForCausalLM": "MPTForCausalLM", "PhimoeForCausalLM": "PhiMoEForCausalLM"}

Fields = Mapping[str, Any]
Histogram = dict[str, list[int]]


class Tensor(NamedTuple):
    """One tensor of a GGUF file: its sides in ggml's order, the row first."""

    name: str
    ne: tuple[int, ...]
    type: str


def use(llama_cpp: Path) -> None:
    """Put the converter of this copy of llama.cpp on the import path."""
    sys.path[:0] = [str(llama_cpp / "gguf-py"), str(llama_cpp)]


def leave_out_mtp(yes: bool) -> None:
    """Whether the converter is run with --no-mtp."""
    from conversion import ModelBase

    ModelBase.no_mtp = yes


def checkpoint(model: Any) -> dict[str, torch.Tensor]:
    """The state dict as its publisher would have it: tied tensors once, experts one by one where they are so."""
    from transformers.core_model_loading import revert_weight_conversion
    from transformers.modeling_utils import remove_tied_weights_from_state_dict

    state = remove_tied_weights_from_state_dict(model.state_dict(), model)
    state = {name: tensor.to(torch.float16) for name, tensor in revert_weight_conversion(model, state).items()}
    return mxfp4(state) if is_mxfp4(getattr(model.config, "quantization_config", None)) else state


def is_mxfp4(quantization: Fields | None) -> bool:
    """Whether a checkpoint has its experts in MXFP4, as gpt-oss does."""
    return (quantization or {}).get("quant_method") == "mxfp4"


def mxfp4(state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The same with experts as blocks of 32 elements in 16 bytes and a scale for each, rows by outputs."""
    found = {}
    for name, tensor in state.items():
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            experts, inputs, outputs = tensor.shape
            blocks = (experts, outputs, inputs // 32)
            found[f"{name}_blocks"] = torch.empty((*blocks, 16), dtype=torch.uint8, device="meta")
            found[f"{name}_scales"] = torch.empty(blocks, dtype=torch.uint8, device="meta")
        else:
            found[name] = tensor
    return found


def converted(fields: Fields, state: Mapping[str, torch.Tensor], folder: Path) -> Path:
    """The GGUF file (F16) that the converter would write for this config and this checkpoint; its data is a hole."""
    import gguf
    from conversion import ModelBase, get_model_class

    (folder / "config.json").write_text(json.dumps(dict(fields)), encoding="utf-8")
    hparams = dict(fields) | ModelBase.load_hparams(folder, is_mistral_format=False)
    hparams = former(hparams) | hparams  # keys that transformers no longer keeps
    (name,) = hparams["architectures"] = list(fields["architectures"])
    write_tokens(hparams, folder)
    base = get_model_class(RENAMED.get(name, name))
    ModelBase.index_tensors = indexed(state)  # what subclasses call, whatever they add
    cls = type(base.__name__, (base,), {"set_vocab": lambda _: None, "model_arch": base.model_arch})
    path = folder / "model.gguf"
    with torch.inference_mode():
        model = cls(folder, gguf.LlamaFileType.MOSTLY_F16, path, hparams=hparams, model_name="golden")
        model = getattr(model, "impl", model)  # Mistral 3 is one of two others
        model.set_vocab = lambda: None
        model.prepare_tensors()
        model.prepare_metadata(vocab_only=False)
    write_hollow(model.gguf_writer, path)
    return path


def indexed(state: Mapping[str, torch.Tensor]) -> Callable[..., dict[str, Any]]:
    """In place of the converter's way to find the tensors of a checkpoint: these, without data."""
    from conversion import LazyTorchTensor

    def lazy(number: int, tensor: torch.Tensor) -> Any:
        meta = torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")
        # Filled with its number: the Mamba converter drops an output matrix that equals the table of tokens.
        return LazyTorchTensor(meta=meta, func=lambda: torch.full(tensor.shape, number % 256, dtype=tensor.dtype))

    def index_tensors(self: Any, *_: Any, **__: Any) -> dict[str, Any]:
        numbered = enumerate(state.items())
        pairs = ((name, lambda i=i, one=tensor: lazy(i, one)) for i, (name, tensor) in numbered)
        return dict(kept for pair in pairs if (kept := self.filter_tensors(pair)))

    return index_tensors


def write_tokens(hparams: Fields, folder: Path) -> None:
    """A tokenizer of as many tokens as the table has rows: of Gemma 3's, the converter cuts what is no token."""
    rows = hparams.get("vocab_size") or hparams["text_config"]["vocab_size"]
    tokens = {"model": {"vocab": {str(i): i for i in range(rows)}}, "added_tokens": []}
    if "Gemma" in hparams["architectures"][0]:
        (folder / "tokenizer.json").write_text(json.dumps(tokens), encoding="utf-8")


def former(hparams: Fields) -> dict[str, Any]:
    """Fields that the converter reads, that published files have, and that shape no tensor."""
    rope = hparams.get("rope_parameters") or {}
    return {
        "n_ctx": hparams.get("n_positions"),
        "rotary_pct": rope.get("partial_rotary_factor", 0.25),
        "rotary_dim": 32,
        "decoder_start_token_id": 0,
    }


def write_hollow(writer: Any, path: Path) -> None:
    """Header, metadata and tensor infos; the data is a hole of the right length."""
    writer.write_header_to_file(path=path)
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    data = sum(writer.ggml_pad(t.nbytes, writer.data_alignment) for t in writer.tensors[0].values())
    for file in writer.fout:
        writer.write_padding(file, file.tell())
        file.flush()
        file.truncate(file.tell() + data)
        file.close()


def quantized(tool: Path, path: Path, ftype: str, imatrix: Path | None = None) -> list[Tensor] | None:
    """Each tensor with the type that the tool would give it; None where it refuses."""
    command = [tool, "--dry-run", *(("--imatrix", imatrix) if imatrix else ()), path, ftype]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [m for line in (run.stdout + run.stderr).splitlines() if (m := LINE.match(line))]
    tensors = [Tensor(m[1], tuple(map(int, m[2].split(","))), m[4] or m[3]) for m in found]
    return None if run.returncode else tensors


def write_imatrix(path: Path) -> Path:
    """An importance matrix of one entry in the old format: that there is one is all that the choice of types asks."""
    name = b"blk.0.ffn_down.weight"
    path.write_bytes(struct.pack(f"<ii{len(name)}siifii1s", 1, len(name), name, 1, 1, 1.0, 1, 1, b"x"))
    return path


def written(path: Path) -> list[Tensor]:
    """What the converter's file itself has."""
    import gguf

    reader = gguf.GGUFReader(path)
    return [Tensor(t.name, tuple(map(int, t.shape)), t.tensor_type.name) for t in reader.tensors]


def needs_imatrix(tensors: list[Tensor], ftype: str) -> bool:
    """Whether the tool would refuse without an importance matrix (its `tensor_requires_imatrix`)."""
    low = {"iq3_xxs", "iq2_xxs", "iq2_xs", "iq2_s", "iq1_m", "iq1_s"} | ({"q2_K"} if ftype == "Q2_K_S" else set())
    tables = {"token_embd.weight", "per_layer_token_embd.weight", "output.weight"}
    return any(t.type in low for t in tensors if t.name not in tables)


def histogram(tensors: list[Tensor]) -> Histogram:
    """{type: [tensors, bytes]}, from the block sizes of the gguf package."""
    import gguf

    sizes = {kind.name.lower(): size for kind, size in gguf.GGML_QUANT_SIZES.items()}
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for t in tensors:
        block, size = sizes[t.type.lower()]
        if t.ne[0] % block:
            raise ValueError(f"{t} is not a whole number of blocks")
        found[t.type.upper()][0] += 1
        found[t.type.upper()][1] += prod(t.ne) // block * size
    return dict(sorted(found.items()))
