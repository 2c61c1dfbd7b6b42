"""Find what a command of the user's would look for outside the usual places, so that it is visible in a sandbox.

These are the directories of PATH with the installations that they belong to, an active Python environment, and
what links of the project lead to. A sandbox has a /tmp and a /run of its own; what lies there is mounted back,
read-only.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from artoo.ports.sandbox import Roots
from artoo.sandbox.reading.readable_paths import program_places

_ENVIRONMENTS = ("VIRTUAL_ENV", "CONDA_PREFIX")
_IN_PROJECT = (".venv", "venv", "env")
_MOST_ENTRIES = 5_000
_LINKS_MAY_LEAD_TO = ("/tmp/", "/var/tmp/")
"""Only there, because a link of a cloned repository may lead anywhere: /run holds sockets, keys and tokens."""


@dataclass(frozen=True, slots=True)
class WantedPaths:
    """`all` that commands may look for and that exists; `mountable` may be mounted into private places."""

    all: tuple[str, ...]
    mountable: tuple[str, ...]


def wanted_paths(roots: Roots) -> WantedPaths:
    """Return what commands may look for. Looks at the top two levels of the project. Blocking."""
    programs = dict.fromkeys((*_path_entries(), *program_places(), *_environments(str(roots.project))))
    linked = dict.fromkeys(_linked_from(str(roots.project)))
    known = [path for path in programs if os.path.lexists(path)]
    return WantedPaths((*known, *linked), (*known, *filter(_may_be_shown, linked)))


def _path_entries() -> Iterator[str]:
    for entry in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if os.path.isabs(entry):
            yield os.path.normpath(entry)


def _environments(project: str) -> Iterator[str]:
    """Yield Python environments and the installations that their interpreters belong to."""
    named = [os.environ[name] for name in _ENVIRONMENTS if os.environ.get(name)]
    for prefix in (sys.prefix, sys.base_prefix, *named, *(f"{project}/{name}" for name in _IN_PROJECT)):
        real = os.path.realpath(prefix)
        interpreter = f"{real}/bin/python"
        if os.path.exists(interpreter):
            yield real
            yield os.path.dirname(os.path.dirname(os.path.realpath(interpreter)))


def _linked_from(project: str) -> Iterator[str]:
    """Yield where links of the project lead, outside of it."""
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
    """True if a link of the project may open its target: the user's own or open to everybody, and not hidden."""
    place = next((place for place in _LINKS_MAY_LEAD_TO if target.startswith(place)), None)
    if place is None or any(name.startswith(".") for name in target[len(place) :].split("/")):
        return False
    status = os.stat(target)
    if not (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)):
        return False
    readable = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(status.st_mode) else 0)
    return status.st_uid == os.geteuid() or status.st_mode & readable == readable
