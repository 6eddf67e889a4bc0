"""The parameters of a LoRA adapter that is saved next to a model's config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcalc.tree.component import Component
from paramcalc.tree.language import language_model

# Fields of LoraConfig (peft) that change what is trained, with the values under which nothing is changed.
PLAIN = {
    "bias": (None, "none"),
    "modules_to_save": (None, []),
    "rank_pattern": (None, {}),
    "layers_to_transform": (None,),
    "layer_replication": (None,),
    "exclude_modules": (None,),
    "target_parameters": (None, []),
    "trainable_token_indices": (None,),
    "use_dora": (None, False),
    "lora_bias": (None, False),
}


def adapter_note(adapter: Mapping[str, Any], tree: Component) -> str:
    """A note on the adapter, with its parameters where they follow from its rank and its target modules."""
    size, rank = lora_parameters(adapter, tree), adapter.get("r")
    amount = f"of rank {rank} with {size:,} parameters" if size is not None else "whose parameters are not known"
    return f"adapter_config.json next to the config describes an adapter {amount}; it is not counted"


def lora_parameters(adapter: Mapping[str, Any], tree: Component) -> int | None:
    """r (d_in + d_out) for each target matrix (LoRA, 2106.09685, section 4.1); None where they are not all known.

    Targets are module names; a name that the tree does not have (a fused projection) has a shape of its own.
    """
    rank, targets = adapter.get("r"), adapter.get("target_modules")
    plain = all(adapter.get(key) in values for key, values in PLAIN.items())
    if adapter.get("peft_type") != "LORA" or type(rank) is not int or rank < 1 or not plain:
        return None
    if not isinstance(targets, list) or not targets or language_model(tree) is not tree:
        return None  # a pattern, or towers whose modules have the same names
    found: dict[str, int] = dict.fromkeys(map(str, targets), 0)
    for weight in tree.weights():
        *_, module, kind = ["", *weight.name.split(".")]
        if module in found and kind == "weight" and weight.kind == "matrix":
            if weight.experts > 1 or len(weight.shape) != 2:
                return None  # the experts of a layer are one tensor in transformers
            found[module] += rank * sum(map(int, weight.shape)) * int(weight.copies)
    return sum(found.values()) if all(found.values()) else None
