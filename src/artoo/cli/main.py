"""The entry point of the command line, which converts all errors to messages and exit codes.

No module that takes long to import is imported here, so that `artoo --help` is fast.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import click

from artoo.cli.commands.exit_codes import FAILED, INTERRUPTED, NO_MODEL, USAGE
from artoo.cli.commands.group import COMMANDS, TopGroup
from artoo.cli.commands.options import HELP
from artoo.cli.results.redact_output import say
from artoo.contracts.errors import ArtooError, ConfigurationError, ModelError


def _show_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from artoo.cli.version import version_line

        click.echo(version_line())
        context.exit()


@click.group(
    cls=TopGroup,
    mounted=COMMANDS,
    invoke_without_command=True,
    context_settings={**HELP, "max_content_width": 100},
    subcommand_metavar="[COMMAND | TEXT]...",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
@click.pass_context
def artoo(context: click.Context) -> None:
    """Say what you want done, and artoo does it, checks it, and tells you what it did.

    \b
      artoo "how many Python files are in src?"
      artoo                    a conversation
    """
    from artoo.cli.crash_report import tell_in_lines

    tell_in_lines()
    if context.invoked_subcommand is None:
        if not sys.stdin.isatty():
            raise click.UsageError('a conversation needs a terminal; give a request: artoo "…", or artoo run -')
        from artoo.cli.conversation.repl import converse

        context.exit(converse())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit code: 0, 1, 2, 3, 4 or 130 (SPEC section 12)."""
    _open_what_is_closed()
    code = _run(arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _reader_gone()
    except OSError as error:
        # If the disk is full (in `artoo … > FILE`), Python would print its own message and exit with code 120.
        code = code if code == FAILED else _report([_refused_by_system(error)])
        _let_go(sys.stdout)
    try:
        sys.stderr.flush()
    except OSError:
        # the error cannot be shown, and the command has done its work
        _let_go(sys.stderr)
    return code


def _run(arguments: Sequence[str] | None) -> int:
    """Run the command, report its errors, and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without UTF-8 shows `?` instead, so that there is no traceback.
            stream.reconfigure(errors="replace")
    try:
        code: object = artoo.main(args=arguments, prog_name="artoo", standalone_mode=False)
    except click.ClickException as error:
        with suppress(OSError):  # the error cannot be shown
            error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo(err=True)
        return INTERRUPTED
    except ArtooError as error:
        return _report([error])
    except BrokenPipeError:
        return _reader_gone()
    except OSError as error:
        return _report([_refused_by_system(error)])
    except BaseExceptionGroup as group:
        return _settle(group)
    except Exception as error:  # noqa: BLE001 (any other error is a defect, reported in one line)
        return _defect(error)
    return code if isinstance(code, int) else 0


def _open_what_is_closed() -> None:
    """Replace standard streams that are closed (None in Python) by the null device."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # A service may start artoo without standard streams. Then every print would fail on None.
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 (open until artoo exits)


def _settle(group: BaseExceptionGroup) -> int:
    """Report the errors of concurrent tasks. Return the exit code."""
    from artoo.runtime.app.exception_groups import leaves

    gone, others = group.split(BrokenPipeError)
    # If all errors are broken pipes, the reader of standard output has ended.
    if gone is not None and others is None:
        return _reader_gone()
    known, unknown = group.split((ArtooError, OSError))
    if known is None or unknown is not None:
        return _defect(group)
    return _report([_refused_by_system(leaf) if isinstance(leaf, OSError) else leaf for leaf in leaves(known)])


def _refused_by_system(error: OSError) -> ArtooError:
    """Convert an OSError to an ArtooError that has the system's message and the path."""
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return ConfigurationError("the current directory does not exist any more; change to another one")
    where = f"{error.filename}: " if error.filename else "standard output: " if _is_full(sys.stdout) else ""
    return ArtooError(f"{where}{error.strerror or error}; artoo doctor looks at room and rights")


def _is_full(stream: TextIO) -> bool:
    """Return whether flushing a stream fails, for example because the disk is full."""
    try:
        stream.flush()
    except OSError:
        return True
    return False


def _reader_gone() -> int:
    """Drop the output whose reader has ended (as in `artoo … | head`), and return the exit code."""
    _let_go(sys.stdout)
    return INTERRUPTED


def _let_go(stream: TextIO) -> None:
    """Drop the output of a stream that is not written yet, because Python would report an error when it flushes it
    at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _report(errors: Sequence[ArtooError]) -> int:
    """Print each different message once. Returns the exit code of the first error."""
    for message in dict.fromkeys(str(error) for error in errors):
        with suppress(OSError):
            # standard error may be closed, or its disk may be full
            say(message)
    return _code_of(errors[0])


def _defect(error: BaseException) -> int:
    """Report an unexpected error by one line for the user. Write the traceback to a file."""
    from artoo.cli.crash_report import kept, named

    click.echo(f"artoo: a defect in artoo, {named(error)}; {kept(error)}", err=True)
    return FAILED


def _code_of(error: ArtooError) -> int:
    if isinstance(error, ConfigurationError):
        return USAGE
    return NO_MODEL if isinstance(error, ModelError) else FAILED
