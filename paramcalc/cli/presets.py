"""`paramcalc presets`: the models that ship with paramcalc."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID253  (only the command line imports this module)

from paramcalc.base.errors import nearest
from paramcalc.cli.options import HELP, FormatOpt, JsonOpt, OutputOpt
from paramcalc.cli.output import Output, report_data
from paramcalc.cli.typer_classes import CommandGroup
from paramcalc.sources import presets as shipped

if TYPE_CHECKING:
    from paramcalc.render.answer import View


class PresetCommands(CommandGroup):
    """`list` and `show`. A preset in their place gets a hint to `show`."""

    def suggestion(self, word: str) -> str:
        if word.lower() in shipped.preset_names():
            return f"to show it: paramcalc presets show {word.lower()}"
        close = nearest(word.lower(), shipped.preset_names(), fallback="")
        if close:
            return f"{close} paramcalc presets show NAME shows its file"
        return nearest(word, self.commands, fallback="paramcalc presets list, or paramcalc presets show NAME")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        cls=PresetCommands,
        help="The models that ship with paramcalc.",
        invoke_without_command=True,
        context_settings=HELP,
    )
    group.callback()(presets)
    group.command("list")(list_presets)
    group.command("show", epilog="Example: paramcalc presets show llama3-8b")(show_preset)
    app.add_typer(group, name="presets")


def presets(
    context: typer.Context,
    fmt: FormatOpt = "table",
    as_json: JsonOpt = False,
    output: OutputOpt = None,
) -> None:
    """The models that ship with paramcalc: list them, or show the file of one."""
    # Options before a command apply to it, unless it has its own.
    defaults = {"fmt": "json" if as_json else fmt, "output": output}
    context.default_map = {"list": defaults, "show": defaults}
    if context.invoked_subcommand is None:
        list_presets(fmt, as_json, output)


def list_presets(fmt: FormatOpt = "table", as_json: JsonOpt = False, output: OutputOpt = None) -> None:
    """List the presets with total parameters, active parameters and source."""
    from paramcalc.catalog import preset_infos

    def view() -> View:
        from paramcalc.render.listings import list_view, preset_row

        return list_view("presets", infos, preset_row)

    infos = preset_infos()
    Output(fmt, as_json, output).show(report_data(infos), view, always_list=True)


def show_preset(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the preset.")],
    fmt: FormatOpt = "table",
    as_json: JsonOpt = False,
    output: OutputOpt = None,
) -> None:
    """Show the file of a preset, ready to copy and change."""
    from paramcalc.catalog import preset_info

    def view() -> View:
        from paramcalc.render.answer import View
        from paramcalc.render.listings import list_view, preset_row

        return View(list_view("presets", [info], preset_row).rows, lambda _: text)

    text, info = shipped.preset_text(name), preset_info(name)
    Output(fmt, as_json, output).show(report_data([info]), view)
