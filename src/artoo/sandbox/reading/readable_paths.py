"""The allow-list of a home's hidden part, from `program_places.txt`, PATH and Python, with secret file names.

It lists what may be read, because a list of secrets would never be complete. It has three sources. These are the
directories of package and version managers, the directories of the user's PATH and of this Python, and the files
with git's patterns and settings, as long as they are harmless.
"""

from __future__ import annotations

import glob
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from artoo.ports.sandbox import Roots
from artoo.sandbox.reading.readable_settings import open_settings

_LISTED = Path(__file__).with_name("program_places.txt").read_text("ascii").splitlines()
PROGRAMS = tuple(line for line in _LISTED if not line.startswith("#"))
"""Directories below the home in which programs and libraries are installed for one user."""

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
"""Files among the open programs in which npm, pip, conda and gem keep settings. These may contain tokens."""

_OF_A_PREFIX = ("bin", "include", "lib", "lib64", "libexec", "pyvenv.cfg", "sbin", "share/man")
"""The parts of an installation that are open if its `bin` directory is in PATH."""


def open_in_home(home: str, roots: Roots) -> tuple[str, ...]:
    """Return the open paths in a resolved home for a task in `roots`. They are absolute and may not exist."""
    return (*_programs(home, os.environ.get("PATH", "")), *open_settings(home, roots))


def closed_in_programs(home: str) -> tuple[str, ...]:
    """Return the settings files that are closed although they are among open programs. They exist and are
    resolved."""
    named = (path for pattern in _SETTINGS_IN_PROGRAMS for path in glob.iglob(f"{glob.escape(home)}/{pattern}"))
    return tuple(sorted({os.path.realpath(path) for path in (*named, *_secrets_among_programs(home))}))


def _secrets_among_programs(home: str) -> Iterator[str]:
    """Yield files in program directories, and in their subdirectories, that have typical names of files with
    tokens."""
    for place in (f"{home}/{relative}" for relative in PROGRAMS):
        with suppress(OSError):  # most of these paths do not exist
            below = [one.path for one in os.scandir(place) if one.is_dir(follow_symlinks=False)]
            paths = (f"{directory}/{name}" for directory in (place, *below) for name in _SECRET_NAMES)
            yield from filter(os.path.lexists, paths)


def program_places() -> tuple[str, ...]:
    """Return the program directories of PATH and of this Python, wherever on the machine they are. They are
    resolved."""
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
    """Yield the directory of a version manager that contains a path, in any home. All of it is needed, because its
    programs need all of it."""
    for relative in PROGRAMS:
        before, found, _ = f"{path}/".partition(f"/{relative}/")
        if found:
            yield f"{before}/{relative}"


def _on_path(path: str) -> Iterator[str]:
    """Yield the directories of a PATH. For a directory `bin`, also yield the other parts of its installation."""
    for directory in path.split(os.pathsep):
        if not os.path.isabs(directory):
            continue
        yield directory
        prefix, name = os.path.split(os.path.realpath(directory))
        if name in ("bin", "sbin"):
            yield from (f"{prefix}/{relative}" for relative in _OF_A_PREFIX)


def _interpreter() -> Iterator[str]:
    """Yield the directories of this Python, of its libraries and of artoo itself, because these start the
    commands."""
    yield from (sys.prefix, sys.base_prefix)
    yield str(Path(__file__).parent.parent.parent)


# --- paths that commands may look for ---------------------------------------------------------------------------
# These are the directories of PATH and their installations, an active Python environment, and the targets of the
# project's links. If such a path is in /tmp or /run, of which a sandbox has its own, it is mounted there again,
# read-only.


_ENVIRONMENTS = ("VIRTUAL_ENV", "CONDA_PREFIX")
_IN_PROJECT = (".venv", "venv", "env")
_MOST_ENTRIES = 5_000
_LINKS_MAY_LEAD_TO = ("/tmp/", "/var/tmp/")
"""The only directories in which targets of the project's links may be mounted. A cloned repository may contain a
link to a secret, for example in /run."""


@dataclass(frozen=True, slots=True)
class WantedPaths:
    """The existing paths for which commands may look (`all`), and those of them that must be mounted into private
    places."""

    all: tuple[str, ...]
    mountable: tuple[str, ...]


def wanted_paths(roots: Roots) -> WantedPaths:
    """Return the paths that commands may look for. This reads the top two levels of the project. Blocking."""
    programs = dict.fromkeys((*_path_entries(), *program_places(), *_environments(str(roots.project))))
    linked = dict.fromkeys(_linked_from(str(roots.project)))
    known = [path for path in programs if os.path.lexists(path)]
    return WantedPaths((*known, *linked), (*known, *filter(_may_be_shown, linked)))


def _path_entries() -> Iterator[str]:
    for entry in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if os.path.isabs(entry):
            yield os.path.normpath(entry)


def _environments(project: str) -> Iterator[str]:
    """Yield Python environments, and the installations of the interpreters that they use."""
    named = [os.environ[name] for name in _ENVIRONMENTS if os.environ.get(name)]
    for prefix in (sys.prefix, sys.base_prefix, *named, *(f"{project}/{name}" for name in _IN_PROJECT)):
        real = os.path.realpath(prefix)
        interpreter = f"{real}/bin/python"
        if os.path.exists(interpreter):
            yield real
            yield os.path.dirname(os.path.dirname(os.path.realpath(interpreter)))


def _linked_from(project: str) -> Iterator[str]:
    """Yield the targets of the project's links that are outside of the project."""
    for link in _links(project):
        target = os.path.realpath(link)
        if os.path.exists(target) and target != project and not target.startswith(f"{project}/"):
            yield target


def _links(project: str) -> Iterator[str]:
    seen = 0
    waiting = [(project, 0)]
    while waiting and seen < _MOST_ENTRIES:
        directory, depth = waiting.pop(0)
        with suppress(OSError), os.scandir(directory) as entries:
            for entry in entries:
                seen += 1
                if entry.is_symlink():
                    yield entry.path
                elif depth == 0 and entry.name != ".git" and entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, 1))


def _may_be_shown(target: str) -> bool:
    """True if a link's target may be mounted. It must not be hidden, and it must belong to the user or be readable
    by everyone."""
    place = next((place for place in _LINKS_MAY_LEAD_TO if target.startswith(place)), None)
    if place is None or any(name.startswith(".") for name in target[len(place) :].split("/")):
        return False
    status = os.stat(target)
    if not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
        return False
    readable = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(status.st_mode) else 0)
    return status.st_uid == os.geteuid() or status.st_mode & readable == readable
