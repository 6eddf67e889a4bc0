"""From bytes to the fields of a Document: JSON and YAML, strictly."""

from __future__ import annotations

import json
from typing import Any

from paramcalc.base.errors import SourceError
from paramcalc.sources.document import Document

LARGEST_FILE = 10 * 2**20  # a config is a few KiB; ten MiB leave room for the longest ignore lists
MOST_ALIASES = 100
# What stands beside a config.json and is taken for it: the keys that give it away.
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
    """The bytes, if there are no more than a config can have. Raises SourceError."""
    if len(data) > LARGEST_FILE:
        raise SourceError(
            f"{origin} is larger than {LARGEST_FILE:,} bytes", "a config is a few KiB; is this the right file?"
        )
    return data


def parse_document(data: bytes, name: str, origin: str, *, yaml: bool | None = None) -> Document:
    """The document in some bytes: JSON or YAML. Raises SourceError for anything but a mapping."""
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


def check_model_config(fields: dict[str, Any], name: str, origin: str) -> Document:
    """Refuse files that stand beside a config and are often taken for it."""
    if any(not isinstance(key, str) for key in fields):
        raise SourceError(f"{origin} has a key that is not a text", "keys are names such as hidden_size")
    if "peft_type" in fields or "base_model_name_or_path" in fields:
        raise adapter_error(origin)
    if "model_type" not in fields and "architectures" not in fields:
        for keys, kind in NOT_MODEL_CONFIGS:
            if keys <= fields.keys():
                raise SourceError(f"{origin} is {kind}, not a model's config", "the model's is config.json beside it")
    return Document(fields, name, origin)


def adapter_error(origin: str) -> SourceError:
    """The error for a LoRA adapter where a model is expected."""
    return SourceError(f"{origin} describes an adapter (LoRA), not a model", "give the config.json of its base model")
