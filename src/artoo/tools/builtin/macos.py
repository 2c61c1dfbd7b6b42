"""The tools `mdfind`, `applescript` and `shortcuts` on macOS, with their timeout.

The effects of the last two tools cannot be staged, so these tools always ask first.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.errors import SandboxError, ToolError
from artoo.contracts.execution import CallStatus
from artoo.ports.sandbox import Captured, Roots
from artoo.ports.tools import Parameter, ToolSpec
from artoo.sandbox.reading.environment import cleaned
from artoo.tools.builtin.shell import unfenced
from artoo.tools.core.command_runner import printed_outcome
from artoo.tools.core.to_thread import in_thread
from artoo.tools.core.tool import Arguments, CountsAsItself, Look, Outcome, argument
from artoo.tools.files.paths import absolute, found_at, printable
from artoo.tools.files.search import MAX_FOUND, mdfind
from artoo.workspace.files.rooted import real_files

SCRIPT_SECONDS = 120.0
_GRACE_SECONDS = 15.0
_MDFIND = ToolSpec(
    name="mdfind",
    description="find the user's files by what they hold, with Spotlight",
    parameters=(
        Parameter("query", "words, or a Spotlight query"),
        Parameter("folder", "where (default: everywhere)", False),
    ),
    priority=9,
    only_reads=True,
)
_APPLESCRIPT = ToolSpec(
    name="applescript",
    description="control macOS applications with AppleScript; the user is asked each time",
    parameters=(Parameter("script", "the script"),),
    priority=40,
    body="script",
    writes=True,
    languages=("applescript",),
)
_SHORTCUTS = ToolSpec(
    name="shortcuts",
    description="run one of the user's macOS shortcuts; the user is asked each time",
    parameters=(Parameter("name", "the shortcut"), Parameter("input", "a file for it", False)),
    priority=41,
    writes=True,
)


@dataclass(frozen=True, slots=True)
class Real:
    """Runs a program with the user's own rights, with limits on time and output. It is used only after approval."""

    roots: Roots
    seconds: float = SCRIPT_SECONDS

    async def run(self, argv: tuple[str, ...], stdin: bytes | None = None) -> Outcome:
        """Run the program. Raises SandboxError if it cannot be started."""
        env = cleaned(os.environ, self.roots)
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self.roots.project,
                env=env,
                start_new_session=True,
            )
        except OSError as error:
            raise SandboxError(f"{argv[0]} cannot be started: {error.strerror}") from error
        try:
            async with asyncio.timeout(self.seconds):
                stdout, stderr = await process.communicate(stdin or b"")
        except TimeoutError:
            reason = f"it did not end within {self.seconds:g} s and was stopped"
            return Outcome(status=CallStatus.TIMEOUT, reason=reason)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        printed = Captured(head=stdout, total_bytes=len(stdout)), Captured(head=stderr, total_bytes=len(stderr))
        status = CallStatus.OK if process.returncode == 0 else CallStatus.ERROR
        return printed_outcome(printed, status=status, exit_code=process.returncode)


@dataclass(frozen=True, slots=True)
class Mdfind(CountsAsItself):
    """Asks Spotlight (with the program `mdfind`) for files by their content. Files that are closed to tools are
    left out."""

    program: str
    roots: Roots
    files: Look = real_files
    wall_seconds: float = 30.0
    spec: ToolSpec = _MDFIND

    def target(self, arguments: Arguments) -> str:
        return argument(arguments, "query")

    async def run(self, arguments: Arguments) -> Outcome:
        """Ask Spotlight. Raises ToolError if it does not answer."""
        folder = argument(arguments, "folder")
        within = ("-onlyin", str(absolute(folder, self.roots))) if folder else ()
        answer = await in_thread(mdfind, self.program, *within, self.target(arguments))
        if answer is None:
            raise ToolError("Spotlight did not answer; use find_files or search_text")
        paths = await in_thread(self._visible, answer)
        more = f"(the first {MAX_FOUND} are listed)" if len(paths) > MAX_FOUND else ""
        lines = [f"{len(paths)} found", *map(printable, paths[:MAX_FOUND]), more]
        return Outcome(output="\n".join(filter(None, lines)), result_count=len(paths), truncated=bool(more))

    def _visible(self, paths: list[str]) -> list[str]:
        files = self.files()
        return [path for path in paths if found_at(files, Path(path)) is not None]


@dataclass(frozen=True, slots=True)
class AppleScript(CountsAsItself):
    """Runs a script with `osascript` (its path is `program`), which reads the script from standard input."""

    real: Real
    program: str
    spec: ToolSpec = _APPLESCRIPT
    why: str = "AppleScript acts on other programs and cannot be staged"

    @property
    def wall_seconds(self) -> float:
        return self.real.seconds + _GRACE_SECONDS

    def target(self, arguments: Arguments) -> str:
        return "\n".join(line.rstrip() for line in unfenced(argument(arguments, "script")).strip().splitlines())

    async def run(self, arguments: Arguments) -> Outcome:
        """Run the script. Raises SandboxError if `osascript` cannot be started."""
        return await self.real.run((self.program, "-"), unfenced(argument(arguments, "script")).encode())


@dataclass(frozen=True, slots=True)
class Shortcuts(AppleScript):
    """Runs one of the user's shortcuts by name, with `shortcuts` (its path is `program`)."""

    spec: ToolSpec = _SHORTCUTS
    why: str = "Shortcuts act on other programs and cannot be staged"

    def target(self, arguments: Arguments) -> str:
        return argument(arguments, "name")

    async def run(self, arguments: Arguments) -> Outcome:
        """Run the shortcut. Raises SandboxError if `shortcuts` cannot be started."""
        given = argument(arguments, "input")
        more = ("--input-path", given) if given else ()
        return await self.real.run((self.program, "run", self.target(arguments), *more))
