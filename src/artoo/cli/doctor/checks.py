"""General checks of `artoo doctor`, such as system, home, free space, configuration and prompt texts.

Each check is a function that returns a finding and changes nothing.
"""

from __future__ import annotations

import os
import platform
import shutil
import stat
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from artoo.contracts.errors import ConfigurationError
from artoo.contracts.settling import ApplyMode
from artoo.prompts.library import require_shipped
from artoo.runtime.app.home import config_file
from artoo.runtime.config.loader import APPLY_ALL, load_config
from artoo.runtime.config.model import Config

ROOM_NEEDED = 200 * 1000 * 1000
"""Minimum number of free bytes for logs, memory and staged changes."""


class State(StrEnum):
    """The severity of a finding. `fail` means that artoo cannot work."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One line of the report of `artoo doctor`. `remedy` is the advice to the user. It is empty if nothing needs to
    be done."""

    name: str
    state: State
    detail: str
    remedy: str = ""


def system() -> Diagnosis:
    """Check the operating system."""
    name, detail = platform.system(), f"{platform.system()} {platform.release()} {platform.machine()}"
    detail += f", Python {platform.python_version()}"
    if name == "Linux":
        return Diagnosis("system", State.OK, detail)
    if name == "Darwin":
        return Diagnosis("system", State.WARN, detail, "written for macOS, but not tried on it")
    return Diagnosis("system", State.FAIL, detail, "artoo runs on Linux and macOS; on Windows, use WSL")


def home(directory: Path) -> Diagnosis:
    """Check that artoo's own directory exists or can be made, can be written, and is private."""
    existing = _existing(directory)
    if not existing.is_dir():
        return Diagnosis(
            "home", State.FAIL, f"{existing} is not a directory", "move it, or set ARTOO_HOME elsewhere"
        )
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        remedy = "make it writable, or set ARTOO_HOME to a directory that is"
        return Diagnosis("home", State.FAIL, f"{existing} cannot be written: {error.strerror}", remedy)
    if existing != directory:
        return Diagnosis("home", State.OK, f"{directory} (made at first use)")
    if stat.S_IMODE(directory.stat().st_mode) & 0o077:
        return Diagnosis("home", State.WARN, f"{directory} can be read by others", f"chmod 700 {directory}")
    return Diagnosis("home", State.OK, str(directory))


def apply(config: Config) -> Diagnosis:
    """Report which changes are applied without approval."""
    if config.apply is not ApplyMode.ALL:
        return Diagnosis(
            "apply", State.OK, f"{config.apply} ({APPLY_ALL} approves everything, for containers and CI)"
        )
    detail = "all: everything in project and output folder takes effect without approval"
    return Diagnosis("apply", State.WARN, detail, "outside of a container or CI: unset ARTOO_APPLY")


def configuration(directory: Path, environ: Mapping[str, str]) -> tuple[Diagnosis, Config | None]:
    """Check the configuration file and the environment. The configuration is None if the file or the environment
    cannot be used."""
    try:
        config = load_config(environ)
    except ConfigurationError as error:
        return Diagnosis("config", State.FAIL, str(error), "correct what is named, or: artoo init --force"), None
    path = config_file(directory)
    if not path.exists():
        return Diagnosis("config", State.OK, "defaults (artoo init writes a file to change them)"), config
    return Diagnosis("config", State.OK, str(path)), config


def texts() -> Diagnosis:
    """Compare the texts of the prompts with the hashes in their manifest."""
    try:
        require_shipped()
    except ConfigurationError as error:
        return Diagnosis("prompts", State.FAIL, str(error), "reinstall artoo; no task starts until then")
    return Diagnosis("prompts", State.OK, "as shipped")


def workspace(config: Config) -> Diagnosis:
    """Check the output folder."""
    path = config.workspace_path
    existing = _existing(path)
    if not (existing.is_dir() and os.access(existing, os.W_OK)):
        remedy = "set workspace in the configuration, or use --workspace"
        return Diagnosis("workspace", State.FAIL, f"{path} cannot be made or written", remedy)
    return Diagnosis("workspace", State.OK, str(path))


def disk(directory: Path, model_bytes: int) -> Diagnosis:
    """Check the free disk space. A model that must still be downloaded needs `model_bytes` of it."""
    existing = _existing(directory)
    free, needed = shutil.disk_usage(existing).free, ROOM_NEEDED + 2 * model_bytes
    detail = f"{free / 1e9:,.1f} GB free"
    if free < needed:
        remedy = f"make room: {needed / 1e9:,.1f} GB are needed, or set ARTOO_HOME to another disk"
        return Diagnosis("disk", State.FAIL, detail, remedy)
    return Diagnosis("disk", State.OK, detail)


def terminal(environ: Mapping[str, str]) -> Diagnosis:
    """Check the size, the colours and the encoding of the terminal."""
    size = shutil.get_terminal_size()
    encoding = (sys.stdout.encoding or "ascii").lower()
    if not sys.stdout.isatty():
        return Diagnosis("terminal", State.OK, f"none (plain output, {encoding})")
    look = "without colours" if environ.get("NO_COLOR") else environ.get("TERM", "unknown")
    detail = f"{size.columns}×{size.lines}, {look}, {encoding}"
    if not encoding.replace("-", "").startswith("utf8"):
        return Diagnosis(
            "terminal", State.WARN, detail.replace("×", "x"), "set LANG to a UTF-8 locale, as in C.UTF-8"
        )
    if size.columns < 60:
        return Diagnosis("terminal", State.WARN, detail, "60 columns or more are easier to read")
    return Diagnosis("terminal", State.OK, detail)


def _existing(path: Path) -> Path:
    """Return the path if it exists. Otherwise return the nearest directory above it that does."""
    return next((one for one in (path, *path.parents) if one.exists()), path)
