"""The command line: parse, compute, report, render. `main` is the only place that catches errors."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import TextIO

from paramcalc.errors import one_line


def run() -> None:
    """Entry point of the `paramcalc` command."""
    gc.disable()  # a process that lives for a fifth of a second leaves nothing worth collecting
    sys.stdout, sys.stderr = _writable(sys.stdout), _writable(sys.stderr)
    sys.exit(main())


def _writable(stream: TextIO | None) -> TextIO:
    """A standard stream that takes any text: a closed one swallows it, a narrow encoding escapes what it lacks."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 the answer is no, 2 could not run."""
    from paramcalc.errors import ParamcalcError

    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(arguments)
    except ParamcalcError as error:
        return _fail(error.message, error.hint, error.exit_code, arguments)
    except BrokenPipeError:
        # Whoever read our output has seen enough; keep the interpreter from complaining at exit.
        _let_go(sys.stdout)
        return 0
    except OSError as error:
        _let_go(sys.stdout)
        return _fail(f"cannot write standard output: {error.strerror}", None, 2, [])
    except KeyboardInterrupt:
        return 130


def _let_go(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(arguments: list[str]) -> int:
    import typer

    from paramcalc.cli.app import app_for

    try:
        code = typer.main.get_command(app_for(arguments))(args=arguments, prog_name="paramcalc", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except typer.TyperException as error:  # usage: an unknown option, a missing argument, a bad value
        message = _one_line(error)
        if not message:  # no command at all: the help has been printed
            return 2
        return _fail(message, "paramcalc --help, or paramcalc COMMAND --help", 2, arguments)
    except typer.Exit as error:
        return error.exit_code
    except typer.Abort:
        return 130


def _one_line(error: Exception) -> str:
    text = error.format_message() if hasattr(error, "format_message") else str(error)
    return " ".join(text.split()).rstrip(".")


def _fail(message: str, hint: str | None, code: int, arguments: list[str]) -> int:
    """Two lines on stderr; with JSON asked for, the error as an object on stdout too."""
    if _wants_json(arguments):
        import json

        error = {"message": message, "hint": hint, "exit_code": code}
        sys.stdout.write(json.dumps({"error": error}) + "\n")
    sys.stderr.write(f"error: {one_line(message)}\n")
    if hint:
        sys.stderr.write(f"hint: {one_line(hint)}\n")
    return code


def _wants_json(arguments: list[str]) -> bool:
    # Asked of the raw arguments, because parsing them may be what failed.
    arguments = [argument.lower() for argument in arguments]
    if {"--json", "--format=json", "-fjson"} & set(arguments):
        return True
    return any(pair in (("--format", "json"), ("-f", "json")) for pair in pairwise(arguments))
