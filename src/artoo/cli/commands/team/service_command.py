"""`artoo service install|remove`: the systemd unit or launchd agent of `artoo serve`, and its restart delay."""

from __future__ import annotations

import os
import plistlib
import sys
from pathlib import Path

import click

from artoo.cli.commands.options import HELP
from artoo.cli.display.sanitize import show
from artoo.contracts.errors import ConfigurationError
from artoo.disk.whole import write_whole
from artoo.runtime.app.home import HOME_VARIABLE, default_home
from artoo.sandbox.reading.programs import own_python

LABEL = "io.artoo.serve"
ENVIRONMENT = "service.env"
"""A file in artoo's home with environment variables for the service, such as keys. Each line has the form
NAME=value."""

# Number of seconds before a service that failed is started again, for systemd and launchd.
RESTART_SECONDS = 30


@click.group(context_settings=HELP)
def service() -> None:
    """Keep `artoo serve` running: after a login, and again after a failure."""


@service.command(context_settings=HELP)
@click.option("--dry-run", is_flag=True, help="Only print the file and the commands.")
@click.option("--web", is_flag=True, help="Serve the web UI too.")
def install(dry_run: bool, web: bool) -> None:
    """Write the service's file, and print the commands that start it. Running it again changes the file."""
    path, text = _file(web=web)
    if dry_run:
        show(f"{path}:\n\n{text}")
    else:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text.encode())
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from error
        show(f"Wrote {path}.")
    show("\n".join(("Start it:", *(f"  {line}" for line in _starting(path)))))
    if sys.platform != "darwin":
        show(f"Variables such as OPENAI_API_KEY belong in {default_home(os.environ) / ENVIRONMENT} (NAME=value).")


@service.command(context_settings=HELP)
def remove() -> None:
    """Delete the service's file, and print the commands that stop the running service."""
    path, _ = _file(web=False)
    if not path.exists():
        raise ConfigurationError(f"there is no service: {path} does not exist; artoo service install writes it")
    show("\n".join(("Stop it:", *(f"  {line}" for line in _stopping()))))
    path.unlink()
    show(f"Deleted {path}.")


def _file(*, web: bool) -> tuple[Path, str]:
    """Return the path and the text of the service's file on this system."""
    command, home = [*own_python("-m", "artoo", "serve"), *(["--web"] if web else [])], default_home(os.environ)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "LaunchAgents" / f"{LABEL}.plist", _plist(command, home)
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return base / "systemd" / "user" / "artoo.service", _unit(command, home)


def _unit(command: list[str], home: Path) -> str:
    started = " ".join(map(_quoted, command))
    return f"""\
[Unit]
Description=artoo: standing agents at work
After=network-online.target

[Service]
ExecStart={started}
Environment={_quoted(f"{HOME_VARIABLE}={home}")}
Environment={_quoted(f"PATH={os.environ.get('PATH', os.defpath)}")}
EnvironmentFile=-{str(home / ENVIRONMENT).replace("%", "%%")}
Restart=on-failure
RestartSec={RESTART_SECONDS}
TimeoutStopSec=60
Delegate=yes

[Install]
WantedBy=default.target
"""


def _quoted(text: str) -> str:
    """Quote one word for a unit file, in which %, $, quotes and backslashes must be escaped."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{plain}"'


def _plist(command: list[str], home: Path) -> str:
    known = {
        "Label": LABEL,
        "ProgramArguments": command,
        "EnvironmentVariables": {HOME_VARIABLE: str(home), "PATH": os.environ.get("PATH", os.defpath)},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": RESTART_SECONDS,
        "StandardErrorPath": str(home / "service.log"),
    }
    return plistlib.dumps(known, sort_keys=False).decode()


def _starting(path: Path) -> list[str]:
    if sys.platform == "darwin":
        return [f"launchctl bootstrap gui/{os.getuid()} {path}"]
    return [
        "systemctl --user daemon-reload",
        "systemctl --user enable --now artoo.service",
        "loginctl enable-linger   # it also runs while you are not logged in",
    ]


def _stopping() -> list[str]:
    if sys.platform == "darwin":
        return [f"launchctl bootout gui/{os.getuid()}/{LABEL}"]
    return ["systemctl --user disable --now artoo.service", "systemctl --user daemon-reload"]
