"""Other modules that are saved next to a config.json: Dense layers of sentence-transformers, and a LoRA adapter."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

LARGEST_FILE = 2**20
MODULES, ADAPTER = "modules.json", "adapter_config.json"


def read_json(path: Path) -> Any:
    """The content of a small JSON file; None where it cannot be read: the count does not depend on it."""
    try:
        with path.open("rb") as file:
            return json.loads(file.read(LARGEST_FILE))
    except (OSError, ValueError, RecursionError):
        return None


def companion_notes(config: Path) -> Iterator[str]:
    """A note on the Dense layers that modules.json lists, in the folder of the config or around it."""
    folder = config.parent
    for base in (folder, folder.parent):
        modules = read_json(base / MODULES) if (base / MODULES).exists() else None
        entries = [one for one in modules if isinstance(one, Mapping)] if isinstance(modules, list) else []
        own = {"", "."} if base == folder else {folder.name}
        if any(str(one.get("path", "")).strip("/") in own for one in entries):
            yield from dense_notes(base, entries)
            return


def dense_notes(base: Path, entries: list[Mapping[str, Any]]) -> Iterator[str]:
    """One note on all Dense layers; what is not known of them is said."""
    dense = [one for one in entries if str(one.get("type", "")).rpartition(".")[2] == "Dense"]
    if not dense:
        return
    sizes = [dense_parameters(base, str(one.get("path", ""))) for one in dense]
    layers = f"{len(dense)} Dense layer{'s' if len(dense) > 1 else ''}"
    known = [size for size in sizes if size is not None]
    amount = f"with {sum(known):,} parameters" if len(known) == len(sizes) else "whose sizes cannot be read"
    yield f"{MODULES} next to the config lists {layers} {amount}, which are not counted"


def dense_parameters(base: Path, path: str) -> int | None:
    """Parameters of sentence_transformers.models.Dense, from the config in its folder; None where that is unknown."""
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts:
        return None
    fields = read_json(base / parts / "config.json")
    if not isinstance(fields, Mapping):
        return None
    d_in, d_out, bias = fields.get("in_features"), fields.get("out_features"), fields.get("bias", True)
    if type(d_in) is not int or type(d_out) is not int or type(bias) is not bool or min(d_in, d_out) < 1:
        return None
    return d_in * d_out + (d_out if bias else 0)


def companion_adapter(config: Path) -> Mapping[str, Any] | None:
    """The adapter_config.json next to the config; None without one, empty where it cannot be read."""
    path = config.with_name(ADAPTER)
    if not path.exists():
        return None
    fields = read_json(path)
    return fields if isinstance(fields, Mapping) else {}
