"""`paramcalc gpus`: the devices that are known."""

from __future__ import annotations

from typing import Annotated

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.cli.options import FormatOpt, JsonOpt, OutputOpt
from paramcalc.cli.output import Output

# A narrow terminal can do without these columns, the highest first; 9: they are for files.
RANKS = {"source": 9, "note": 8, "also": 7, "memory": 6, "fp8_TFLOPS": 5, "bf16_TFLOPS": 4, "vendor": 3, "GB/s": 2}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: paramcalc gpus h100")(gpus)


def gpus(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show one of them.")] = None,
    fmt: FormatOpt = "table",
    as_json: JsonOpt = False,
    output: OutputOpt = None,
) -> None:
    """List the GPUs that are known: memory, bandwidth, compute, and where the figures come from."""
    from paramcalc.footprint.devices import device, devices
    from paramcalc.footprint.fit import described
    from paramcalc.footprint.fit_report import DeviceInfo
    from paramcalc.render.fit import device_row
    from paramcalc.render.table import WIDE, listing

    found = [described(one) for one in (devices() if name is None else [device(name)])]
    listed = [device_row(DeviceInfo.model_validate(one)) for one in found]
    Output(fmt, as_json, output).emit(
        answers=lambda: found,
        rows=lambda: listed,
        table=lambda width: listing(listed, RANKS, width or WIDE),
        always_list=name is None,
    )
