"""Name a project by its git remote as `host/path`, or by its directory.

With these names, the same project is recognised on every machine. Reference: SPEC section 13.

A directory with a git remote is named by the remote's URL, as `host/path` without user, password and `.git`, so
that clones over HTTPS and SSH are one project. Any other directory is named by its path.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from artoo.contracts.errors import ConfigurationError
from artoo.sandbox.reading.programs import find_program

_GIT_SECONDS = 10
_SSH = re.compile(r"(?:[^@/]+@)?([^:/]+):(?!//)(.+)")


@dataclass(frozen=True, slots=True)
class Projects:
    """Declared projects by name. `everywhere`: true if there is only one machine, so that every directory is
    available."""

    places: dict[str, Path]
    everywhere: bool = False

    @classmethod
    def declared(cls, paths: Sequence[Path]) -> Projects:
        """Return the configured projects. Blocking. Raises ConfigurationError if one is not a directory."""
        places: dict[str, Path] = {}
        for path in paths:
            place = path.expanduser()
            if not place.is_dir():
                raise ConfigurationError(f"projects names {place}, which is no directory on this machine")
            places[str(place.resolve())] = places[project_name(place)] = place.resolve()
        return cls(places)

    @property
    def names(self) -> Collection[str] | None:
        """Return the names of the projects whose tasks may run here. Return None if all projects may."""
        return None if self.everywhere else tuple(self.places)

    def name(self, path: Path) -> str:
        """Return the name of the project to which a task in this directory belongs. Blocks."""
        return str(path.resolve()) if self.everywhere else project_name(path)

    def place(self, name: str) -> Path:
        """Return the directory of a declared project. Raises ConfigurationError for other projects."""
        if self.everywhere:
            return Path(name).expanduser()
        if name not in self.places:
            raise ConfigurationError(
                f"this machine does not have the project {name}; name its directory in `projects`"
            )
        return self.places[name]


def project_name(path: Path) -> str:
    """Return the name of the project in a directory: its git remote `origin`, or else its path. Blocks."""
    git = find_program("git", (str(path),))
    if git is None:
        return str(path.resolve())
    try:
        found = subprocess.run(
            [git, "-C", str(path), "config", "--local", "--get", "remote.origin.url"],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return str(path.resolve())
    # The remote names only the top directory of a repository, so a directory below it is named by its path.
    top = (path / ".git").exists()
    return remote_name(found.stdout.strip()) or str(path.resolve()) if top else str(path.resolve())


def remote_name(url: str) -> str:
    """Return the `host/path` of a git URL. Return an empty string if the URL names no other machine."""
    if "://" in url:
        try:
            parts = urlsplit(url)
        except ValueError:
            # `urlsplit` raises ValueError for an unclosed bracket.
            return ""
        host, path = (parts.hostname or ""), parts.path
    else:
        match = _SSH.fullmatch(url)
        if match is None:
            return ""
        host, path = match[1], match[2]
    name = path.strip("/").removesuffix(".git")
    return f"{host.lower()}/{name}" if host and name else ""
