"""Relative links and anchors in Markdown files lead to a file and a heading that are there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT

FOLDERS = ("docs", ".github", "paramcalc", "tests")
PAGES = sorted([*ROOT.glob("*.md"), *(page for name in FOLDERS for page in (ROOT / name).rglob("*.md"))])
LINK = re.compile(r"(?<!!)\[[^]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading: lower case, no punctuation, hyphens for blanks."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return frozenset(anchor(heading) for heading in re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE))


def broken(page: Path, text: str) -> list[str]:
    """The relative links of a text that lead nowhere, seen from a page."""
    found = []
    for link in LINK.findall(FENCE.sub("", text)):
        path, _, fragment = link.partition("#")
        target = page.parent / path if path else page
        if "://" in link or link.startswith("mailto:"):
            continue
        if not target.exists() or (fragment and fragment not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page, page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("link", ["no-such.md", "docs/faq.md#no-such-question", "#no-such-heading"])
def test_this_guard_can_fail(link: str) -> None:
    assert broken(ROOT / "README.md", f"[here]({link})") == [link]


def test_anchors_are_those_of_github() -> None:
    assert anchor("Why is `count`'s size not 4.5 bits?") == "why-is-counts-size-not-45-bits"
