"""`assert_never`, which ends a `match` over a closed vocabulary; typing has it from Python 3.11 on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import assert_never as assert_never
else:

    def assert_never(value: Any) -> Any:
        """Raise AssertionError: a type checker has proved that no value gets here."""
        raise AssertionError(f"unexpected value: {value!r}")
