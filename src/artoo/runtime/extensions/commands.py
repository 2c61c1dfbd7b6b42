"""Run one of the user's commands with JSON on standard input and a timeout."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_MESSAGE = 4_000
"""Number of bytes of standard error that are kept as the message."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of a command. `code` is None if the command timed out or could not be started, and then `message`
    gives the reason."""

    code: int | None
    message: str = ""


def run_with_json(command: str, given: Mapping[str, object], folder: Path, seconds: float) -> Ran:
    """Run a shell command in `folder`. It gets `given` as JSON on its standard input. Blocking. Never raises.

    Its standard output is discarded. The message of the result comes from its standard error.
    """
    data = json.dumps(given, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace")
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as errors:
        # The input is a file and no pipe, because a command that never reads its input must not block artoo.
        source.write(data)
        source.seek(0)
        try:
            process = subprocess.Popen(
                ("/bin/sh", "-c", command),
                stdin=source,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd=folder,
                env={**os.environ, "ARTOO_HOOK": str(given.get("event", ""))},
                start_new_session=True,
            )
        except OSError as error:
            return Ran(None, f"it cannot be started: {error.strerror}")
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return Ran(None, f"it did not end within {seconds:g} s and was stopped")
        errors.seek(0)
        return Ran(code, errors.read(_MESSAGE).decode(errors="replace").strip())
