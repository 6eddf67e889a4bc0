"""Parse bytes as strict JSON or YAML into a Document."""

from __future__ import annotations

import json
from typing import Any

from paramcalc.base.errors import SourceError
from paramcalc.sources.document import Document
from paramcalc.sources.original_formats import translated

LARGEST_FILE = 10 * 2**20  # bytes; a config is a few KiB, and ten MiB leave room for the longest ignore lists
MOST_ALIASES = 100  # a limit against YAML bombs
# Files next to a config.json that are often mistaken for it: keys that identify each kind.
NOT_MODEL_CONFIGS = (
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


def within_size_limit(data: bytes, origin: str) -> bytes:
    """The bytes, unchanged. Raises SourceError if they exceed `LARGEST_FILE`."""
    if len(data) > LARGEST_FILE:
        raise SourceError(
            f"{origin} is larger than {LARGEST_FILE:,} bytes", "a config is a few KiB; is this the right file?"
        )
    return data


def parse_document(data: bytes, name: str, origin: str, *, yaml: bool | None = None) -> Document:
    """Parse JSON or YAML; `yaml=None` decides by the text. Raises SourceError for anything but a model's config."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{origin} is not UTF-8 text", "a config is JSON or YAML; is this a weight file?") from error
    if not text.strip():
        raise SourceError(f"{origin} is empty", "a config holds at least model_type and sizes")
    as_yaml = yaml if yaml is not None else not text.lstrip().startswith(("{", "["))
    value = _yaml(text, origin) if as_yaml else _json(text, origin)
    if not isinstance(value, dict):
        kind = {list: "a list", str: "a string", type(None): "nothing"}.get(type(value), "a single value")
        raise SourceError(
            f"{origin} holds {kind}, not the fields of a model",
            'expected a mapping such as {"model_type": "llama", ...}',
        )
    return check_model_config(value, str(name), origin)


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
    except ValueError as error:  # Python refuses to parse a number with thousands of digits
        raise SourceError(f"{origin} is not usable JSON: it has a number with too many digits") from error


def _unique(pairs: list[tuple[str, Any]], origin: str) -> dict[str, Any]:
    """The pairs as a dict. Raises SourceError for a repeated key with two values."""
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields and (first := _canonical_json(fields[key])) != (second := _canonical_json(value)):
            raise SourceError(f"{origin} has the key {key!r} twice: {first} and {second}", "keep one of the two")
        fields[key] = value
    return fields


def _canonical_json(value: Any) -> str:
    """A value in one JSON form. It distinguishes 1, 1.0 and true, which are equal in Python."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _yaml(text: str, origin: str) -> Any:
    import yaml

    from paramcalc.sources.yaml_loader import StrictLoader

    try:
        if sum(isinstance(token, yaml.AliasToken) for token in _yaml_tokens(text)) > MOST_ALIASES:
            raise SourceError(f"{origin} has more than {MOST_ALIASES} YAML aliases", "write the values in full")
        return yaml.load(text, Loader=StrictLoader)  # noqa: S506  (a SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        position = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise SourceError(f"{origin} is not valid YAML: {problem}{position}") from error
    except (RecursionError, ValueError, AttributeError, LookupError) as error:
        # PyYAML raises the last two for a value that does not fit its explicit tag, as in !!bool abc.
        raise SourceError(f"{origin} is not usable YAML: {error}") from error


def _yaml_tokens(text: str) -> Any:
    import yaml

    return yaml.scan(text, Loader=yaml.SafeLoader) if "*" in text else ()


def check_model_config(fields: dict[str, Any], name: str, origin: str) -> Document:
    """The document of a config. Raises SourceError for other files that are often mistaken for one."""
    if any(not isinstance(key, str) for key in fields):
        raise SourceError(f"{origin} has a key that is not a string", "keys are names such as hidden_size")
    if "peft_type" in fields or "base_model_name_or_path" in fields:
        raise adapter_error(origin)
    if "model_type" not in fields and "architectures" not in fields:
        for keys, kind in NOT_MODEL_CONFIGS:
            if keys <= fields.keys():
                raise SourceError(f"{origin} is {kind}, not a model's config", "give the config.json next to it")
    return translated(Document(fields, name, origin))


def adapter_error(origin: str) -> SourceError:
    """The error for a LoRA adapter in place of a model."""
    return SourceError(f"{origin} describes an adapter (LoRA), not a model", "give the config.json of its base model")
