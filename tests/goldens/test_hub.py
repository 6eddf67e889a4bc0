"""Goldens that are derived by hand."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.goldens import hub, store
from tests.goldens.store import COUNT

LLAMA_7B: dict[str, Any] = {"V": 32_000, "d": 4_096, "L": 32, "h": 32, "d_ff": 11_008}


def counted(**decoder: str | int) -> dict[str, Any]:
    return hub.counted({"decoder": LLAMA_7B | decoder})


def test_goldens_of_the_hub_follow_from_their_derivations(capsys: pytest.CaptureFixture[str]) -> None:
    assert hub.main(["--check"]) == 0, capsys.readouterr().out


def test_every_golden_has_a_maker() -> None:
    derived = {name for path in (store.HERE / "hub").glob("*.yaml") for name in yaml.safe_load(path.read_text())}

    assert derived == {name for name, golden in COUNT.items() if "transformers" not in golden}


def test_a_decoder_is_derived_from_its_sizes() -> None:
    """Llama 7B."""
    assert counted()["total"] == 6_738_415_616


def test_an_entry_may_state_a_formula_in_place_of_a_default() -> None:
    """A gate on each head of Llama 7B: a matrix of 4,096 x 32 in each of the 32 layers."""
    gated = counted(attn="4*d*d + gate", gate="d*h")

    assert gated["total"] == 6_738_415_616 + 32 * 4_096 * 32
    assert gated["categories"]["attention"] == 32 * (4 * 4_096**2 + 4_096 * 32)


def test_a_formula_may_use_defaults_and_names_that_come_later() -> None:
    assert counted(kv="h // groups", groups="2 * half", half=2)["total"] == counted(kv=8)["total"]


@pytest.mark.parametrize(
    ("decoder", "reason"),
    [
        ({"attn": "4*d*width"}, "4*d*width: width is not understood"),
        ({"kv": "groups", "groups": "kv"}, "cycle"),
        ({"attn": "d**2"}, "is not understood"),
    ],
)
def test_a_formula_that_cannot_be_evaluated_is_refused(decoder: dict[str, str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason.replace("*", r"\*")):
        counted(**decoder)


def test_an_entry_that_does_not_come_to_the_published_total_is_named() -> None:
    entry = {"class": "X", "config": {}, "source": "a paper", "decoder": LLAMA_7B, "total": 6_738_415_617}

    with pytest.raises(SystemExit, match=r"x/y: the parts come to 6,738,415,616, published are 6,738,415,617"):
        hub.checked("x/y", entry)
