"""`artoo web`: serve the web UI on this machine until Ctrl-C, and open the browser."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from artoo.cli.commands.options import HELP
from artoo.runtime.config.loader import load_config
from artoo.web.entry import PORT

if TYPE_CHECKING:
    from artoo.ports.printing import OnOutput
    from artoo.runtime.app.artoo import Artoo
    from artoo.runtime.config.model import Config


@click.command(context_settings=HELP)
@click.option("--port", type=click.IntRange(0, 65_535), help=f"The port (default: {PORT}, or a free one).")
@click.option("--no-open", is_flag=True, help="Only print the address.")
def web(port: int | None, no_open: bool) -> None:
    """Serve the web UI of tasks, changes, memory, team and audit, until Ctrl-C.

    The printed address works once, within 15 minutes; run the command again for a new one. Only this machine can
    reach it.
    """
    from artoo.web.entry import Entry
    from artoo.web.serving import address_of, only_page

    config = load_config()
    with only_page(config.home, port) as found:
        if isinstance(found, int):
            address = address_of(found, Entry(config.home).token())
            click.echo(f"artoo: {address}")
            if not no_open:
                open_page(address, config.home)
        else:
            asyncio.run(_serve(config, found, no_open))


async def _serve(config: Config, listening: socket.socket, no_open: bool) -> None:
    from artoo.protocols.ending import first_signal
    from artoo.web.serving import served

    with ExitStack() as stack:
        async with served(config, Path.cwd(), lambda heard: runtime_of(config, heard), listening) as serving:
            # The block of `served` ends before its server does, so this handler of signals must stay until the
            # server has ended.
            stack.enter_context(first_signal(serving.stop))
            click.echo(f"artoo: {serving.address}")
            # A text browser runs until the user quits it. It is started in a thread, so that the server can answer
            # it.
            if not no_open:
                opening = (serving.address, config.home)
                threading.Thread(target=open_page, args=opening, name="artoo-browser", daemon=True).start()
    click.echo("artoo: the page is closed", err=True)


@asynccontextmanager
async def page_beside(config: Config, port: int | None) -> AsyncGenerator[None]:
    """Serve the web UI while the block runs. Raises ConfigurationError if another process serves this home
    already."""
    from artoo.contracts.errors import ConfigurationError
    from artoo.web.serving import only_page, served

    with only_page(config.home, port) as found:
        if isinstance(found, int):
            raise ConfigurationError(
                f"artoo web serves this home already, at port {found}; stop it, or leave out --web"
            )
        async with served(config, Path.cwd(), lambda heard: runtime_of(config, heard), found) as serving:
            click.echo(f"artoo: {serving.address}", err=True)
            try:
                yield
            finally:
                serving.stop()


def runtime_of(config: Config, on_output: OnOutput) -> AbstractAsyncContextManager[Artoo]:
    """Open the runtime for tasks that are started in the web UI, which shows the output of their commands."""
    from artoo.runtime.app.artoo import Artoo
    from artoo.web.starting import nobody_here

    return Artoo(config, confirm=nobody_here, on_output=on_output)


def open_page(address: str, home: Path) -> None:
    """Open a browser on a file that redirects to the address. The address must not be on a command line, which
    would reveal the token in it.

    A new process with a restricted PATH searches for the browser, so that no program of a project is started.
    Returns when the command of the browser ends. That may be when the user closes the browser.
    """
    import html
    import subprocess

    from artoo.sandbox.reading.programs import own_environment, own_python, search_path

    # Other users of this machine can read command lines, so the token must not be in one.
    place = home / "web" / "open.html"
    target = html.escape(address, quote=True)
    with suppress(OSError):
        place.unlink(missing_ok=True)
        with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(
                f'<!doctype html><meta http-equiv="refresh" content="0;url={target}"><a href="{target}">artoo</a>'
            )
        opened = own_python("-c", "import sys, webbrowser; webbrowser.open(sys.argv[1])", place.as_uri())
        subprocess.run(opened, env={**own_environment(), "PATH": search_path()}, check=False)
