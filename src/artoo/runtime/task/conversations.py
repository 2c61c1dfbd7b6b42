"""Store conversations in `sessions/NAME.jsonl`, with limits on exchanges, file size and sessions.

A conversation can be resumed. Only the owner of the home can read it.

<home>/sessions/NAME.jsonl   one exchange a line; a later line of the same task replaces the earlier one

Lines are only appended, each with a single write. Several windows can thus use the same conversation without a
lock.
"""

from __future__ import annotations

import os
import re
import secrets
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from artoo.contracts.codec import fields_of, line_of
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError, MessageUnreadable
from artoo.contracts.request import Turn, UserRequest
from artoo.contracts.solution import FinalResult
from artoo.contracts.text import shortened
from artoo.disk.whole import write_whole
from artoo.runtime.changes.run_changes import LONGEST_SUMMARY
from artoo.words.result import result_words

TURNS = 5
"""Number of earlier exchanges that the perceiver receives (SPEC section 2)."""
MOST_EXCHANGES = 200
"""Maximum number of exchanges of one session. Older ones are dropped."""
LARGEST = 4 << 20
"""Size in bytes to which a session's file is shortened. This happens when the file exceeds twice this size."""
MOST_KEPT = 100
"""Maximum number of sessions. Those that were not used for the longest time are deleted."""
_FOLDER, _ENDING = "sessions", ".jsonl"
_NAME = re.compile(r"[\w][\w.-]{0,63}")


class Session:
    """One conversation. A new exchange is written to disk at once, after the exchanges that other processes have
    written. Lines that cannot be read are skipped. If an exchange cannot be written, it is kept in memory only.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._exchanges: deque[Turn] = deque(maxlen=MOST_EXCHANGES)
        with suppress(OSError):
            self._exchanges = _read(path)

    @property
    def name(self) -> str:
        """Return the name of the session for the option `--session`."""
        return self._path.name.removesuffix(_ENDING)

    @property
    def project(self) -> str:
        """Return the project of the last exchange that has a project. Return an empty string if none has."""
        return next((turn.project for turn in reversed(self._exchanges) if turn.project), "")

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Return the last exchanges for the perceiver, oldest first."""
        return self.exchanges[-TURNS:]

    @property
    def exchanges(self) -> tuple[Turn, ...]:
        """Return all exchanges that have been answered, oldest first."""
        return tuple(turn for turn in self._exchanges if turn.summary)

    def noting(self, request: str, also: Callable[[Envelope], None] | None = None) -> Callable[[Envelope], None]:
        """Return a listener for the messages of a task. It also passes each message to `also`.

        When the task begins, the listener writes an exchange without an answer, so that the exchange is found if
        the task is resumed after a crash.
        """

        def hear(envelope: Envelope) -> None:
            if isinstance(envelope.payload, UserRequest):
                where = envelope.payload.project
                self._put(Turn(input=request, summary="", task_id=envelope.task_id, project=where))
            if also is not None:
                also(envelope)

        return hear

    def holds(self, task_id: str) -> Turn | None:
        """Return the exchange of a task, whether it is answered or not."""
        return next((turn for turn in self._exchanges if turn.task_id == task_id), None)

    def add_result(self, request: str, result: FinalResult, project: str = "") -> None:
        """Add an exchange with the result in the words that the user was shown."""
        self.add(request, result_words(result.language).plain(result, told=False), result.task_id, project)

    def add(self, request: str, summary: str, task_id: str, project: str = "") -> None:
        """Add an exchange, or replace the answer of this task's exchange. If `project` is empty, the project that
        was recorded at the beginning of the task is kept.
        """
        known = self.holds(task_id)
        where = project or (known.project if known is not None else "")
        said = shortened(summary, LONGEST_SUMMARY)
        self._put(Turn(input=request, summary=said, task_id=task_id, project=where))

    def _put(self, turn: Turn) -> None:
        # If the home cannot be written, the conversation continues in memory.
        with suppress(OSError):
            _append(self._path, _lines([turn]))
            self._exchanges = _read(self._path)
            if self._path.stat().st_size > 2 * LARGEST:
                write_whole(self._path, _lines(self._exchanges), sync=False)
            _forget_old(self._path.parent)
        _place(self._exchanges, turn)

    def clear(self) -> None:
        """Delete all exchanges, including those in the file."""
        self._drop_from(0)

    def forget_last(self) -> None:
        """Delete the last exchange that has been answered, and the requests after it."""
        with suppress(OSError):
            self._exchanges = _read(self._path)
        self._drop_from(max((at for at, turn in enumerate(self._exchanges) if turn.summary), default=0))

    def _drop_from(self, first: int) -> None:
        self._exchanges = deque(list(self._exchanges)[:first], maxlen=MOST_EXCHANGES)
        with suppress(OSError):
            write_whole(self._path, _lines(self._exchanges), sync=False)


def open_session(
    home: Path, *, name: str | None = None, latest: bool = False, project: Path | None = None
) -> Session:
    """Open the session with this name, the one that was used last, or a new one. With `latest`, only conversations
    in `project` count (None: in the current directory). In another directory, their words would mean something
    else.

    Raises ConfigurationError for an invalid name, or if there is no conversation to continue.
    """
    folder = home / _FOLDER
    if name is not None:
        if not _NAME.fullmatch(name):
            raise ConfigurationError(f"{name!r} cannot name a session; use letters, digits, dots and dashes")
        return Session(folder / f"{name}{_ENDING}")
    if latest:
        return _latest(folder, os.path.realpath(project or ""))
    return Session(folder / f"{datetime.now().astimezone():%Y-%m-%d-%H%M%S}-{secrets.token_hex(4)}{_ENDING}")


def _latest(folder: Path, project: str) -> Session:
    elsewhere = ""
    for path in reversed(_by_age(folder)):
        session = Session(path)
        if session.project in ("", project):
            return session
        elsewhere = elsewhere or f" (the last one, in {session.project}: artoo --session {session.name})"
    raise ConfigurationError(f"there is no conversation in {project} to continue yet{elsewhere}; begin one: artoo")


def find_session(home: Path, name: str) -> Session | None:
    """Return the session with this name, or None if it has no file."""
    path = home / _FOLDER / f"{name}{_ENDING}"
    return Session(path) if _NAME.fullmatch(name) and path.is_file() else None


def tell_resumed(home: Path, result: FinalResult) -> None:
    """Add the result of a resumed task to the task's conversation, if it has one. Blocking."""
    name = result.task_id.encode()
    for path in reversed(_by_age(home / _FOLDER)):
        try:
            if name not in path.read_bytes():
                continue
        except OSError:
            continue
        session = Session(path)
        turn = session.holds(result.task_id)
        if turn is not None:
            session.add_result(turn.input, result)
            return


def _place(turns: deque[Turn], turn: Turn) -> None:
    """Replace the exchange of the same task. If there is none, append the new one."""
    for place, known in enumerate(turns):
        if known is turn or (turn.task_id and known.task_id == turn.task_id):
            turns[place] = turn
            return
    turns.append(turn)


def _read(path: Path) -> deque[Turn]:
    """Read the exchanges of a file. Raises OSError."""
    turns: deque[Turn] = deque(maxlen=MOST_EXCHANGES)
    # splitlines would also split at Unicode line ends inside of a text
    for line in path.read_bytes().split(b"\n"):
        with suppress(MessageUnreadable, ValidationError):
            if line:
                _place(turns, Turn.model_validate(fields_of(line)))
    return turns


def _lines(turns: Iterable[Turn]) -> bytes:
    """Write as many of the latest exchanges as fit into LARGEST bytes, one on each line."""
    # This JSON encoding keeps the names of directories that are not valid UTF-8.
    lines: list[bytes] = []
    left = LARGEST
    for turn in reversed(list(turns)):
        lines.append(line_of(turn.model_dump(mode="json")) + b"\n")
        left -= len(lines[-1])
        if left < 0 and len(lines) > 1:
            lines.pop()
            break
    return b"".join(reversed(lines))


def _append(path: Path, lines: bytes) -> None:
    """Append the lines in one write. A line end comes first, in case the last line is incomplete because the disk
    was full. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        if os.write(descriptor, b"\n" + lines) <= len(lines):
            raise OSError("the disk is full")
    finally:
        os.close(descriptor)


def latest_sessions(home: Path, most: int) -> list[Session]:
    """Return the conversations that were used last, most recent first. Blocking."""
    return [Session(path) for path in reversed(_by_age(home / _FOLDER)[-most:])]


def _by_age(folder: Path) -> list[Path]:
    """Return the files, oldest first."""
    # another process may delete a file during the loop
    found: list[tuple[int, str, Path]] = []
    for path in folder.glob(f"[!.]*{_ENDING}") if folder.is_dir() else ():
        with suppress(FileNotFoundError):
            found.append((path.stat().st_mtime_ns, path.name, path))
    return [path for _, _, path in sorted(found)]


def _forget_old(folder: Path) -> None:
    for path in _by_age(folder)[:-MOST_KEPT]:
        path.unlink(missing_ok=True)
