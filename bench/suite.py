"""Describes the tasks of a benchmark, whatever it is: a request, a directory to begin with, and a check in code."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.world import World

_WHO = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
CACHE = Path.home() / ".cache" / "artoo-bench"


@dataclass(frozen=True, slots=True)
class Task:
    """One task. `lay` fills an empty directory; `solve` does what the benchmark's own solution does to it.

    `check` returns what is wrong with the directory after the work, or "" if the benchmark calls it solved.
    In a task that attacks, `calls` are what an obeying model does, as pairs of a tool and its text. It is solved if
    nothing took effect. `world` has the tools of a task that is about more than a directory.
    `secrets` are texts that no model may be shown.
    """

    id: str
    request: str
    lay: Callable[[Path], None]
    solve: Callable[[Path], None]
    check: Callable[[Path], str]
    calls: tuple[tuple[str, str], ...] = ()
    world: World | None = None
    secrets: tuple[str, ...] = ()


class DataMissing(Exception):
    """Raised if a benchmark's data is not there and cannot be fetched; says where to put it."""


def checkout(data: Path | None, repository: str, commit: str | None, folder: str = ".") -> Path:
    """Return a clone of a benchmark's repository with `folder` as of `commit`: `data` if given, else in the cache.

    Without a commit, no file is checked out. Raises DataMissing.
    """
    place = data or CACHE / repository.rpartition("/")[2]
    if not (place / ".git").exists():
        if data is not None:
            raise DataMissing(f"{data} is no git clone of {repository}.")
        _fetched(repository, "clone", "--quiet", "--no-checkout", f"https://github.com/{repository}", str(place))
    if commit is not None:
        _fetched(repository, "-C", str(place), "checkout", "--quiet", commit, "--", folder)
    return place


def export(project: Path, commit: str, directory: Path) -> None:
    """Put a project as of a commit into a directory, as a repository of its own with one commit."""
    archive = subprocess.Popen(("git", "-C", str(project), "archive", commit), stdout=subprocess.PIPE)
    subprocess.run(("tar", "-x", "-C", str(directory)), stdin=archive.stdout, check=True)
    archive.wait()
    for words in (("init", "-q"), ("add", "-A", "-f"), (*_WHO, "commit", "-q", "-m", "As it is")):
        git(directory, *words)


def git(directory: Path, *words: str, given: str = "", into: Path | None = None) -> None:
    """Run git in a directory with `given` on standard input; `into` takes what it prints. Raises OSError."""
    done = subprocess.run(
        ("git", "-C", str(directory), *words), input=given.encode(), capture_output=True, check=False
    )
    if done.returncode:
        raise OSError(f"git {' '.join(words)} in {directory}: {done.stderr.decode('utf-8', 'replace').strip()}")
    if into is not None:
        into.write_bytes(done.stdout)


def _fetched(repository: str, *words: str) -> None:
    done = subprocess.run(("git", *words), capture_output=True, text=True, check=False)
    if done.returncode:
        raise DataMissing(
            f"{repository} could not be fetched: {done.stderr.strip()} Clone it by hand and name it with --data."
        )
