"""The names of formats: fixed names (`nf4-dq`, `mxfp4`), and patterns with a builder for names that state sizes.

`gptq-int4-g128` is an example of a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from paramcalc.base.dtypes import DTYPE_ALIASES, SCALAR_DTYPES
from paramcalc.base.errors import ParamcalcError, choices
from paramcalc.storage.formats import floats, integers
from paramcalc.storage.formats.format import Format, plain_format
from paramcalc.storage.gguf.types import FTYPE_BASES, is_gguf

FIXED_FORMATS = {
    f.name: f
    for f in (
        *(plain_format(kind) for kind in SCALAR_DTYPES if kind.name not in ("int8", "int4")),
        integers.INT8,
        integers.bnb4("nf4"),
        integers.bnb4("nf4", double=True),
        integers.bnb4("fp4"),
        integers.bnb4("fp4", double=True),
        floats.fp8_tensor(),
        floats.fp8_channel(),
        floats.fp8_block(),
        floats.FBGEMM,
        integers.W8A8,
        integers.EETQ,
        integers.TORCHAO_INT8,
        floats.MXFP4,
        floats.MXFP6,
        floats.MXFP8,
        floats.nvfp4(),
        integers.BITNET,
    )
}
# Other names of formats, and short names for the most common sizes. `int4` alone states no scales.
FORMAT_ALIASES = {
    "int4": "w4a16-g128",
    "llm.int8": "int8",
    "bnb-int8": "int8",
    "bnb-nf4": "nf4",
    "bnb-nf4-dq": "nf4-dq",
    "bnb-fp4": "fp4",
    "w8a8": "w8a8-int8",
    "fp8-tensor": "fp8",
    "fp8-dynamic": "fp8-channel",
    "fp8-block": "fp8-block128",
    "gptq": "gptq-int4-g128",
    "awq": "awq-int4-g128",
    "hqq": "hqq-int4-g64",
    "mlx": "mlx-int4-g64",
    "mlx-4bit": "mlx-int4-g64",
    "mlx-8bit": "mlx-int8-g64",
    "quanto": "quanto-int4",
    "torchao-int4": "torchao-int4-g128",
}
_GROUP = r"(?:-g(\d+|none))?"
NAME_PATTERNS: dict[str, Callable[[re.Match[str]], Format]] = {
    rf"gptq-int([2348]){_GROUP}": lambda m: integers.gptq(int(m[1]), _size(m[2], 128)),
    rf"autoround-int([2348]){_GROUP}": lambda m: integers.gptq(int(m[1]), _size(m[2], 128), index=False),
    rf"marlin-int4{_GROUP}": lambda m: integers.marlin(_size(m[1], 128)),
    rf"awq-int([48]){_GROUP}": lambda m: integers.awq(int(m[1]), _size(m[2], 128)),
    rf"w([2-8])a16{_GROUP}(-asym)?": lambda m: integers.pack_quantized(int(m[1]), _size(m[2], 128), zeros=bool(m[3])),
    rf"mlx-int([2-68]){_GROUP}": lambda m: integers.mlx(int(m[1]), _size(m[2], 64) or 64),
    rf"hqq-int([12348]){_GROUP}": lambda m: integers.hqq(int(m[1]), _size(m[2], 64) or 64),
    r"fp8-g(\d+)": lambda m: floats.fp8_group(int(m[1])),
    rf"torchao-int4{_GROUP}": lambda m: integers.torchao_int4(_size(m[1], 128) or 128),
    r"quanto-int([248])": lambda m: integers.quanto(int(m[1])),
    r"(?:exl2-)?(\d+(?:\.\d+)?)(?:bpw)": lambda m: integers.exl2(m[1]),
    r"exl2-(\d+(?:\.\d+)?)": lambda m: integers.exl2(m[1]),
}
EXAMPLES = (
    "gptq-int4-g128",
    "gptq-int8-g128",
    "autoround-int4-g128",
    "marlin-int4-g128",
    "awq-int4-g128",
    "w4a16-g128",
    "w8a16-gnone",
    "mlx-int4-g64",
    "mlx-int8-g64",
    "hqq-int4-g64",
    "torchao-int4-g128",
    "quanto-int4",
    "quanto-int8",
    "exl2-4.65bpw",
)


def _size(text: str | None, default: int) -> int | None:
    """The group size in a name: 128 for `g128`, None (a whole row) for `gnone`, `default` if the name has none."""
    if text is None:
        return default
    return None if text == "none" or int(text) == 0 else int(text)


def format_named(name: str) -> Format:
    """The format of that name, in upper or lower case. Raises ParamcalcError with the choices."""
    form = find_format(name)
    if form is None:
        files = [kind.lower() for kind in FTYPE_BASES if is_gguf(kind)]
        shown = [*FIXED_FORMATS, *EXAMPLES, *files]
        hint = choices(name.lower(), [*shown, *FORMAT_ALIASES, *DTYPE_ALIASES], shown=shown)
        raise ParamcalcError(f"unknown format {name!r}", hint)
    return form


def find_format(name: str) -> Format | None:
    """The format of that name, or None."""
    key = name.lower().strip().removeprefix("torch.").replace("_", "-")
    key = FORMAT_ALIASES.get(key, key)
    plain_key = key.replace("-", "_")
    for candidate in (key, DTYPE_ALIASES.get(plain_key, plain_key)):
        if candidate in FIXED_FORMATS:
            return FIXED_FORMATS[candidate]
    for pattern, build in NAME_PATTERNS.items():
        if match := re.fullmatch(pattern, key):
            return build(match)
    return None


def listed_formats() -> list[Format]:
    """Every format with a fixed name, and examples of the formats whose names state sizes."""
    return [*FIXED_FORMATS.values(), *map(format_named, EXAMPLES)]
