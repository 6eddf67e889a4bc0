"""Why the bytes of a GGUF file are an estimate, and what is to be said about it although they are exact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from operator import attrgetter

from paramcalc.model import Model
from paramcalc.storage.gguf.architectures import known_architecture
from paramcalc.storage.gguf.tensors import FileContents
from paramcalc.storage.gguf.types import FLOATS

# The tool refuses these without an importance matrix, wherever they are but in the tables of tokens.
NEEDS_IMATRIX = ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS")
KEEPS_MXFP4_EXPERTS = (*FLOATS, "MXFP4_MOE")  # kinds of file in which experts that are MXFP4 already stay so
TABLE_NAMES = ("token_embd", "per_layer_token_embd", "output")
GEMMA3_VOCABULARY = 262_144  # what the tokenizer of all published Gemma 3 has


QUANTISED_NAME = attrgetter("name", "quantised")


def gguf_estimate_reasons(model: Model, file: FileContents) -> Iterator[str]:
    """What makes the bytes an estimate."""
    arch = known_architecture(model)
    if arch is None:
        yield f"{model.family} was not compared with llama.cpp; its tensors are taken to be stored as Llama's are"
        return
    if unnamed := sorted({t.name.removesuffix(".") for t in file.tensors if t.name.endswith(".")}):
        yield f"under which name llama.cpp stores {', '.join(unnamed)} is not known"
    names = {name for t in file.tensors for name in (t.name, f"{t.name}.{t.suffix}")}
    if refused := sorted(names & set(arch.lacks)):
        yield f"llama.cpp has no place for {', '.join(refused)} in a file of {arch.name} and refuses this model"
    if values := [f"{key}: {value}" for key, value in arch.refuses if model.facts.flags.get(key) == value]:
        yield f"llama.cpp's converter cannot deal with {', '.join(values)}"
    counts = Counter(zip(file.numbers, map(QUANTISED_NAME, file.tensors), strict=True))
    if duplicated := sorted({name for (_, (name, quantised)), n in counts.items() if quantised and n > 1}):
        yield f"some layer has more than one {', '.join(duplicated)}"
    if arch.full_rope and file.full_first:
        yield "the first layer attends to all tokens, which no model does that was compared"
    if not has_output_matrix(model):
        yield f"{model.architecture} predicts no tokens; only whole language models were compared"
    if arch.mtp == "unstated":
        yield "without the multi-token-prediction layers of the checkpoint, as with the converter's --no-mtp"
    if file.predicting:
        yield "multi-token-prediction layers are in the file; some checkpoints have tables of their own for them"
    if arch.name == "gemma3" and any(t.rows > GEMMA3_VOCABULARY for t in file.tensors if t.name == "token_embd"):
        yield "llama.cpp cuts the table of tokens to those that the tokenizer has"


def has_output_matrix(model: Model) -> bool:
    """Whether it has an output matrix, its own or the table of tokens."""
    names = [w.name for w in model.tree.weights() if w.category == "head"]
    names += [tie.name for tie in model.tree.ties() if tie.category == "head"]
    return any("lm_head" in name for name in names)


def needs_imatrix(file: FileContents, ftype: str, types: Iterable[str]) -> bool:
    """Whether the tool refuses to write this without an importance matrix (tensor_requires_imatrix)."""
    low = (*NEEDS_IMATRIX, "Q2_K") if ftype == "Q2_K_S" else NEEDS_IMATRIX
    return any(name in low and t.name not in TABLE_NAMES for name, t in zip(types, file.tensors, strict=True))


def gguf_notes(model: Model, file: FileContents, ftype: str) -> Iterator[str]:
    """What to know about the file, however exact its bytes are."""
    if file.left_out:
        yield f"not in this file: {', '.join(file.left_out)}"
    if mxfp4_experts(model) and ftype not in KEEPS_MXFP4_EXPERTS:
        yield "the checkpoint's experts are MXFP4 already; llama-quantize wants --allow-requantize"


def mxfp4_experts(model: Model) -> bool:
    """Whether the checkpoint's experts are MXFP4 already, which the converter keeps (gpt-oss)."""
    return (model.quantization or {}).get("quant_method") == "mxfp4"
