"""Reasons why the bytes of a GGUF file are an estimate, and notes about the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from operator import attrgetter

from paramcalc.model import Model
from paramcalc.storage.gguf.architectures import known_architecture
from paramcalc.storage.gguf.tensors import FileContents
from paramcalc.storage.gguf.types import FLOATS

# llama-quantize refuses these types without an importance matrix, except for embedding and output tables.
NEEDS_IMATRIX = ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS")
KEEPS_MXFP4_EXPERTS = (*FLOATS, "MXFP4_MOE")  # file types in which experts that are MXFP4 already stay MXFP4
TABLE_NAMES = ("token_embd", "per_layer_token_embd", "output")
GEMMA3_VOCABULARY = 262_144  # tokens in the tokenizer of every published Gemma 3
QUANTISED_NAME = attrgetter("name", "quantised")


def gguf_estimate_reasons(model: Model, file: FileContents) -> Iterator[str]:
    """Reasons why the bytes are an estimate; none if they are exact."""
    arch = known_architecture(model)
    if arch is None:
        yield f"{model.family} was not compared with llama.cpp; it is assumed to be stored like Llama"
        return
    if unnamed := sorted({t.name.removesuffix(".") for t in file.tensors if t.name.endswith(".")}):
        yield f"the llama.cpp names of {', '.join(unnamed)} are unknown"
    names = {name for t in file.tensors for name in (t.name, f"{t.name}.{t.suffix}")}
    if refused := sorted(names & set(arch.lacks)):
        yield f"llama.cpp does not support {', '.join(refused)} in the architecture {arch.name} and refuses this model"
    if values := [f"{key}: {value}" for key, value in arch.refuses if model.facts.flags.get(key) == value]:
        yield f"the converter of llama.cpp does not support {', '.join(values)}"
    counts = Counter(zip(file.numbers, map(QUANTISED_NAME, file.tensors), strict=True))
    if duplicated := sorted({name for (_, (name, quantised)), n in counts.items() if quantised and n > 1}):
        yield f"a layer has more than one {', '.join(duplicated)}; this was not compared with llama.cpp"
    if arch.full_rope and file.full_attention_first:
        yield "the first layer has full attention; no such model was compared with llama.cpp"
    if not has_output_matrix(model):
        yield f"{model.architecture} has no language-model head; only models with one were compared with llama.cpp"
    if arch.mtp == "unstated":
        yield "multi-token-prediction layers of the checkpoint are not included, as with --no-mtp of the converter"
    if file.mtp_layers:
        yield "multi-token-prediction layers are in the file; some checkpoints have separate tables for them"
    if arch.name == "gemma3" and any(t.rows > GEMMA3_VOCABULARY for t in file.tensors if t.name == "token_embd"):
        yield "llama.cpp truncates the token embedding to the vocabulary of the tokenizer"


def has_output_matrix(model: Model) -> bool:
    """True if the model has an output matrix, its own or one tied to the token embedding."""
    names = [w.name for w in model.tree.weights() if w.category == "head"]
    names += [tie.name for tie in model.tree.ties() if tie.category == "head"]
    return any("lm_head" in name for name in names)


def needs_imatrix(file: FileContents, ftype: str, types: Iterable[str]) -> bool:
    """True if llama-quantize requires an importance matrix for the file (tensor_requires_imatrix)."""
    low = (*NEEDS_IMATRIX, "Q2_K") if ftype == "Q2_K_S" else NEEDS_IMATRIX
    return any(name in low and t.name not in TABLE_NAMES for name, t in zip(types, file.tensors, strict=True))


def gguf_notes(model: Model, file: FileContents, ftype: str) -> Iterator[str]:
    """Notes about the file that do not make its bytes an estimate."""
    if file.excluded_parts:
        yield f"not in this file: {', '.join(file.excluded_parts)}"
    if mxfp4_experts(model) and ftype not in KEEPS_MXFP4_EXPERTS:
        yield "the experts of the checkpoint are MXFP4 already; llama-quantize needs --allow-requantize"


def mxfp4_experts(model: Model) -> bool:
    """True if the experts of the checkpoint are MXFP4, which the converter copies unchanged (gpt-oss)."""
    return (model.quantization or {}).get("quant_method") == "mxfp4"
