"""The oracle: build a `transformers` model on torch's meta device and measure its parameters.

No weights are allocated, so the largest published models take a second or two. Every number is
read off real `nn.Parameter` objects; nothing here knows a formula, and nothing here may import
paramcalc.
"""

import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import torch
import transformers
from classify import VISION_CATEGORIES, Link, category
from torch import nn
from transformers.models.auto import configuration_auto, modeling_auto

logging.getLogger("transformers").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", message="Initializing zero-element tensors")

VERSIONS = {
    "transformers": transformers.__version__,
    "torch": torch.__version__.partition("+")[0],
}

MAIN_TASKS = (
    "MODEL_FOR_CAUSAL_LM_MAPPING",
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING",
    "MODEL_FOR_MASKED_LM_MAPPING",
    "MODEL_MAPPING",
)
MAIN_CLASSES = {
    "bart": "BartForConditionalGeneration",
    "bert": "BertForMaskedLM",
    "gemma3": "Gemma3ForConditionalGeneration",
    "roberta": "RobertaForMaskedLM",
}
"""The main class where the order of MAIN_TASKS would pick another one."""

ENCODER_ONLY = ("albert", "bert", "distilbert", "roberta")

Fields = Mapping[str, Any]


def config_from(fields: Fields) -> Any:
    """The `transformers` config object for the contents of a config.json."""
    config_class = configuration_auto.CONFIG_MAPPING[fields["model_type"]]
    decoded = config_class._decode_special_floats(json.loads(json.dumps(fields)))
    return config_class.from_dict(decoded)


def full_fields(fields: Fields) -> dict[str, Any]:
    """Every key the config class can write: defaults, derived keys and nulls included."""
    full: dict[str, Any] = json.loads(config_from(fields).to_json_string(use_diff=False))
    return full


def task_class(config: Any, *tasks: str) -> str | None:
    """The name of the class of the first auto mapping that knows this config."""
    for task in tasks:
        mapping = getattr(modeling_auto, task)
        if type(config) in mapping:
            found = mapping[type(config)]
            chosen: type = found[0] if isinstance(found, tuple) else found
            return chosen.__name__
    return None


def main_class(model_type: str) -> str:
    """The class that counts when a config names none."""
    config = configuration_auto.CONFIG_MAPPING[model_type]()
    name = MAIN_CLASSES.get(model_type) or task_class(config, *MAIN_TASKS)
    if name is None:
        raise KeyError(f"no model class for {model_type}")
    return name


def class_name(fields: Fields) -> str:
    """The class named in `architectures`, or the main class if `transformers` does not have it."""
    for name in fields.get("architectures") or ():
        if hasattr(transformers, name):
            return str(name)
    return main_class(fields["model_type"])


def build(fields: Fields) -> Any:
    """The model on the meta device, its tied weights tied. The dtype does not change a count."""
    cls = getattr(transformers, class_name(fields))
    with torch.device("meta"):
        model = cls._from_config(config_from(fields), dtype=torch.float32)
    model.tie_weights()
    return model


def links(model: nn.Module, name: str) -> Iterator[Link]:
    """Every step of a dotted parameter name: who holds what under which attribute."""
    holder: Any = model
    for attribute in name.split("."):
        yield Link(holder=holder, attribute=attribute)
        holder = getattr(holder, attribute)


def owned(model: nn.Module) -> tuple[dict[str, nn.Parameter], list[list[str]]]:
    """Unique parameters under the first of their names, and the other names as [alias, owner]."""
    owners: dict[int, str] = {}
    unique: dict[str, nn.Parameter] = {}
    tied = []
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if id(parameter) in owners:
            tied.append([name, owners[id(parameter)]])
        else:
            owners[id(parameter)] = name
            unique[name] = parameter
    return unique, sorted(tied)


def persistent_elements(model: nn.Module) -> int:
    """Elements of all buffers that are saved in the state dict."""
    unique = {
        id(buffer): buffer.numel()
        for module in model.modules()
        for name, buffer in module.named_buffers(recurse=False)
        if name not in module._non_persistent_buffers_set
    }
    return sum(unique.values())


def idle_elements(model: nn.Module) -> int | None:
    """Routed-expert parameters that one token does not use.

    None if the config does not say how many it uses: DeepseekV2Config has no default top-k.
    """
    idle = 0
    for block in model.modules():
        if isinstance(getattr(block, "experts", None), nn.Module):
            in_block = idle_in_block(block)
            if in_block is None:
                return None
            idle += in_block
    return idle


def idle_in_block(block: Any) -> int | None:
    """The same for one block, which has one router beside its stacked experts."""
    (router,) = (child for child in block.children() if type(child).__name__.endswith("Router"))
    total, top_k = block.experts.num_experts, router.top_k
    if top_k is None:
        return None
    if top_k > total:
        raise ValueError(f"top_k {top_k} of {total} experts")
    idle = 0
    for parameter in block.experts.parameters():
        if parameter.shape[0] != total:
            raise ValueError(f"{type(block.experts).__name__}: experts are not stacked first")
        idle += (total - top_k) * prod(parameter.shape[1:])
    return idle


def stack_label(model_type: str, path: str) -> str:
    """What the layer list at this path belongs to: encoder, decoder or vision."""
    if "vision_tower" in path:
        return "vision"
    if "decoder" in path:
        return "decoder"
    if "encoder" in path or model_type in ENCODER_ONLY:
        return "encoder"
    return "decoder"


def layer_totals(model: Any, sizes: Mapping[str, int]) -> dict[str, list[list[int]]]:
    """Unique parameters of each repeated layer in order, as [[repeat, total], ...] per stack."""
    stacks: dict[str, list[list[int]]] = {}
    lists: list[str] = []
    for path, module in model.named_modules():
        if not isinstance(module, nn.ModuleList) or any(path.startswith(f"{p}.") for p in lists):
            continue
        lists.append(path)
        label = stack_label(model.config.model_type, path)
        if label in stacks:
            raise ValueError(f"two stacks named {label}: {path}")
        runs = stacks[label] = []
        for index in range(len(module)):
            prefix = f"{path}.{index}."
            total = sum(size for name, size in sizes.items() if name.startswith(prefix))
            if runs and runs[-1][1] == total:
                runs[-1][0] += 1
            else:
                runs.append([1, total])
    return dict(sorted(stacks.items()))


def category_totals(model: nn.Module, sizes: Mapping[str, int]) -> dict[str, int]:
    """Parameters per category, without the empty ones; raises if a parameter falls through."""
    totals: dict[str, int] = {}
    for name, size in sizes.items():
        kind = category(tuple(links(model, name)))
        totals[kind] = totals.get(kind, 0) + size
    return {kind: total for kind, total in sorted(totals.items()) if total}


def measure(fields: Fields) -> dict[str, Any]:
    """Everything a golden says about the model that `transformers` builds for this config."""
    model = build(fields)
    unique, tied = owned(model)
    sizes = {name: parameter.numel() for name, parameter in unique.items()}
    total, idle = sum(sizes.values()), idle_elements(model)
    categories = category_totals(model, sizes)
    if sum(categories.values()) != total:
        raise ValueError(f"categories sum to {sum(categories.values())}, not to {total}")
    record = {
        "class": type(model).__name__,
        **VERSIONS,
        "total": total,
        "active": None if idle is None else total - idle,
        "buffers": persistent_elements(model),
        "tied": tied,
        "layers": layer_totals(model, sizes),
        "categories": categories,
    }
    if "vision" in categories:
        record["text_total"] = total - sum(categories.get(kind, 0) for kind in VISION_CATEGORIES)
    if fields["model_type"] == "t5" and fields.get("tie_word_embeddings") is False:
        record |= loaded_t5(model, total)
    return record


def loaded_t5(model: Any, total: int) -> dict[str, int]:
    """The total if the checkpoint brings its own output head, as T5 v1.1 and Flan-T5 do.

    T5Config reads `tie_word_embeddings: false` as "do not scale the logits" and always ties. Only
    `from_pretrained` unties the head, when it finds both tensors in the checkpoint.
    """
    if not hasattr(model, "lm_head"):
        return {}
    return {"loaded_total": total + int(model.lm_head.weight.numel())}
