"""Read raw fields from a path, a directory, a preset name, standard input or a mapping.

A reader knows files and formats, not models. It raises SourceError for any input that it cannot read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paramcalc.base.errors import SourceError, nearest
from paramcalc.sources import presets
from paramcalc.sources.companions import companion_adapter, companion_notes
from paramcalc.sources.document import QUANTIZATION_SIDECARS, Document, Source
from paramcalc.sources.parse import LARGEST_FILE, adapter_error, check_model_config, parse_document, within_size_limit

CONFIG_SUFFIXES = (".json", ".yaml", ".yml")


def read_document(source: Source) -> Document:
    """Read a model's fields from a path, a directory with a config.json, a preset name, `-` (stdin) or a mapping.

    An object whose `to_dict()` returns a mapping counts as a mapping; a config of transformers is one.
    Raises SourceError for input that cannot be read or is not a model's config.
    """
    if not isinstance(source, type) and callable(to_dict := getattr(source, "to_dict", None)):
        source = to_dict()
    if isinstance(source, Mapping):
        name = source.get("_name_or_path") or source.get("name") or source.get("model_type")
        return check_model_config(dict(source), str(name or "config"), "the given mapping")
    if not isinstance(source, str | os.PathLike):
        kind = type(source).__name__
        raise SourceError(f"a {kind} is not a model", "give a path, a preset name, or a mapping of config fields")
    text = os.fspath(source)
    if not text.strip():
        raise SourceError("the model name is empty", "give a path or a preset name; . is the current directory")
    if text == "-":
        return _standard_input()
    if _is_path(text):
        return read_path(Path(text))
    return read_preset(text)


def _standard_input() -> Document:
    if sys.stdin is None:
        raise SourceError("standard input is closed")
    try:
        data = sys.stdin.buffer.read(LARGEST_FILE + 1)
    except OSError as error:
        raise SourceError(f"cannot read standard input: {error.strerror}") from error
    return parse_document(within_size_limit(data, "standard input"), "stdin", "standard input")


def _is_path(text: str) -> bool:
    """True for a text with a separator or config suffix, and for an existing file or folder.

    A folder that has a preset's name and no config.json is not a path: the preset wins.
    """
    if presets.looks_like_path(text):
        return True
    try:
        path = Path(text)
        return (
            path.is_file()
            or (path / "config.json").is_file()
            or (os.path.lexists(path) and text not in presets.preset_names())
        )
    except (ValueError, OSError):  # a null byte, a name too long, a folder without search permission
        return False


def source_exists(text: str) -> bool:
    """True if a text names an existing file, folder or preset."""
    return (_is_path(text) and os.path.lexists(text)) or text.lower() in presets.preset_names()


def read_preset(name: str) -> Document:
    """Read a preset. Raises SourceError with the nearest names."""
    return Document(presets.preset_fields(name), name.lower(), f"preset {name.lower()}")


def read_path(path: Path) -> Document:
    """Read a JSON or YAML file, or the config.json of a directory. Raises SourceError."""
    try:
        if path.is_dir():
            return _read_directory(path)
        document = parse_document(_bytes(path), _name(path), str(path), yaml=_has_yaml_suffix(path))
        return _with_companions(document, path) if path.name == "config.json" else document
    except FileNotFoundError as error:
        raise SourceError(f"no such file: {path}", _missing_hint(path)) from error
    except PermissionError as error:
        raise SourceError(f"not allowed to read {path}", "check its permissions") from error
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from error


def _with_companions(document: Document, config: Path) -> Document:
    """The document with what is saved next to a config.json."""
    notes = (*document.notes, *companion_notes(config))
    return document._replace(sidecars=_sidecars(config), notes=notes, adapter=companion_adapter(config))


def _sidecars(config: Path) -> dict[str, Any]:
    """The quantisation files next to a config.json, which ModelOpt, AutoGPTQ and AutoAWQ write."""
    paths = [config.with_name(name) for name in QUANTIZATION_SIDECARS]
    return {
        path.name: parse_document(_bytes(path), path.stem, str(path), yaml=False).fields
        for path in paths
        if path.exists()
    }


def _read_directory(path: Path) -> Document:
    config = path / "config.json"
    if config.exists():
        return read_path(config)
    if (path / "params.json").exists():
        return read_path(path / "params.json")
    if (path / "adapter_config.json").exists():
        raise adapter_error(str(path))
    if (path / "modules.json").exists():
        raise SourceError(
            f"{path} is a sentence-transformers folder without a config.json at its top",
            "give the folder of the transformer inside it, often 0_Transformer",
        )
    raise SourceError(
        f"no config.json in directory {path}", "if the config has another name, give the path of the file"
    )


def _name(path: Path) -> str:
    """The model's name: the file's stem, or the folder's name if the file is called config or params."""
    if path.is_relative_to("/dev/fd"):  # <(...) in a shell: the bare number is meaningless
        return str(path)
    if path.stem not in ("config", "params"):
        return path.stem
    folder = Path(os.path.abspath(path)).parent  # links stay: the name of a link is better than that of its target
    if folder.parent.name == "snapshots":  # Hugging Face cache: models--org--name/snapshots/hash
        return folder.parent.parent.name.rpartition("--")[2] or path.stem
    return folder.name or path.stem


def _has_yaml_suffix(path: Path) -> bool | None:
    """True if a regular file has a YAML suffix; None for a pipe or device, whose format its text decides."""
    return path.suffix.lower() in (".yaml", ".yml") if path.is_file() else None


def _bytes(path: Path) -> bytes:
    """The bytes of a file, pipe or device. Raises SourceError above the size limit."""
    try:
        with path.open("rb") as file:
            return within_size_limit(file.read(LARGEST_FILE + 1), str(path))
    except ValueError as error:  # a null byte
        raise SourceError(f"cannot read {path}: {error}") from error


def _missing_hint(path: Path) -> str:
    """A hint for a missing file: a file or preset of a similar name, or the missing folder."""
    if path.is_symlink():
        return f"it is a symbolic link to {os.readlink(path)}, which does not exist"
    similar = [name for name in _configs_next_to(path) if nearest(path.stem, [Path(name).stem], fallback="")]
    if similar:
        return f"did you mean {' or '.join(map(repr, similar[:3]))}?"
    if preset := nearest(path.stem.lower(), presets.preset_names(), fallback=""):
        return f"{preset} `paramcalc presets` lists all presets"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}; paramcalc does not download: give the path of a local config.json"
    return "give the path of a model's config.json, or a preset name; `paramcalc presets` lists them"


def _configs_next_to(path: Path) -> list[str]:
    """Names of the config files in the folder of a missing file, sorted."""
    try:
        return sorted(entry.name for entry in path.parent.iterdir() if entry.suffix.lower() in CONFIG_SUFFIXES)
    except OSError:
        return []
