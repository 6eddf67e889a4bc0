"""`paramcalc gpus`: the devices that are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.cli.option_groups import OUTPUT, takes
from paramcalc.cli.output import Output

if TYPE_CHECKING:
    from paramcalc.render.answer import View


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: paramcalc gpus h100")(gpus)


@takes(out=OUTPUT)
def gpus(
    out: Output,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show one device.")] = None,
) -> None:
    """List the known GPUs: memory, bandwidth, compute, and the sources of these figures."""
    from paramcalc.footprint.devices import find_device, known_devices
    from paramcalc.footprint.fit import device_info

    def view() -> View:
        from paramcalc.render.listings import device_row, list_view
        from paramcalc.reports.fit import DeviceInfo

        return list_view("gpus", map(DeviceInfo.model_validate, answers), device_row)

    answers = [device_info(one) for one in (known_devices() if name is None else [find_device(name)])]
    out.show(answers, view, always_list=name is None)
