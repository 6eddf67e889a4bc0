"""Notes on towers that a class builds from its defaults because the config does not describe them."""

from __future__ import annotations

from collections.abc import Iterator

from paramcalc.config.audit import all_views
from paramcalc.config.view import Config
from paramcalc.tree.component import Component


def assumed_section_notes(view: Config, tree: Component) -> Iterator[str]:
    """One note for each section that is missing, with the parameters of what the class builds without it.

    Configs of text models that were made from multimodal ones often have no vision_config.
    """
    advice = "; --text-only leaves out towers and projectors" if "language_model" in tree.parts() else ""
    assumed = {section: found for one in all_views(view) for section, found in one.assumed.items()}
    for section, (kind, part) in assumed.items():
        if not any(section.startswith(f"{outer}.") for outer in assumed):
            size = sum(tally.total for tally in part.totals() if tally.role == "parameter")
            yield (
                f"{view.family}: the config has no {section}; the default {kind} is counted, "
                f"{size:,} parameters{advice}"
            )
