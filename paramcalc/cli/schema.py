"""`paramcalc schema`: the JSON Schemas of reports and of YAML models."""

from __future__ import annotations

from typing import Annotated

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.cli.options import OutputOpt
from paramcalc.cli.output import Output


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: paramcalc schema count")(schema)


def schema(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A report: count, memory, fit, flops, trace, gpus, dtypes ...; or model, the YAML format.",
        ),
    ] = None,
    output: OutputOpt = None,
) -> None:
    """Print the JSON Schema of each report and of the YAML model format."""
    import json

    from paramcalc import catalog

    found = catalog.schema(name) if name else catalog.schemas()
    Output("json", True, output).write(json.dumps(found, indent=2) + "\n")
