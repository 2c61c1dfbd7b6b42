"""Commands left running after a task (`keep: true`), with their folder, output and stop.

ARTOO_HOME/running/<id>/
  process.json   the command, its task, and its process group
  lock           locked by the command and its children for as long as any of them runs
  output         the output of the command
  exit           its exit code, if it has ended by itself
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.contracts.confirmation import AskedAct, ConfirmationRequest
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.settling import Ending, Settled
from artoo.disk.whole import write_whole
from artoo.ports.confirm import Questions
from artoo.ports.waiting import waiting_for_a_person
from artoo.tools.builtin.process import in_a_line
from artoo.tools.core.processes import Tracked
from artoo.tools.files.unified_diff import plain
from artoo.tools.resume.in_flight import digest_of_call
from artoo.words.catalogue import word
from artoo.words.question import command_lines

_FOLDER = "running"
_KEEP_EXIT_CODE = '"$@"; echo $? >"$0"'
"""A bash script that runs its arguments, and then writes the exit code into the file that `$0` names."""
_GRACE_SECONDS = 3.0
_LOOK_SECONDS = 0.05


class Started(BaseModel):
    """The content of `process.json`. `since`: seconds since the epoch (UTC)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    command: str
    project: str
    task_id: str
    group: int
    since: float


@dataclass(frozen=True, slots=True)
class LeftProcess:
    """A command that was left running, with its directory."""

    place: Path
    started: Started

    @property
    def runs(self) -> bool:
        """Return whether the command or one of its children is still running. Blocking."""
        try:
            with (self.place / "lock").open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    @property
    def output(self) -> Path:
        """Return the file with the output of the command."""
        return self.place / "output"

    @property
    def exit_code(self) -> int | None:
        """Return the exit code of the command. Return None while it runs, or if it was stopped. Blocking."""
        try:
            return int((self.place / "exit").read_text("ascii"))
        except (OSError, ValueError):
            return None

    def stop(self) -> None:
        """End the command and its children, by SIGTERM and then by SIGKILL. Blocking. Idempotent."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self.runs:
                return
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.started.group, number)
            end = time.monotonic() + _GRACE_SECONDS
            while self.runs and time.monotonic() < end:
                time.sleep(_LOOK_SECONDS)


@dataclass(frozen=True, slots=True)
class LeftRunning:
    """Starts the commands that a task marked with `keep: true`. The user is asked once for each."""

    artoo_home: Path
    project: Path

    async def started(
        self, kept: Sequence[Tracked], settled: Settled, ending: Ending, questions: Questions | None
    ) -> dict[str, str]:
        """Start the commands to which the user agrees. Return `ID: command` by the id that the command had in the
        task."""
        # If the changes of the task were not applied, its commands are not started, because they may need them.
        if questions is None or settled.state not in ("applied", "none") or ending.directive == "abandon":
            return {}
        begun: dict[str, str] = {}
        for one in kept:
            with waiting_for_a_person():
                answer = await questions.ask(self._question(one, ending.language))
            if answer.consent.is_yes:
                process = await asyncio.to_thread(
                    start, self.artoo_home, one.command.argv, one.command.text, self.project, ending.task_id
                )
                begun[one.id] = f"{process.started.id}: {in_a_line(one.command.text)}"
        return begun

    def _question(self, tracked: Tracked, language: str) -> ConfirmationRequest:
        command = tracked.command
        end = word("it runs with your rights, outside the workspace, until it is stopped (artoo stop)", language)
        return ConfirmationRequest(
            digest=digest_of_call("keep", str(self.project), *command.argv),
            title=f"{word('leave it running', language)}: {plain(in_a_line(command.text))}",
            details=tuple(map(plain, (f"[{self.project}]", *command_lines(command.text), end))),
            acts=(AskedAct(verb="keep", target=command.text),),
            language=language,
        )


def start(artoo_home: Path, argv: Sequence[str], text: str, project: Path, task_id: str) -> LeftProcess:
    """Start a command that does not depend on artoo's process, with the user's rights. Blocking. Raises OSError."""
    process_id = secrets.token_hex(3)
    place = artoo_home / _FOLDER / process_id
    place.mkdir(parents=True, mode=0o700)
    wrapped = ("bash", "--noprofile", "--norc", "-c", _KEEP_EXIT_CODE, str(place / "exit"), *argv)
    with (place / "lock").open("wb") as lock, (place / "output").open("wb") as output:
        fcntl.flock(lock, fcntl.LOCK_EX)
        child = subprocess.Popen(
            wrapped,
            cwd=project,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(lock.fileno(),),
        )
    # The command runs longer than this process, so subprocess must not warn that no one waited for it.
    child.returncode = 0
    started = Started(
        id=process_id, command=text, project=str(project), task_id=task_id, group=child.pid, since=time.time()
    )
    write_whole(place / "process.json", started.model_dump_json().encode())
    return LeftProcess(place, started)


def left_processes(artoo_home: Path) -> tuple[LeftProcess, ...]:
    """Return every command that was left running, including those that have ended, oldest first. Blocking."""
    return tuple(sorted(_found(artoo_home / _FOLDER), key=lambda one: one.started.since))


def find_left(artoo_home: Path, process_id: str) -> LeftProcess:
    """Return the only command whose id is `process_id` or begins with it. Raises ConfigurationError if there is
    none or more than one. Blocking."""
    found = [one for one in left_processes(artoo_home) if one.started.id.startswith(process_id)]
    if len(found) == 1 and process_id:
        return found[0]
    what = "more than one process has an id that begins so" if found else "there is no such process"
    raise ConfigurationError(f"{process_id}: {what}; artoo ps lists them: artoo ps")


def _found(folder: Path) -> Iterator[LeftProcess]:
    try:
        places = sorted(folder.iterdir())
    except OSError:
        return
    for place in places:
        try:
            started = Started.model_validate_json((place / "process.json").read_bytes())
        except (OSError, ValidationError):
            # a crash interrupted the start, or the file is not one of artoo's
            continue
        yield LeftProcess(place, started)
