"""The command line: parse, compute, report, render. `main` is the only place that catches errors."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from paramcalc.base.errors import one_line
from paramcalc.cli.streams import discard, writable, write_diagnostic

if TYPE_CHECKING:
    from paramcalc.reports.shapes.error import ErrorReportDict


def run() -> None:
    """Entry point of the `paramcalc` command."""
    gc.disable()  # the process is too short-lived for collections to pay off
    sys.stdout, sys.stderr = writable(sys.stdout), writable(sys.stderr)
    sys.exit(main())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 the answer is no, 2 could not run."""
    from paramcalc.base.errors import ParamcalcError

    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(arguments)
    except ParamcalcError as error:
        return _fail(error.message, error.hint, error.exit_code, arguments)
    except BrokenPipeError:
        discard(sys.stdout)  # the reader closed the pipe
        return 0
    except OSError as error:
        discard(sys.stdout)
        write_diagnostic(sys.stderr, f"error: cannot write standard output: {error.strerror}\n")
        return 2
    except KeyboardInterrupt:
        return 130


def _run(arguments: list[str]) -> int:
    import typer

    from paramcalc.cli.app import app_for

    words = arguments or ["--help"]
    try:
        code = typer.main.get_command(app_for(words))(args=words, prog_name="paramcalc", standalone_mode=False)
        sys.stdout.flush()
        return (code if isinstance(code, int) else 0) if arguments else 2
    except typer.TyperException as error:  # usage: an unknown option, a missing argument, a bad value
        return _fail(_usage(error), _help(error), 2, arguments)
    except typer.Exit as error:
        return error.exit_code
    except typer.Abort:
        return 130


def _usage(error: Exception) -> str:
    text = error.format_message() if hasattr(error, "format_message") else str(error)
    line = " ".join(text.split()).rstrip(".")
    return line[:1].lower() + line[1:]


def _help(error: Exception) -> str:
    """The hint that points to --help."""
    context = getattr(error, "ctx", None)
    if context is None:
        return "paramcalc --help, or paramcalc COMMAND --help"
    if context.parent is None:
        return "options follow a command, as in paramcalc count --preset llama3-8b; paramcalc --help lists the commands"
    return f"{context.command_path} --help"


# -- errors ------------------------------------------------------------------------------------------------------


def _fail(message: str, hint: str | None, code: int, arguments: list[str]) -> int:
    """Two lines on stderr; with --json also an error object on stdout. The exit code is the same either way."""
    from paramcalc.cli.app import requests_json

    hint = hint or "paramcalc COMMAND --help lists the arguments of a command"
    if requests_json(arguments):
        import json

        answer: ErrorReportDict = {"error": {"message": message, "hint": hint, "exit_code": code}}
        write_diagnostic(sys.stdout, json.dumps(answer) + "\n")
    write_diagnostic(sys.stderr, f"error: {one_line(message)}\nhint: {one_line(hint)}\n")
    return code
