"""GPUs and other accelerators as data: memory in bytes, bandwidth in GB/s, compute in TFLOPS."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from paramcalc.base.errors import ParamcalcError, choices
from paramcalc.base.units import parse_bytes

MIB = 2**20
BRANDS = re.compile(r"((nvidia|geforce|tesla|amd|radeon|instinct)[\s-]*)+")  # before the name of a device
MEMORY_SIZE = re.compile(r"[0-9.,_]+\s*([kmgtp]?i?b|[kmgtp]?)")  # does not match "4060 Ti"


class Device(NamedTuple):
    """A device. Bandwidth is in decimal GB/s, compute in dense TFLOPS; None without a source."""

    name: str
    memory: int  # total bytes, as the vendor's tool reports them
    aliases: tuple[str, ...] = ()
    vendor: str = ""
    stated: bool = False  # the memory is the vendor's nominal size; no report from a device is known
    bandwidth_gb_s: int | None = None
    bf16_tflops: int | None = None
    fp8_tflops: int | None = None
    source: str = ""
    note: str = ""


def known_devices() -> list[Device]:
    """All devices of the data file, in its order."""
    return list(_known())


def find_device(text: str) -> Device:
    """The device of that name (`h100`, `GeForce RTX 4090`), or one with a stated memory size (`24GiB`).

    Case does not matter. Raises ParamcalcError with the choices.
    """
    name = _plain(text)
    for one in _known():
        if name in (_plain(one.name), *map(_plain, one.aliases)):
            return one
    if MEMORY_SIZE.fullmatch(text.strip().lower()) and not text.strip().isdigit():
        memory = parse_bytes(text)
        if memory < 1:
            raise ParamcalcError(f"{text}: the memory of a device must be positive", "give a size such as 24GiB")
        return Device(text.strip(), memory)
    names = [one.name for one in _known()]
    hint = choices(text.lower().replace(" ", "-"), names)
    raise ParamcalcError(f"unknown GPU {text!r}", f"{hint}; or a size like 24GiB")


def _plain(name: str) -> str:
    """The name without brands, spaces and punctuation: `Tesla V100-SXM2-16GB` is `v100sxm216gb`."""
    lower = name.lower().strip()
    brands = BRANDS.match(lower)
    return re.sub(r"[^a-z0-9]", "", lower[brands.end() :] if brands else lower)


@cache
def _known() -> tuple[Device, ...]:
    """The devices in devices.json, which is generated from presets/gpus.yaml because JSON loads faster."""
    entries = json.loads(Path(__file__).with_name("devices.json").read_text(encoding="utf-8"))
    return tuple(_device(name, dict(entry)) for name, entry in entries.items())


def _device(name: str, entry: dict[str, object]) -> Device:
    memory = entry.pop("memory_mib")
    aliases = entry.pop("aliases", [])
    assert isinstance(memory, int) and isinstance(aliases, list)  # noqa: PT018  (the file is ours)
    return Device(name, memory * MIB, tuple(aliases), **entry)  # type: ignore[arg-type]  # our file; tests read all of it
