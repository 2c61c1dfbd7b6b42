"""Run the git program with hooks and foreign settings off, and with a timeout.

Git itself starts no other program.

Hooks, the file system monitor, pagers, other protocols and the machine's settings are switched off. Only git's
plumbing commands that read no working files are run, so that filters and attributes have no effect.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

SECONDS = 120.0
"""The timeout of one git command. It is long enough for large repositories. Without it, a hung git would block
settlement."""

OPTIONS = (
    *("--no-pager", "-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "core.splitIndex=false", "-c", "log.showSignature=false", "-c", "gc.auto=0"),
)
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_COMMITTER_NAME": "artoo",
    "GIT_COMMITTER_EMAIL": "artoo@localhost",
}


class GitFailed(Exception):
    """Raised if git refuses, cannot be run, or takes too long. The message is that of git if there is one."""


@dataclass(frozen=True, slots=True)
class Git:
    """One repository and the git program to use on it."""

    program: str
    directory: Path

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        source: BinaryIO | None = None,
        accept: Sequence[int] = (0,),
        variables: Mapping[str, str] | None = None,
    ) -> bytes:
        """Run a git command and return its output. `source`: a file that git reads as its input. Raises
        GitFailed."""
        # The work tree is set only to keep git from searching for one. Index paths are relative to its top.
        places = {"GIT_DIR": str(self.directory), "GIT_WORK_TREE": str(self.directory)}
        seen = self.directory.stat()
        other = os.geteuid() == 0 and seen.st_uid != 0 and _reaches(seen.st_uid, self.directory)
        try:
            with subprocess.Popen(
                [self.program, *OPTIONS, *arguments],
                stdin=subprocess.PIPE if source is None else source,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.directory,
                env={**ENVIRONMENT, **places, **(variables or {})},
                user=seen.st_uid if other else None,
                group=seen.st_gid if other else None,
                extra_groups=() if other else None,
            ) as process:
                try:
                    out, errors = process.communicate(stdin if source is None else None, SECONDS)
                except BaseException:
                    process.kill()
                    raise
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GitFailed(f"git {arguments[0]} could not be run: {error}") from error
        if process.returncode not in accept:
            raise GitFailed(reason_in(errors) or f"git {arguments[0]} ended with {process.returncode}")
        return out


def _reaches(user: int, directory: Path) -> bool:
    """True if a user can reach a directory. If so, git runs as that user, so that it makes no files that root
    owns."""
    return all(one.st_mode & 0o001 or one.st_uid == user for one in map(Path.stat, directory.parents))


def reason_in(errors: bytes) -> str:
    """Return the line with git's reason for a failure, shortened for a message."""
    lines = errors.decode("utf-8", "replace").strip().splitlines() or [""]
    return next((one for one in lines if one.startswith(("fatal: ", "error: "))), lines[-1])[:300]
