"""The assumptions of a footprint as options, with the names of vLLM if the meaning is the same."""

from __future__ import annotations

import re
from typing import Any

from paramcalc.assumptions import OVERHEAD, PREFILL_CHUNK, Assumptions, assume
from paramcalc.base.errors import ParamcalcError
from paramcalc.base.units import human_bytes, parse_bytes, parse_tokens
from paramcalc.cli.option import BATCH, DEFAULT_CONTEXT, INCLUDE_MTP, SOURCE, Option, context, values, whole_number
from paramcalc.cli.option_groups import OptionGroup


def exl2_format(text: str) -> str:
    """The format name of an average: `4.65` as exl2-4.65bpw."""
    if not re.fullmatch(r"[0-9]{1,2}([.][0-9]{1,6})?", text):
        raise ParamcalcError(f"--bpw {text}: not a number of bits", "write it like --bpw 4.65")
    return f"exl2-{text}bpw"


def dtype_of_pair(text: str) -> tuple[str, str]:
    """`norm=fp32` as ("norm", "fp32")."""
    part, equals, dtype = text.partition("=")
    if not equals or not part.strip() or not dtype.strip():
        raise ParamcalcError(f"--dtype-of {text}: not PART=FORMAT", "write it like --dtype-of norm=fp32")
    return part.strip(), dtype.strip()


MEMORY_OPTIONS = {
    "context": context(
        f"Tokens of each sequence, prompt and answer: 8192, 8k, 128k (131,072). {DEFAULT_CONTEXT} if not given."
    ),
    "batch": BATCH,
    "source": SOURCE,
    "dtype": Option(
        ("--dtype", "--quantization"), "FORMAT", "Format of the weights; the checkpoint's own if not given."
    ),
    "dtype_of": Option(
        ("--dtype-of",), "PART=FORMAT", "Format of a category or path, like norm=fp32.", dtype_of_pair, many=True
    ),
    "bpw": Option(("--bpw",), "BITS", "Average bits per weight of an ExLlamaV2 mix: 4.65.", exl2_format),
    "include_mtp": INCLUDE_MTP,
    "kv_cache_dtype": Option(("--kv-cache-dtype",), "DTYPE", "Dtype of keys and values, like fp8 or q8_0."),
    "v_cache_dtype": Option(("--v-cache-dtype",), "DTYPE", "Dtype of values, if it differs from that of keys."),
    "state_dtype": Option(("--state-dtype",), "DTYPE", "Dtype of recurrent states; the reference's if not given."),
    "kv_policy": Option(
        ("--kv-policy",),
        "POLICY",
        "windowed: only what is needed; uniform: engines that reserve full pages for every attention layer.",
    ),
    "mla": Option(("--mla",), "FORM", "Cache of latent attention (MLA): latent, or expanded keys and values."),
    "conv_columns": Option(
        ("--conv-columns",), "COLUMNS", "Cached inputs of a short convolution: kernel, or kernel-1."
    ),
    "tensor_parallel": Option(("--tensor-parallel-size", "--tp"), "N", "Devices that share each layer.", whole_number),
    "pipeline_parallel": Option(
        ("--pipeline-parallel-size", "--pp"), "N", "Stages of layers, one after the other.", whole_number
    ),
    "expert_parallel": Option(
        ("--expert-parallel-size", "--ep"), "N", "Devices, or groups of devices, that hold whole experts.", whole_number
    ),
    "data_parallel": Option(
        ("--data-parallel-size", "--dp"),
        "N",
        "Groups that share the batch; attention is replicated in each, experts are divided among all.",
        whole_number,
    ),
    "prefill_chunk": Option(
        ("--max-num-batched-tokens", "--prefill-chunk"),
        "TOKENS",
        f"Maximum number of tokens that one step prefills; {PREFILL_CHUNK:,} if not given.",
        parse_tokens,
    ),
    "attention": Option(("--attention",), "KERNEL", "flash, or eager: with the full score matrix in memory."),
    "logits_dtype": Option(("--logits-dtype",), "DTYPE", "Dtype of the logits; float32 if not given."),
    "overhead": Option(
        ("--overhead",), "SIZE", f"Overhead of each device in bytes; {human_bytes(OVERHEAD)} if not given.", parse_bytes
    ),
}


def read_assumptions(**texts: Any) -> Assumptions:
    """The assumptions from the option strings, checked."""
    given = {"context": parse_tokens(DEFAULT_CONTEXT)} | values(MEMORY_OPTIONS, texts)
    if "bpw" in given:
        if "dtype" in given:
            raise ParamcalcError("--bpw and --dtype both state a format", "omit one of them")
        given["dtype"] = given.pop("bpw")
    return assume(**given)


MEMORY_GROUP = OptionGroup({name: option.annotation() for name, option in MEMORY_OPTIONS.items()}, read_assumptions)
