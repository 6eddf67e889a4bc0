"""From a path, a directory, a preset name, standard input or a mapping to raw fields and where they came from.

No meaning here: a reader knows files and formats, not models. Everything unreadable is a SourceError.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from paramcalc import presets
from paramcalc.errors import SourceError, nearest

LARGEST_FILE = 10 * 2**20  # a config is a few KiB; ten MiB leave room for the longest ignore lists
MOST_ALIASES = 100
SIDECARS = ("hf_quant_config.json", "quantize_config.json")


class Document(NamedTuple):
    """The fields as they stand in the file, a name for the model, and the place to name in messages."""

    fields: dict[str, Any]
    name: str
    origin: str
    beside: Mapping[str, Any] = {}  # the files about quantisation that are beside it, by name


Source = str | os.PathLike[str] | Mapping[str, Any]


def read(source: Source) -> Document:
    """Read a model's fields from a path, a directory holding a config.json, a preset name, `-`, or a mapping.

    Raises SourceError for whatever cannot be read or is not a model's config.
    """
    if isinstance(source, Mapping):
        name = source.get("_name_or_path") or source.get("name") or source.get("model_type")
        return _checked(dict(source), str(name or "config"), "the given mapping")
    if not isinstance(source, str | os.PathLike):
        kind = type(source).__name__
        raise SourceError(f"a {kind} is not a model", "give a path, a preset's name, or a mapping of config fields")
    text = os.fspath(source)
    if text == "-":
        if sys.stdin is None:
            raise SourceError("standard input is closed")
        return _parsed(_limited(sys.stdin.buffer.read(LARGEST_FILE + 1), "standard input"), "stdin", "standard input")
    if _is_path(text):
        return read_path(Path(text))
    return read_preset(text)


def _is_path(text: str) -> bool:
    """A separator or an ending makes a path, and so does whatever is there, but not a folder with a preset's name."""
    if presets.looks_like_path(text):
        return True
    try:
        path = Path(text)
        return path.is_file() or (path / "config.json").is_file() or (path.exists() and text not in presets.names())
    except (ValueError, OSError):  # a null byte, a name too long, a folder that may not be searched
        return False


def read_preset(name: str) -> Document:
    """Read a preset that ships with paramcalc. Raises SourceError with the nearest names."""
    return Document(presets.fields(name), name.lower(), f"preset {name.lower()}")


def read_path(path: Path) -> Document:
    """Read a JSON or YAML file, or the config.json of a directory."""
    try:
        if path.is_dir():
            return _read_directory(path)
        document = _parsed(_bytes(path), _name(path), str(path), yaml=path.suffix.lower() in (".yaml", ".yml"))
        return document._replace(beside=_beside(path)) if path.name == "config.json" else document
    except PermissionError as error:
        raise SourceError(f"not allowed to read {path}", "check the permissions") from error
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from error


def _beside(config: Path) -> dict[str, Any]:
    """What tools write about quantisation into files of their own: ModelOpt, AutoGPTQ."""
    paths = [config.with_name(name) for name in SIDECARS]
    return {
        path.name: _parsed(_bytes(path), path.stem, str(path), yaml=False).fields for path in paths if path.exists()
    }


def _read_directory(path: Path) -> Document:
    config = path / "config.json"
    if config.exists():
        return read_path(config)
    if (path / "adapter_config.json").exists():
        raise _adapter(str(path))
    if (path / "modules.json").exists():
        raise SourceError(
            f"{path} is a sentence-transformers folder without a config.json at its top",
            "give the folder of the transformer inside it, often 0_Transformer",
        )
    raise SourceError(f"no config.json in directory {path}", "give the file itself if it has another name")


def _name(path: Path) -> str:
    if path.stem in ("config", "params"):
        return path.resolve().parent.name or path.stem
    return path.stem


def _bytes(path: Path) -> bytes:
    try:
        if not path.exists():
            raise SourceError(f"no such file: {path}", _missing_hint(str(path)))
        if not path.is_file():
            raise SourceError(
                f"{path} is not a regular file", "give a config.json, a YAML file, or - for standard input"
            )
        with path.open("rb") as file:
            return _limited(file.read(LARGEST_FILE + 1), str(path))
    except ValueError as error:  # a null byte
        raise SourceError(f"cannot read {path}: {error}") from error


def _missing_hint(text: str) -> str:
    stem = Path(text).stem
    return nearest(stem, presets.names(), fallback="`paramcalc presets` lists the models that ship with it")


def _limited(data: bytes, origin: str) -> bytes:
    if len(data) > LARGEST_FILE:
        raise SourceError(
            f"{origin} is larger than {LARGEST_FILE:,} bytes", "a config is a few KiB; is this the right file?"
        )
    return data


def _parsed(data: bytes, name: str, origin: str, *, yaml: bool | None = None) -> Document:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{origin} is not UTF-8 text", "is it a weight file? a config is JSON or YAML") from error
    if not text.strip():
        raise SourceError(f"{origin} is empty", "a config holds at least model_type and sizes")
    as_yaml = yaml if yaml is not None else not text.lstrip().startswith(("{", "["))
    value = _yaml(text, origin) if as_yaml else _json(text, origin)
    if not isinstance(value, dict):
        kind = {list: "a list", str: "a text", type(None): "empty"}.get(type(value), "a single value")
        raise SourceError(
            f"{origin} holds {kind}, not the fields of a model",
            'expected a mapping such as {"model_type": "llama", ...}',
        )
    return _checked(value, str(name), origin)


def _json(text: str, origin: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: _unique(pairs, origin))
    except json.JSONDecodeError as error:
        raise SourceError(
            f"{origin} is not valid JSON: {error.msg.lower()} (line {error.lineno}, column {error.colno})",
            "check the file; a YAML file should end in .yaml",
        ) from error
    except (RecursionError, ValueError) as error:
        raise SourceError(f"{origin} is not usable JSON: {error}") from error


def _unique(pairs: list[tuple[str, Any]], origin: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields and fields[key] != value:
            raise SourceError(f"{origin} says {key!r} twice: {fields[key]!r} and {value!r}", "keep one of the two")
        fields[key] = value
    return fields


def _yaml(text: str, origin: str) -> Any:
    import yaml

    from paramcalc.yaml_loader import StrictLoader

    try:
        if sum(isinstance(token, yaml.AliasToken) for token in _yaml_tokens(text)) > MOST_ALIASES:
            raise SourceError(f"{origin} has more than {MOST_ALIASES} YAML aliases", "write the values out")
        return yaml.load(text, Loader=StrictLoader)  # noqa: S506  (a SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise SourceError(f"{origin} is not valid YAML: {problem}{where}") from error
    except (RecursionError, ValueError, AttributeError, LookupError) as error:
        # The last two are what PyYAML raises for a value that does not fit its explicit tag, as in !!bool abc.
        raise SourceError(f"{origin} is not usable YAML: {error}") from error


def _yaml_tokens(text: str) -> Any:
    import yaml

    return yaml.scan(text, Loader=yaml.SafeLoader) if "*" in text else ()


def _checked(fields: dict[str, Any], name: str, origin: str) -> Document:
    """Refuse files that stand beside a config and are often taken for it."""
    if any(not isinstance(key, str) for key in fields):
        raise SourceError(f"{origin} has a key that is not a text", "keys are names such as hidden_size")
    if "peft_type" in fields or "base_model_name_or_path" in fields:
        raise _adapter(origin)
    if "model_type" not in fields and "architectures" not in fields:
        if "tokenizer_class" in fields or "added_tokens_decoder" in fields:
            raise SourceError(
                f"{origin} is a tokenizer's config, not a model's", "the model's is config.json beside it"
            )
        if "transformers_version" in fields and "eos_token_id" in fields:
            raise SourceError(f"{origin} is a generation config, not a model's", "the model's is config.json beside it")
    return Document(fields, name, origin)


def _adapter(origin: str) -> SourceError:
    return SourceError(f"{origin} describes an adapter (LoRA), not a model", "give the config.json of its base model")
