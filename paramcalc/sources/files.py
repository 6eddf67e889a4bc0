"""From a path, a directory, a preset name, standard input or a mapping to raw fields and where they came from.

No meaning here: a reader knows files and formats, not models. Everything unreadable is a SourceError.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from paramcalc.base.errors import SourceError, nearest
from paramcalc.sources import presets

LARGEST_FILE = 10 * 2**20  # a config is a few KiB; ten MiB leave room for the longest ignore lists
MOST_ALIASES = 100
SIDECARS = ("hf_quant_config.json", "quantize_config.json", "quant_config.json")
# What stands beside a config.json and is taken for it: the keys that give it away.
NEIGHBOURS = (
    ({"tokenizer_class"}, "a tokenizer's config"),
    ({"added_tokens_decoder"}, "a tokenizer's config"),
    ({"added_tokens", "normalizer"}, "a tokenizer"),
    ({"bos_token"}, "a map of special tokens"),
    ({"transformers_version", "eos_token_id"}, "a generation config"),
    ({"weight_map"}, "the index of weight files"),
    ({"image_processor_type"}, "a preprocessor's config"),
    ({"feature_extractor_type"}, "a preprocessor's config"),
    ({"processor_class"}, "a processor's config"),
    ({"_diffusers_version"}, "part of a diffusers pipeline"),
    ({"log_history", "global_step"}, "the state of a training run"),
)
ENDINGS = (".json", ".yaml", ".yml")


class Document(NamedTuple):
    """The fields as they stand in the file, a name for the model, and the place to name in messages."""

    fields: dict[str, Any]
    name: str
    origin: str
    beside: Mapping[str, Any] = {}  # the files about quantisation that are beside it, by name


class Described(Protocol):
    """What says of itself what its fields are, like a config of transformers."""

    def to_dict(self) -> dict[str, Any]:
        """The fields."""
        ...


Source = str | os.PathLike[str] | Mapping[str, Any] | Described


def read(source: Source) -> Document:
    """Read a model's fields from a path, a directory holding a config.json, a preset name, `-`, or a mapping.

    An object with a `to_dict` that gives a mapping, like a config of transformers, is as good as that.

    Raises SourceError for whatever cannot be read or is not a model's config.
    """
    if not isinstance(source, type) and callable(described := getattr(source, "to_dict", None)):
        source = described()
    if isinstance(source, Mapping):
        name = source.get("_name_or_path") or source.get("name") or source.get("model_type")
        return _checked(dict(source), str(name or "config"), "the given mapping")
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
    return _parsed(_limited(data, "standard input"), "stdin", "standard input")


def _is_path(text: str) -> bool:
    """A separator or an ending makes a path, and so does whatever is there, but not a folder with a preset's name."""
    if presets.looks_like_path(text):
        return True
    try:
        path = Path(text)
        return (
            path.is_file()
            or (path / "config.json").is_file()
            or (os.path.lexists(path) and text not in presets.names())
        )
    except (ValueError, OSError):  # a null byte, a name too long, a folder that may not be searched
        return False


def exists(text: str) -> bool:
    """Whether a text names a model that is there, as a file, a folder or a preset."""
    return (_is_path(text) and os.path.lexists(text)) or text.lower() in presets.names()


def read_preset(name: str) -> Document:
    """Read a preset that ships with paramcalc. Raises SourceError with the nearest names."""
    return Document(presets.fields(name), name.lower(), f"preset {name.lower()}")


def read_path(path: Path) -> Document:
    """Read a JSON or YAML file, or the config.json of a directory."""
    try:
        if path.is_dir():
            return _read_directory(path)
        document = _parsed(_bytes(path), _name(path), str(path), yaml=_ending_says_yaml(path))
        return document._replace(beside=_beside(path)) if path.name == "config.json" else document
    except FileNotFoundError as error:
        raise SourceError(f"no such file: {path}", _missing_hint(path)) from error
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
            return _limited(file.read(LARGEST_FILE + 1), str(path))
    except ValueError as error:  # a null byte
        raise SourceError(f"cannot read {path}: {error}") from error


def _missing_hint(path: Path) -> str:
    """What may have been meant by a file that is not there."""
    if path.is_symlink():
        return f"it is a symbolic link to {os.readlink(path)}, which is not there"
    beside = [name for name in _configs_beside(path) if nearest(path.stem, [Path(name).stem], fallback="")]
    if beside:
        return f"did you mean {' or '.join(map(repr, beside[:3]))}?"
    if preset := nearest(path.stem.lower(), presets.names(), fallback=""):
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
        kind = {list: "a list", str: "a text", type(None): "nothing"}.get(type(value), "a single value")
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
    except RecursionError as error:
        raise SourceError(f"{origin} is not usable JSON: it is nested too deeply") from error
    except ValueError as error:  # what Python says of a number with thousands of digits
        raise SourceError(f"{origin} is not usable JSON: it has a number too long to read") from error


def _unique(pairs: list[tuple[str, Any]], origin: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields and (first := _written(fields[key])) != (second := _written(value)):
            raise SourceError(f"{origin} says {key!r} twice: {first} and {second}", "keep one of the two")
        fields[key] = value
    return fields


def _written(value: Any) -> str:
    """A value as JSON in one form: 1, 1.0 and true are equal in Python, and here they are not."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _yaml(text: str, origin: str) -> Any:
    import yaml

    from paramcalc.sources.yaml_loader import StrictLoader

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
        for keys, kind in NEIGHBOURS:
            if keys <= fields.keys():
                raise SourceError(f"{origin} is {kind}, not a model's config", "the model's is config.json beside it")
    return Document(fields, name, origin)


def _adapter(origin: str) -> SourceError:
    return SourceError(f"{origin} describes an adapter (LoRA), not a model", "give the config.json of its base model")
