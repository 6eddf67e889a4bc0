"""Write the goldens of GGUF files: what llama.cpp's converter and llama-quantize make of a config, never what we say.

    python -m tests.goldens.gguf.make LLAMA_CPP QUANTIZE llama qwen2     # these families of cases.yaml
    python -m tests.goldens.gguf.make LLAMA_CPP QUANTIZE                 # all of them

LLAMA_CPP is a checkout of llama.cpp, QUANTIZE its built llama-quantize: README.md beside this file says how.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from tests.goldens import oracle, store
from tests.goldens.gguf import hub_checkpoints, llama_cpp

HERE = Path(__file__).resolve().parent
TARGET = HERE / "gguf.jsonl"
PRESETS = HERE.parents[2] / "presets"

# As `llama-quantize --help` lists them, without aliases and COPY.
FTYPES = [
    *("F32", "F16", "BF16", "Q8_0", "Q6_K", "Q5_0", "Q5_1", "Q5_K_S", "Q5_K_M", "Q4_0", "Q4_1", "Q4_K_S", "Q4_K_M"),
    *("Q3_K_S", "Q3_K_M", "Q3_K_L", "Q2_K", "Q2_K_S", "Q2_0", "Q1_0", "IQ4_NL", "IQ4_XS", "IQ3_M", "IQ3_S", "IQ3_XS"),
    *("IQ3_XXS", "IQ2_M", "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ1_M", "IQ1_S", "TQ2_0", "TQ1_0", "MXFP4_MOE"),
]
GUIDED = ("IQ3_XXS", "IQ4_NL", "IQ4_XS", "Q4_0", "Q5_0")
"""Those that an importance matrix changes."""


def cases(family: str, entry: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and config of each case of a family: those of cases.yaml, and presets by name."""
    for number, fields in enumerate(entry.get("configs", ()), start=1):
        yield f"{family}-{number}", {"model_type": family, **fields}
    for name in entry.get("presets", ()):
        fields = yaml.safe_load((PRESETS / f"{name}.yaml").read_text(encoding="utf-8"))
        yield name, {key: value for key, value in fields.items() if key not in ("source", "published")}


def golden(fields: dict[str, Any], tool: Path) -> dict[str, Any]:
    """The config, the types that need an importance matrix, and what is in a file of each type.

    That is how many tensors of which type and how many bytes; null where the tool refuses. `with_imatrix`: the same
    with an importance matrix, where it makes a difference.
    """
    if fields["model_type"] in hub_checkpoints.CHECKPOINTS:
        config, checkpoint = fields, hub_checkpoints.checkpoint(fields)
    else:
        config = {**fields, "architectures": [oracle.class_name(fields)]}
        checkpoint = llama_cpp.checkpoint(oracle.build(config))
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(6) as pool:
        folder = Path(name)
        path = llama_cpp.converted(config, checkpoint, folder)
        imatrix = llama_cpp.write_imatrix(folder / "imatrix.dat")
        found = dict(zip(FTYPES, pool.map(lambda kind: llama_cpp.quantized(tool, path, kind), FTYPES), strict=True))
        guided = pool.map(lambda kind: llama_cpp.quantized(tool, path, kind, imatrix), GUIDED)
        with_imatrix = {kind: tensors for kind, tensors in zip(GUIDED, guided, strict=True) if tensors != found[kind]}
        converted = llama_cpp.written(path)
    if found["F16"] is None:
        raise RuntimeError(f"llama-quantize cannot read what the converter wrote: {config}")
    kept = any(t.type != "f32" for t in found["F32"] or ())
    if kept or llama_cpp.histogram(converted) != llama_cpp.histogram(found["F16"]):
        # Floats are what the converter writes; the tool would change, or keep, some of them.
        found = {kind: tensors for kind, tensors in found.items() if kind not in ("F32", "BF16")}
        found["F16"] = converted
    return {
        "config": config,
        "imatrix": [kind for kind, tensors in found.items() if tensors and llama_cpp.needs_imatrix(tensors, kind)],
        "with_imatrix": {kind: llama_cpp.histogram(tensors or []) for kind, tensors in with_imatrix.items()},
        "types": {kind: tensors and llama_cpp.histogram(tensors) for kind, tensors in found.items()},
    }


def main() -> None:
    """Make what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("llama_cpp", type=Path)
    parser.add_argument("quantize", type=Path)
    parser.add_argument("families", nargs="*")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    llama_cpp.use(args.llama_cpp)
    listed = yaml.safe_load((HERE / "cases.yaml").read_text(encoding="utf-8"))
    for family in args.families or listed:
        llama_cpp.leave_out_mtp(listed[family].get("no_mtp", False))
        made = {name: golden(fields, args.quantize) for name, fields in cases(family, listed[family])}
        store.replace(TARGET, family, made)
        print(family, len(made), flush=True)


if __name__ == "__main__":
    main()
