"""From a path, a directory, a preset name, standard input or a mapping to raw fields and where they came from.

No meaning here: a reader knows files and formats, not models. Everything unreadable is a SourceError.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paramcalc.base.errors import SourceError, nearest
from paramcalc.sources import presets
from paramcalc.sources.document import QUANTIZATION_SIDECARS, Document, Source
from paramcalc.sources.parse import LARGEST_FILE, adapter_error, check_model_config, parse_document, within_size_limit

ENDINGS = (".json", ".yaml", ".yml")


def read_document(source: Source) -> Document:
    """Read a model's fields from a path, a directory holding a config.json, a preset name, `-`, or a mapping.

    An object with a `to_dict` that gives a mapping, like a config of transformers, is as good as that.

    Raises SourceError for whatever cannot be read or is not a model's config.
    """
    if not isinstance(source, type) and callable(described := getattr(source, "to_dict", None)):
        source = described()
    if isinstance(source, Mapping):
        name = source.get("_name_or_path") or source.get("name") or source.get("model_type")
        return check_model_config(dict(source), str(name or "config"), "the given mapping")
    if not isinstance(source, str | os.PathLike):
        kind = type(source).__name__
        raise SourceError(f"a {kind} is not a model", "give a path, a preset's name, or a mapping of config fields")
    text = os.fspath(source)
    if not text.strip():
        raise SourceError("an empty name is no model", "give a path or a preset's name; . is the current directory")
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
    """A separator or an ending makes a path, and so does whatever is there, but not a folder with a preset's name."""
    if presets.looks_like_path(text):
        return True
    try:
        path = Path(text)
        return (
            path.is_file()
            or (path / "config.json").is_file()
            or (os.path.lexists(path) and text not in presets.preset_names())
        )
    except (ValueError, OSError):  # a null byte, a name too long, a folder that may not be searched
        return False


def source_exists(text: str) -> bool:
    """Whether a text names a model that is there, as a file, a folder or a preset."""
    return (_is_path(text) and os.path.lexists(text)) or text.lower() in presets.preset_names()


def read_preset(name: str) -> Document:
    """Read a preset that ships with paramcalc. Raises SourceError with the nearest names."""
    return Document(presets.preset_fields(name), name.lower(), f"preset {name.lower()}")


def read_path(path: Path) -> Document:
    """Read a JSON or YAML file, or the config.json of a directory."""
    try:
        if path.is_dir():
            return _read_directory(path)
        document = parse_document(_bytes(path), _name(path), str(path), yaml=_ending_says_yaml(path))
        return document._replace(sidecars=_beside(path)) if path.name == "config.json" else document
    except FileNotFoundError as error:
        raise SourceError(f"no such file: {path}", _missing_hint(path)) from error
    except PermissionError as error:
        raise SourceError(f"not allowed to read {path}", "check the permissions") from error
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from error


def _beside(config: Path) -> dict[str, Any]:
    """What tools write about quantisation into files of their own: ModelOpt, AutoGPTQ."""
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
    if (path / "adapter_config.json").exists():
        raise adapter_error(str(path))
    if (path / "modules.json").exists():
        raise SourceError(
            f"{path} is a sentence-transformers folder without a config.json at its top",
            "give the folder of the transformer inside it, often 0_Transformer",
        )
    raise SourceError(f"no config.json in directory {path}", "give the file itself if it has another name")


def _name(path: Path) -> str:
    if path.is_relative_to("/dev/fd"):  # <(...) in a shell: the bare number would say nothing
        return str(path)
    if path.stem not in ("config", "params"):
        return path.stem
    folder = Path(os.path.abspath(path)).parent  # not resolved: where a link points says less than where it stands
    if folder.parent.name == "snapshots":  # the cache of the Hugging Face hub: models--org--name/snapshots/hash
        return folder.parent.parent.name.rpartition("--")[2] or path.stem
    return folder.name or path.stem


def _ending_says_yaml(path: Path) -> bool | None:
    """A file's ending says what it holds; in a pipe or a device, the text has to."""
    return path.suffix.lower() in (".yaml", ".yml") if path.is_file() else None


def _bytes(path: Path) -> bytes:
    """What a file, a pipe or a device gives, as far as a config can be long."""
    try:
        with path.open("rb") as file:
            return within_size_limit(file.read(LARGEST_FILE + 1), str(path))
    except ValueError as error:  # a null byte
        raise SourceError(f"cannot read {path}: {error}") from error


def _missing_hint(path: Path) -> str:
    """What may have been meant by a file that is not there."""
    if path.is_symlink():
        return f"it is a symbolic link to {os.readlink(path)}, which is not there"
    beside = [name for name in _configs_beside(path) if nearest(path.stem, [Path(name).stem], fallback="")]
    if beside:
        return f"did you mean {' or '.join(map(repr, beside[:3]))}?"
    if preset := nearest(path.stem.lower(), presets.preset_names(), fallback=""):
        return f"{preset} `paramcalc presets` lists the models that ship with it"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}; nothing is downloaded: give the path of a config.json that you have"
    return "give the path of a model's config.json, or a name that `paramcalc presets` lists"


def _configs_beside(path: Path) -> list[str]:
    """The files in a missing one's folder that could be meant."""
    try:
        return sorted(entry.name for entry in path.parent.iterdir() if entry.suffix.lower() in ENDINGS)
    except OSError:
        return []
