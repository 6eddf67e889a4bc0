"""Write paramcalc/families/verified.json: how each family was verified, from the goldens that lie here.

    python tests/goldens/summary.py [--check]

`paramcalc families` shows it, and a count is `exact` only for families that stand in it.
"""

import json
import sys
from collections import Counter
from pathlib import Path

GOLDENS = Path(__file__).parent
TARGET = GOLDENS.parents[1] / "paramcalc" / "families" / "verified.json"


def summary() -> dict[str, dict[str, object]]:
    """Per family: the number of goldens and what made them."""
    found: dict[str, dict[str, object]] = {}
    for folder in sorted(path for path in GOLDENS.iterdir() if path.is_dir()):
        goldens = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
        if not goldens:
            continue
        makers = Counter(golden.get("source") or f"transformers {golden['transformers']}" for golden in goldens)
        found[folder.name] = {"goldens": len(goldens), "by": ", ".join(sorted(makers))}
    return found


def main() -> int:
    text = json.dumps(summary(), indent=1) + "\n"
    if "--check" in sys.argv:
        return int(TARGET.read_text() != text)
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
