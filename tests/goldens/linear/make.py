"""Write how many weights transformers' quantisers convert, and never what paramcalc says.

    python tests/goldens_linear/make.py        # every config odd-1 and odd-2 of tests/goldens

bitsandbytes, torchao, quanto and their like take the place of each torch.nn.Linear but the output matrix
(replace_with_bnb_linear and get_keys_to_not_convert of transformers). Which matrices of a model those are is a matter
of its class: experts are parameters of one module since transformers 5, routers often too. Needs both.
"""

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
COUNTS = HERE.parent / "goldens"
sys.path.insert(0, str(COUNTS))

import oracle  # noqa: E402
import torch  # noqa: E402
from transformers.pytorch_utils import Conv1D  # noqa: E402
from transformers.quantizers.base import get_keys_to_not_convert  # noqa: E402
from transformers.quantizers.quantizers_utils import should_convert_module  # noqa: E402


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
    lines = []
    for path in sorted(COUNTS.glob("*/odd-[12].json")):
        try:
            found = converted(json.loads(path.read_text())["config"])
        except (KeyError, ImportError):
            continue  # a class that lives on the Hub, or one that wants more libraries
        key = f"{path.parent.name}/{path.stem}"
        lines.append(f" {json.dumps(key)}: {json.dumps(found)}")
    versions = json.dumps(oracle.VERSIONS)
    (HERE / "linears.json").write_text(f'{{\n "versions": {versions},\n' + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
