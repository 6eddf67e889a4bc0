"""Readers for methods with codebooks (AQLM), and for methods whose bytes are an estimate."""

from __future__ import annotations

from paramcalc.base.dtypes import Dtype
from paramcalc.storage.formats import floats, integers
from paramcalc.storage.formats.format import LAYER_MATRICES, Format, SideTensor
from paramcalc.storage.quantization.methods.common import (
    LINEAR_LAYERS,
    QuantFields,
    estimated_scheme,
    group_size,
    unconverted_modules,
)
from paramcalc.storage.quantization.placement import QuantizationScheme, SchemeRule


def read_aqlm(fields: QuantFields) -> QuantizationScheme:
    """AQLM (arXiv:2401.06118): indices into codebooks, and an fp16 scale for each output.

    Raises ValueError for more than 16 bits for each code.
    """
    inputs, outputs = int(fields.get("in_group_size", 8)), int(fields.get("out_group_size", 1))
    books, bits = int(fields.get("num_codebooks", 1)), int(fields.get("nbits_per_codebook", 16))
    if not 1 <= bits <= 16:
        raise ValueError(f"nbits_per_codebook is {bits}")
    form = Format(
        f"aqlm-{books}x{bits}",
        Dtype("codes", inputs * outputs, books * (1 if bits <= 8 else 2)),
        (
            SideTensor("codebooks", "tensor", books * 2**bits * inputs * outputs * 16),
            SideTensor("scales", "output", 16 // outputs),
        ),
        rows=outputs,
        columns=inputs,
        summary=f"{books} codes of {bits} bits for each {inputs * outputs} values",
        source="aqlm: inference.py, 2401.06118",
    )
    return QuantizationScheme("aqlm", form, LINEAR_LAYERS, unconverted_modules(fields))


def read_exl(fields: QuantFields) -> QuantizationScheme:
    """ExLlamaV2 and ExLlamaV3: an average of bits for the layers, and a width of its own for the head."""
    method, bits = str(fields.get("quant_method")), str(float(fields.get("bits", 4.0)))
    head = SchemeRule("lm_head", integers.exl2(str(float(fields.get("head_bits", 6))), head=True))
    form = integers.exl2(bits)._replace(name=f"{method}-{bits}bpw")
    return QuantizationScheme(
        method, form, LAYER_MATRICES, (head,), (f"{method}: bits are an average; bytes are an estimate",)
    )


def read_vptq(fields: QuantFields) -> QuantizationScheme:
    """VPTQ (arXiv:2409.17066): indices into codebooks of vectors. An estimate.

    All layers are assumed to have the index bits and the vector length of the first.
    """
    layers = fields.get("config_for_layers") or fields.get("shared_layer_config") or {}
    first: QuantFields = next(iter(layers.values()), {})
    length = max((int(n) for n in first.get("vector_lens", ())), default=8)
    sizes = [int(n) for key in ("num_centroids", "num_res_centroids") for n in first.get(key, ()) if int(n) > 1]
    bits = sum((n - 1).bit_length() for n in sizes) or 16
    form = Format(f"vptq-{bits}b-v{length}", Dtype("indices", 8 * length, bits), exact=False)
    return estimated_scheme(form, "vptq")._replace(rules=unconverted_modules(fields))


def read_spqr(fields: QuantFields) -> QuantizationScheme:
    """SpQR (arXiv:2306.03078): 3 bits and two levels of scales. An estimate: the config does not state the outliers."""
    form = Format("spqr", Dtype("int3", 8, 3), (SideTensor("scales", "block", 26, 16),), exact=False)
    return estimated_scheme(form, "spqr")._replace(rules=unconverted_modules(fields))


def read_higgs(fields: QuantFields) -> QuantizationScheme:
    """HIGGS (arXiv:2411.17525): grid indices and a 16-bit scale for each group. An estimate."""
    bits, size = int(fields.get("bits", 4)), int(fields.get("group_size", 256))
    return estimated_scheme(integers.pack_quantized(bits, size), "higgs")._replace(rules=unconverted_modules(fields))


def read_float4(fields: QuantFields) -> QuantizationScheme:
    """FP-Quant and Four over Six: NVFP4 or MXFP4, with additional matrices that are not counted. An estimate."""
    method = str(fields.get("quant_method"))
    kind = str(fields.get("forward_dtype") or fields.get("weight_dtype") or fields.get("dtype") or "nvfp4")
    if fields.get("store_master_weights") or fields.get("keep_master_weights"):
        return QuantizationScheme(
            method, None, estimate_reasons=(f"{method}: the checkpoint holds master weights; only those are counted",)
        )
    form = floats.MXFP4 if kind == "mxfp4" else floats.nvfp4()
    return estimated_scheme(form, method)._replace(rules=unconverted_modules(fields))


def read_bits_and_groups(fields: QuantFields) -> QuantizationScheme:
    """The stated bits and group size, in a layout that is not known exactly. An estimate."""
    bits = int(fields.get("nbits") or fields.get("num_bits") or fields.get("bits") or 4)
    method = str(fields.get("quant_method"))
    return estimated_scheme(integers.pack_quantized(bits, group_size(fields.get("group_size", 64))), method)._replace(
        rules=unconverted_modules(fields)
    )


def read_gguf(_: QuantFields) -> QuantizationScheme:
    """GGUF: the file states the types of its tensors, the config does not."""
    reason = "gguf: the config does not state the types; bytes are unquantised; give a type such as --dtype q4_k_m"
    return QuantizationScheme("gguf", None, estimate_reasons=(reason,))
