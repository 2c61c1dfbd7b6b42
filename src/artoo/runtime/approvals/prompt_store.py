"""The prompt queue on disk, with questions, answers, messages and stop requests between processes, and limits.

Processes use it to exchange questions of running tasks, answers and stop requests.

    <home>/desk/<task>.<key>.question   a question; the asking process holds a lock on it while it is pending
                <task>.<key>.answer     the first answer; it is created by a hard link, so a second one fails
                <task>.stop             a request to stop the task
                <task>.<time>.message   a message to the running task, or a request to interrupt its turn

Each item is a small file that appears atomically, so a process that dies leaves no partial file. If the process
that asked has died, the next reader removes its question.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import secrets
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.contracts.confirmation import Choice, ConfirmationRequest, Consent, Words
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.steering import UserMessage
from artoo.disk.whole import write_new
from artoo.tasklog.layout import directory_name, task_directory
from artoo.tasklog.lock import is_running

logger = logging.getLogger(__name__)

ANSWERS_KEPT_SECONDS = 3_600.0
"""Number of seconds for which an answer is kept. A caller whose answer came too late can then read which answer was
accepted."""
LONGEST = 64 * 1024 * 1024
"""Maximum number of bytes of a question. Questions can be long, because a review contains the diffs of small
files."""
MOST_ASKED = 200
MOST_MESSAGES = 100
LONGEST_MESSAGE = 256 * 1024
"""Maximum number of characters of one message to a running task."""

_KEY = re.compile(r"[0-9a-f]{16}")


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    digest: str
    consent: Consent | None = None
    paths: tuple[str, ...] = ()
    words: str | None = None
    via: str


@dataclass(frozen=True, slots=True)
class Given:
    """The accepted answer, and the window that it came from (`terminal`, `page`). `first`: true if it was given
    just now, so that no earlier answer exists."""

    said: Consent | Choice | Words
    via: str
    first: bool = True


class OpenQuestion(BaseModel):
    """A pending question. `key` identifies it. `asked_at`: the time in seconds since the epoch (UTC)."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    task_id: str
    key: str
    asked_at: float
    request: ConfirmationRequest


class NotAsked(ConfigurationError):
    """Raised if the question is no longer pending, or differs from the one that the user was shown."""


class TaskDesk:
    """The prompt queue of one task. Disk errors are logged."""

    def __init__(self, home: Path, task_id: str) -> None:
        self._folder = _folder(home)
        self._task_id = task_id
        self._stop = self._folder / _stop_name(task_id)

    def stop_wanted(self) -> bool:
        return self._stop.exists()

    def begin(self) -> None:
        """Delete earlier stop requests and messages, because they were meant for an earlier run of the task."""
        with suppress(OSError):
            self._stop.unlink(missing_ok=True)
        self.take_messages()

    def take_messages(self) -> tuple[UserMessage, ...]:
        """Return and delete the messages to the task. A message that cannot be read is dropped, which is logged."""
        found: list[UserMessage] = []
        for path in _message_files(self._folder, self._task_id):
            try:
                found.append(UserMessage.model_validate_json(path.read_bytes()))
            except (OSError, ValidationError) as error:
                logger.warning("a message to the task cannot be read: %s: %s", path, error)
            with suppress(OSError):
                path.unlink(missing_ok=True)
        return tuple(found)

    @contextmanager
    def laid(self, request: ConfirmationRequest) -> Generator[TaskSlip]:
        slip = TaskSlip(self._folder, self._task_id, request)
        try:
            slip.open()
        except OSError as error:
            logger.warning("a question can be answered here only: %s", error)
        try:
            yield slip
        finally:
            slip.close()


class TaskSlip:
    """A question in the prompt queue, as the task that asks it sees it."""

    def __init__(self, folder: Path, task_id: str, request: ConfirmationRequest) -> None:
        self._folder = folder
        self._request = request
        self._key = secrets.token_hex(8)
        self._task_id = task_id
        self._stem = f"{directory_name(task_id)}.{self._key}"
        self._descriptor: int | None = None

    def open(self) -> None:
        """Write the question atomically and hold its lock. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _forget_old(self._folder)
        asked = OpenQuestion(task_id=self._task_id, key=self._key, asked_at=time.time(), request=self._request)
        hidden = self._folder / f".{self._stem}"
        descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            data = asked.model_dump_json().encode()
            # If the disk is full, `write` may write only a part, and raises the error at the next call.
            while data:
                data = data[os.write(descriptor, data) :]
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            hidden.rename(self._folder / f"{self._stem}.question")
        except OSError:
            os.close(descriptor)
            hidden.unlink(missing_ok=True)
            raise
        self._descriptor = descriptor

    def close(self) -> None:
        """Remove the question. The answer stays, for callers that answer later."""
        if self._descriptor is not None:
            with suppress(OSError):
                (self._folder / f"{self._stem}.question").unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None

    def given(self) -> Given | None:
        return _given(self._folder / f"{self._stem}.answer", self._request.digest)

    def answer(self, said: Consent | Choice | Words, via: str) -> Given:
        # The question could not be written, so no other process can have answered it.
        if self._descriptor is None:
            return Given(said, via)
        return _bring(self._folder, self._stem, self._request.digest, said, via)


def open_questions(home: Path, task_id: str | None = None) -> tuple[OpenQuestion, ...]:
    """Return the pending questions of this home, oldest first, at most `MOST_ASKED`. Blocking."""
    folder = _folder(home)
    paths = sorted(folder.glob("*.question")) if folder.is_dir() else []
    found = [asked for path in paths[:MOST_ASKED] if (asked := _asked(path)) is not None]
    wanted = [one for one in found if task_id is None or one.task_id == task_id]
    return tuple(sorted(wanted, key=lambda one: one.asked_at))


def answer_question(
    home: Path, task_id: str, key: str, digest: str, said: Consent | Choice | Words, via: str
) -> Given:
    """Answer a question, if it is exactly the one that the user was shown (`digest`). Return the accepted answer,
    which is the first one that was given.

    Raises NotAsked if the question is no longer pending and its answer is unknown, or if the question has changed.
    """
    if _KEY.fullmatch(key) is None:
        raise NotAsked("no question has such a name")
    folder = _folder(home)
    stem = f"{directory_name(task_id)}.{key}"
    earlier = _given(folder / f"{stem}.answer", digest)
    if earlier is not None:
        return Given(earlier.said, earlier.via, first=False)
    asked = _asked(folder / f"{stem}.question")
    if asked is None:
        raise NotAsked("this question does not wait any more: it was answered, or its task has ended")
    if asked.request.digest != digest:
        raise NotAsked("this is not the question that was shown; look at it again")
    if isinstance(said, Choice) and asked.request.review is None:
        raise NotAsked("there is nothing to choose from in this question")
    if isinstance(said, Words) and asked.request.wants == "consent":
        raise NotAsked("this question wants a yes or a no, not words")
    return _bring(folder, stem, digest, said, via)


def ask_to_stop(home: Path, task_id: str) -> bool:
    """Ask a running task to end now, whichever process runs it. Return False if the task is not running. Raises
    OSError."""
    if not is_running(task_directory(home, task_id)):
        return False
    folder = _folder(home)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / _stop_name(task_id)).touch(mode=0o600)
    return True


def send_message(home: Path, task_id: str, message: UserMessage) -> bool:
    """Send a message to a running task, whichever process runs it. Return False if it is not running.

    Raises ConfigurationError if too many messages are pending or the text is too long, and OSError if the message
    cannot be written.
    """
    if not is_running(task_directory(home, task_id)):
        return False
    if len(message.text) > LONGEST_MESSAGE:
        raise ConfigurationError(
            f"the message is longer than {LONGEST_MESSAGE:,} characters; put the text into a file"
        )
    folder = _folder(home)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if len(_message_files(folder, task_id)) >= MOST_MESSAGES:
        raise ConfigurationError(
            f"{MOST_MESSAGES} messages are already waiting for this task; send more after it has read them"
        )
    name = f"{directory_name(task_id)}.{time.time_ns():020d}{secrets.token_hex(4)}.message"
    write_new(folder / name, message.model_dump_json().encode(), sync=False)
    return True


def _message_files(folder: Path, task_id: str) -> list[Path]:
    return sorted(folder.glob(f"{directory_name(task_id)}.*.message")) if folder.is_dir() else []


def _folder(home: Path) -> Path:
    return home / "desk"


def _stop_name(task_id: str) -> str:
    return f"{directory_name(task_id)}.stop"


def _asked(path: Path) -> OpenQuestion | None:
    """Read the question in a file. If no process waits for its answer any more, remove the file and return None."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        with os.fdopen(os.dup(descriptor), "rb") as file, suppress(ValidationError):
            return OpenQuestion.model_validate_json(file.read(LONGEST))
        return None
    else:
        path.unlink(missing_ok=True)
        return None
    finally:
        os.close(descriptor)


def _given(path: Path, digest: str) -> Given | None:
    try:
        answer = _Answer.model_validate_json(path.read_bytes()[:LONGEST])
    except (OSError, ValidationError):
        return None
    if answer.digest != digest:
        return None
    if answer.words is not None:
        return Given(Words(text=answer.words), answer.via)
    said = Choice(paths=answer.paths) if answer.paths else answer.consent
    return None if said is None else Given(said, answer.via)


def _bring(folder: Path, stem: str, digest: str, said: Consent | Choice | Words, via: str) -> Given:
    """Write the answer atomically. If there is an earlier answer, return that one instead."""
    paths = said.paths if isinstance(said, Choice) else ()
    consent = said if isinstance(said, Consent) else None
    words = said.text if isinstance(said, Words) else None
    answer = _Answer(digest=digest, consent=consent, paths=paths, words=words, via=via)
    place = folder / f"{stem}.answer"
    try:
        write_new(place, answer.model_dump_json().encode(), sync=False)
    except FileExistsError:
        earlier = _given(place, digest)
        if earlier is not None:
            return Given(earlier.said, earlier.via, first=False)
        raise
    return Given(said, via)


def _forget_old(folder: Path) -> None:
    for path in folder.glob("*.answer"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > ANSWERS_KEPT_SECONDS:
                path.unlink(missing_ok=True)
