"""Run git on a repository of the user, so that nothing but git itself starts.

Hooks, the file system monitor, pagers, other protocols and the settings of the machine are switched off. Only
plumbing is run, and nothing that reads working files: filters and attributes never matter.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

SECONDS = 120.0
"""Longer than any step on a large repository takes; a git that waits for something must not hold the settlement."""

SAFE_SETTINGS = (
    "safe.directory=*",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.splitIndex=false",
    "core.alternateRefsCommand=",
    "log.showSignature=false",
    "gc.auto=0",
    "maintenance.auto=false",
)
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_COMMITTER_NAME": "artoo",
    "GIT_COMMITTER_EMAIL": "artoo@localhost",
}


class GitFailed(Exception):
    """git is missing, refused, or took too long. The message is git's own last line."""


def options() -> list[str]:
    """Return the options that come before git's subcommand."""
    return ["--no-pager", *(part for setting in SAFE_SETTINGS for part in ("-c", setting))]


@dataclass(frozen=True, slots=True)
class Git:
    """One repository and the git program that works on it. `variables` are laid over the clean environment."""

    program: str
    directory: Path
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        source: BinaryIO | None = None,
        accept: Sequence[int] = (0,),
        variables: Mapping[str, str] | None = None,
    ) -> bytes:
        """Run git with the arguments and return what it printed. `source`: a file as its input. Raises GitFailed."""
        # The work tree is named only so that git looks for none: paths of the index count from its top.
        places = {"GIT_DIR": str(self.directory), "GIT_WORK_TREE": str(self.directory)}
        try:
            done = subprocess.run(
                [self.program, *options(), *arguments],
                **({"input": stdin} if source is None else {"stdin": source}),
                capture_output=True,
                timeout=SECONDS,
                cwd=self.directory,
                env={**ENVIRONMENT, **places, **self.variables, **(variables or {})},
                check=False,
                **_owner(self.directory),
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GitFailed(f"git {arguments[0]} could not be run: {error}") from error
        if done.returncode not in accept:
            raise GitFailed(last_line(done.stderr) or f"git {arguments[0]} ended with {done.returncode}")
        return done.stdout

    def text(self, *arguments: str, accept: Sequence[int] = (0,)) -> str:
        """Return what git printed as text, without the white space around it."""
        return os.fsdecode(self.run(*arguments, accept=accept)).strip()

    def holds(self, *arguments: str) -> bool:
        """True if git ends with 0, False for 1. Raises GitFailed for anything else."""
        try:
            self.run(*arguments)
        except GitFailed:
            self.run(*arguments, accept=(1,))
            return False
        return True


def last_line(stderr: bytes) -> str:
    """Return the last line of an error, short enough for a message."""
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else ""


def _owner(directory: Path) -> dict[str, Any]:
    """Run as the repository's owner if artoo is root: files that root made would lock the owner out."""
    if os.geteuid() != 0:
        return {}
    found = directory.stat()
    if found.st_uid == 0:
        return {}
    return {"user": found.st_uid, "group": found.st_gid, "extra_groups": []}
