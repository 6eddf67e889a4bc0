"""GPUs and their kin, as data: how much memory they have, how fast it is, and what they compute."""

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
MEMORY_SIZE = re.compile(r"[0-9.,_]+\s*([kmgtp]?i?b|[kmgtp]?)")  # "4060 Ti" is none


class Device(NamedTuple):
    """A device. Bandwidth is decimal GB/s, compute dense TFLOPS; None where no source is known."""

    name: str
    memory: int  # bytes in all, as the vendor's tool reports them
    aliases: tuple[str, ...] = ()
    vendor: str = ""
    stated: bool = False  # what the vendor says it has; no report of the device is known
    bandwidth_gb_s: int | None = None
    bf16_tflops: int | None = None
    fp8_tflops: int | None = None
    source: str = ""
    note: str = ""


def known_devices() -> list[Device]:
    """All that are known, in the order of the data file."""
    return list(_known())


def find_device(text: str) -> Device:
    """The device of that name, or one with so much memory: `h100`, `GeForce RTX 4090`, `24GiB`, in any case.

    Raises ParamcalcError with the choices.
    """
    name = _plain(text)
    for one in _known():
        if name in (_plain(one.name), *map(_plain, one.aliases)):
            return one
    if MEMORY_SIZE.fullmatch(text.strip().lower()) and not text.strip().isdigit():
        memory = parse_bytes(text)
        if memory < 1:
            raise ParamcalcError(f"a device of {text} holds nothing", "write it like 24GiB")
        return Device(text.strip(), memory)
    names = [one.name for one in _known()]
    hint = choices(text.lower().replace(" ", "-"), names)
    raise ParamcalcError(f"unknown GPU {text!r}", f"{hint}; or a size like 24GiB")


def _plain(name: str) -> str:
    """The name without its maker's brands, as one word: `Tesla V100-SXM2-16GB` is `v100sxm216gb`."""
    lower = name.lower().strip()
    brands = BRANDS.match(lower)
    return re.sub(r"[^a-z0-9]", "", lower[brands.end() :] if brands else lower)


@cache
def _known() -> tuple[Device, ...]:
    """From the JSON that is written from presets/gpus.yaml: it loads in no time."""
    entries = json.loads(Path(__file__).with_name("devices.json").read_text(encoding="utf-8"))
    return tuple(_device(name, dict(entry)) for name, entry in entries.items())


def _device(name: str, entry: dict[str, object]) -> Device:
    memory = entry.pop("memory_mib")
    aliases = entry.pop("aliases", [])
    assert isinstance(memory, int) and isinstance(aliases, list)  # noqa: PT018  (the file is ours)
    return Device(name, memory * MIB, tuple(aliases), **entry)  # type: ignore[arg-type]  # the file is ours, and tests read it all
