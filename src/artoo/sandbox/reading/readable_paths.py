"""What is open of a home's hidden part: programs, their libraries, and settings that hold no secret.

An allow-list, because a list of what is secret is never whole. It has three sources: where package and version
managers put programs; where the person's own PATH and this Python lead; and git's files of patterns and settings,
these only while they are harmless.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from artoo.ports.sandbox import Roots
from artoo.sandbox.reading.readable_settings import open_settings

_LISTED = Path(__file__).with_name("program_places.txt").read_text("ascii").splitlines()
PROGRAMS = tuple(line for line in _LISTED if not line.startswith("#"))
"""Where programs and libraries are installed for one person, below the home."""

_NODE_PREFIXES = (
    ".asdf/installs/*/*",
    ".bun/install/global",
    ".nodenv/versions/*",
    ".npm-global",
    ".nvm",
    ".nvm/versions/*/*",
    ".volta/tools/image/*/*",
)
_PYTHON_PREFIXES = (
    ".asdf/installs/*/*",
    ".local/share/pipx/venvs/*",
    ".local/share/uv/python/*",
    ".local/share/uv/tools/*",
    ".pyenv/versions/*",
    ".pyenv/versions/*/envs/*",
)
_RUBY_PREFIXES = (".asdf/installs/ruby/*", ".rbenv/versions/*")
_SECRET_NAMES = (".env", ".git-credentials", ".netrc", ".npmrc", ".pypirc", ".yarnrc", ".yarnrc.yml")
_SETTINGS_IN_PROGRAMS = (
    *(f"{one}/{name}" for one in _NODE_PREFIXES for name in ("etc/npmrc", ".npmrc", "lib/node_modules/npm/npmrc")),
    *(f"{one}/{name}" for one in _PYTHON_PREFIXES for name in ("pip.conf", ".condarc", "condarc")),
    *(f"{one}/etc/gemrc" for one in _RUBY_PREFIXES),
)
"""Where npm, pip, conda and gem keep settings, tokens included, among the programs that are open."""

_OF_A_PREFIX = ("bin", "include", "lib", "lib64", "libexec", "pyvenv.cfg", "sbin", "share/man")
"""What belongs to an installation whose `bin` is on the PATH."""


def open_in_home(home: str, roots: Roots) -> tuple[str, ...]:
    """Return what is open of a real home for a task in `roots`: real, absolute paths, whether or not they exist."""
    return (*_programs(home, os.environ.get("PATH", "")), *open_settings(home, roots))


def closed_in_programs(home: str) -> tuple[str, ...]:
    """Return the settings that are closed although they lie among open programs: real paths that exist."""
    named = (path for pattern in _SETTINGS_IN_PROGRAMS for path in glob.iglob(f"{glob.escape(home)}/{pattern}"))
    return tuple(sorted({os.path.realpath(path) for path in (*named, *_secrets_among_programs(home))}))


def _secrets_among_programs(home: str) -> Iterator[str]:
    """Yield files of the usual names for tokens in the places of programs, and one directory below."""
    for place in (f"{home}/{relative}" for relative in PROGRAMS):
        with suppress(OSError):  # most are not there
            below = [one.path for one in os.scandir(place) if one.is_dir(follow_symlinks=False)]
            paths = (f"{directory}/{name}" for directory in (place, *below) for name in _SECRET_NAMES)
            yield from filter(os.path.lexists, paths)


def program_places() -> tuple[str, ...]:
    """Where PATH and this Python lead: real, absolute, anywhere on the machine."""
    return _led_to(os.environ.get("PATH", ""))


@lru_cache(maxsize=8)
def _programs(home: str, path: str) -> tuple[str, ...]:
    named = (f"{home}/{relative}" for relative in PROGRAMS)
    within = f"{home.rstrip('/')}/"
    return tuple(dict.fromkeys((*named, *(one for one in _led_to(path) if one.startswith(within)))))


@lru_cache(maxsize=8)
def _led_to(path: str) -> tuple[str, ...]:
    led = tuple(os.path.realpath(one) for one in (*_on_path(path), *_interpreter()))
    return tuple(dict.fromkeys((*led, *(place for one in led for place in _managed(one)))))


def _managed(path: str) -> Iterator[str]:
    """The place of a version manager, in whosever home, into which a path leads: its programs need all of it."""
    for relative in PROGRAMS:
        before, found, _ = f"{path}/".partition(f"/{relative}/")
        if found:
            yield f"{before}/{relative}"


def _on_path(path: str) -> Iterator[str]:
    """The directories of a PATH, with what lies beside a `bin`."""
    for directory in path.split(os.pathsep):
        if not os.path.isabs(directory):
            continue
        yield directory
        prefix, name = os.path.split(os.path.realpath(directory))
        if name in ("bin", "sbin"):
            yield from (f"{prefix}/{relative}" for relative in _OF_A_PREFIX)


def _interpreter() -> Iterator[str]:
    """This Python, its libraries and artoo itself: commands are started with it."""
    yield from (sys.prefix, sys.base_prefix)
    yield str(Path(__file__).parent.parent.parent)
