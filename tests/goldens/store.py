"""The files of goldens: JSON lines, one case a line, its id first, sorted by id.

`read` and `write` are for the scripts that make goldens, `Goldens` is for the tests. This module imports neither torch
nor paramcalc.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
COUNT_FOLDER = HERE / "count"

Record = dict[str, Any]


def read(path: Path) -> dict[str, Record]:
    """The records of a file by id; none if there is no such file."""
    if not path.exists():
        return {}
    records: list[Record] = [json.loads(row) for row in path.read_text(encoding="utf-8").splitlines()]
    return {record.pop("id"): record for record in records}


def line(name: str, record: Record) -> str:
    """One record as it is written."""
    return json.dumps({"id": name, **record}, ensure_ascii=False, allow_nan=False) + "\n"


def write(path: Path, records: Mapping[str, Record]) -> None:
    """Write the records of a file, in the order of their ids. A file without records is deleted."""
    if not records:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(line(name, records[name]) for name in sorted(records)), encoding="utf-8", newline="\n")


def changed(old: Mapping[str, Record], made: Mapping[str, Record]) -> list[str]:
    """The ids of what was made that is new, or would be written differently."""
    return [name for name, record in made.items() if name not in old or line(name, old[name]) != line(name, record)]


def count_file(family: str) -> Path:
    """The file with the counts of a family."""
    return COUNT_FOLDER / f"{family}.jsonl"


def replace(path: Path, family: str, made: Mapping[str, Record]) -> None:
    """Put the records of one family, by case, in the place of those that a file with all families has."""
    others = {name: record for name, record in read(path).items() if not name.startswith(f"{family}/")}
    write(path, others | {f"{family}/{case}": record for case, record in made.items()})


def differences(old: Any, new: Any, where: str = "") -> Iterator[str]:
    """What changed between two versions of a record, one line each."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in (*new, *(key for key in old if key not in new)):
            yield from differences(old.get(key), new.get(key), f"{where}.{key}" if where else key)
    elif old != new:
        yield f"{where}: {json.dumps(old)} -> {json.dumps(new)}"


def floats(fields: Record) -> Any:
    """An object as it stands for a value: transformers writes floats that JSON has no word for as objects."""
    return float(fields["__float__"]) if set(fields) == {"__float__"} else fields


class Goldens(Mapping[str, Record]):
    """The records of a folder by `family/case`.

    A record is parsed whenever it is asked for, so that a test may change what it gets. Files named after a family hold
    the cases of that family; in other files the ids themselves are `family/case`.
    """

    def __init__(self, folder: str) -> None:
        self._folder = HERE / folder

    @cached_property
    def _lines(self) -> dict[str, str]:
        found = {}
        for path in sorted(self._folder.glob("*.jsonl")):
            for row in path.read_text(encoding="utf-8").splitlines():
                name = row.split('"', 4)[3]  # {"id": "odd-1", ...
                found[name if "/" in name else f"{path.stem}/{name}"] = row
        return found

    @cached_property
    def families(self) -> dict[str, list[str]]:
        """The names of the records of each family."""
        found: dict[str, list[str]] = {}
        for name in self:
            found.setdefault(name.partition("/")[0], []).append(name)
        return found

    def __getitem__(self, name: str) -> Record:
        record: Record = json.loads(self._lines[name], object_hook=floats)
        return record

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


COUNT = Goldens("count")
CACHE = Goldens("cache")
FLOPS = Goldens("flops")
GGUF = Goldens("gguf")
LINEAR = Goldens("linear")
QUANTISED = Goldens("quantised")
