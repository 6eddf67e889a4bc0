"""Write how many weights transformers' quantisers convert, and never what paramcalc says.

    python -m tests.goldens.linear.make        # every config odd-1 and odd-2 of the counts

bitsandbytes, torchao, quanto and their like take the place of each torch.nn.Linear but the output matrix
(replace_with_bnb_linear and get_keys_to_not_convert of transformers). Which matrices of a model those are is a matter
of its class: experts are parameters of one module since transformers 5, routers often too. Needs both.
"""

from pathlib import Path
from typing import Any

import torch
from transformers.pytorch_utils import Conv1D
from transformers.quantizers.base import get_keys_to_not_convert
from transformers.quantizers.quantizers_utils import should_convert_module

from tests.goldens import oracle, store

TARGET = Path(__file__).resolve().parent / "linear.jsonl"


def converted(fields: dict[str, Any]) -> dict[str, int]:
    """Weights in torch.nn.Linear, and in the Conv1D of GPT, which only bitsandbytes converts."""
    model = oracle.build(fields)
    left = get_keys_to_not_convert(model)
    found = {"linear": 0, "conv1d": 0}
    for name, module in model.named_modules():
        kind = "conv1d" if isinstance(module, Conv1D) else "linear" if type(module) is torch.nn.Linear else None
        if kind and should_convert_module(name, left):
            found[kind] += module.weight.numel()
    return found


def main() -> None:
    """Make the golden."""
    made = {}
    for path in sorted(store.COUNT_FOLDER.glob("*.jsonl")):
        goldens = store.read(path)
        for case in (case for case in ("odd-1", "odd-2") if case in goldens):
            try:
                found = converted(goldens[case]["config"])
            except (KeyError, ImportError):
                continue  # a class that lives on the Hub, or one that wants more libraries
            made[f"{path.stem}/{case}"] = {**oracle.VERSIONS, **found}
    store.write(TARGET, made)


if __name__ == "__main__":
    main()
