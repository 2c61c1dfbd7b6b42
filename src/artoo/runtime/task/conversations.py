"""Conversations that can be taken up again: the exchanges of each, in artoo's home, for its owner only.

<home>/sessions/NAME.jsonl   one exchange a line; a later line of the same task takes the place of the earlier one

Lines are only appended, in one write each, so that several windows can share a conversation without a lock.
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
from artoo.contracts.shortened import shortened
from artoo.contracts.solution import FinalResult
from artoo.disk.whole import write_whole
from artoo.runtime.changes.run_changes import LONGEST_SUMMARY
from artoo.words.result import result_words

TURNS = 5
"""Earlier exchanges that the perceiver is told (SPEC section 2)."""
MOST_EXCHANGES = 200
"""Exchanges of one session that are kept: the latest."""
LARGEST = 4 << 20
"""Bytes of a session's file; from twice as many on, older exchanges go."""
MOST_KEPT = 100
"""Sessions that are kept: the latest."""
_FOLDER, _ENDING = "sessions", ".jsonl"
_NAME = re.compile(r"[\w][\w.-]{0,63}")


class Session:
    """One conversation. What is added is on disk at once, after what another process added meanwhile; a line that
    cannot be read is left out. What cannot be written goes with the next write that succeeds.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._exchanges: deque[Turn] = deque(maxlen=MOST_EXCHANGES)
        self._unwritten: deque[Turn] = deque(maxlen=MOST_EXCHANGES)
        self._forgotten: tuple[Turn, ...] = ()
        self._read_again()

    @property
    def name(self) -> str:
        """As `--session` takes it."""
        return self._path.name.removesuffix(_ENDING)

    @property
    def project(self) -> str:
        """Where its last exchange was; empty: nobody noted it."""
        return next((turn.project for turn in reversed(self._exchanges) if turn.project), "")

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The last exchanges, oldest first: what the perceiver is told."""
        return self.exchanges[-TURNS:]

    @property
    def exchanges(self) -> tuple[Turn, ...]:
        """All that is kept, oldest first. A request that has no answer yet is none."""
        return tuple(turn for turn in self._exchanges if turn.summary)

    def noting(self, request: str, also: Callable[[Envelope], None] | None = None) -> Callable[[Envelope], None]:
        """Hears the messages of a task, for `also` too: its place here is on disk when it begins. So who resumes
        it, after a kill too, finds the conversation that it belongs to."""

        def hear(envelope: Envelope) -> None:
            if isinstance(envelope.payload, UserRequest):
                where = envelope.payload.project
                self._put(Turn(input=request, summary="", task_id=envelope.task_id, project=where))
            if also is not None:
                also(envelope)

        return hear

    def holds(self, task_id: str) -> Turn | None:
        """The exchange of a task, answered or not."""
        return next((turn for turn in self._exchanges if turn.task_id == task_id), None)

    def add_result(self, request: str, result: FinalResult, project: str = "") -> None:
        """One exchange more, in the words that the person was told: a summary's signs mean nothing to a reader."""
        self.add(request, result_words(result.language).plain(result, told=False), result.task_id, project)

    def add(self, request: str, summary: str, task_id: str, project: str = "") -> None:
        """One exchange more, or another answer of a task that has one, in the project where it began."""
        known = self.holds(task_id)
        where = project or (known.project if known is not None else "")
        said = shortened(summary, LONGEST_SUMMARY)
        self._put(Turn(input=request, summary=said, task_id=task_id, project=where))

    def _put(self, turn: Turn) -> None:
        _place(self._unwritten, turn)
        if self._forgotten:
            self._empty()
        with suppress(OSError):  # a home that cannot be written keeps nothing: the conversation goes on
            _append(self._path, _lines(self._unwritten))
            self._unwritten.clear()
        self._read_again()
        with suppress(OSError):
            if self._path.stat().st_size > 2 * LARGEST:
                write_whole(self._path, _lines(self._exchanges), sync=False)
            _forget_old(self._path.parent)

    def clear(self) -> None:
        """Forgets what was said."""
        self._read_again()
        self._forget(tuple(self._exchanges))
        self._unwritten.clear()

    def forget_last(self) -> None:
        """Forget the last exchange that has an answer, and requests after it."""
        self._read_again()
        known = tuple(self._exchanges)
        last = max((place for place, turn in enumerate(known) if turn.summary), default=0)
        self._forget(known[last:])

    def _forget(self, turns: tuple[Turn, ...]) -> None:
        self._forgotten += turns  # not read again, though it may have to stay on disk for now
        for turn in turns:
            self._exchanges.remove(turn)
        self._empty()

    def _empty(self) -> None:
        """Take what is forgotten from the disk, and nothing that was said since."""
        with suppress(OSError):
            left = [turn for turn in _read(self._path) if turn not in self._forgotten]
            write_whole(self._path, _lines(left), sync=False)
            self._forgotten = ()

    def _read_again(self) -> None:
        """Read what is on disk, and after it what could not be written; without a file, what is here stays."""
        with suppress(OSError):
            found = [turn for turn in _read(self._path) if turn not in self._forgotten]
            self._exchanges.clear()
            self._exchanges.extend(found)
        for turn in self._unwritten:
            _place(self._exchanges, turn)


def open_session(
    home: Path, *, name: str | None = None, latest: bool = False, project: Path | None = None
) -> Session:
    """The session of that name, the one that was used last, or a new one. `project`: the latest of this directory
    alone (None: where the process is); what was said about another one means something else here.

    Raises ConfigurationError for a name that cannot be one, and when there is nothing to continue.
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
    """The session of that name; None when there is none with an exchange in it."""
    path = home / _FOLDER / f"{name}{_ENDING}"
    return Session(path) if _NAME.fullmatch(name) and path.is_file() else None


def tell_resumed(home: Path, result: FinalResult) -> None:
    """The conversation that a resumed task belongs to has its answer; nothing, where there is none. Blocking."""
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
    """Puts it in the place of its task's turn, or last."""
    for place, known in enumerate(turns):
        if known is turn or (turn.task_id and known.task_id == turn.task_id):
            turns[place] = turn
            return
    turns.append(turn)


def _read(path: Path) -> deque[Turn]:
    """What the file holds. Raises OSError."""
    turns: deque[Turn] = deque(maxlen=MOST_EXCHANGES)
    for line in path.read_bytes().split(b"\n"):  # a text's own line ends are not the file's
        with suppress(MessageUnreadable, ValidationError):
            if line:
                _place(turns, Turn.model_validate(fields_of(line)))
    return turns


def _lines(turns: Iterable[Turn]) -> bytes:
    """The latest exchanges that fit, one a line. A directory whose name is no UTF-8 comes back as it was."""
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
    """Append in one write, on a line of its own: a disk that was full may have cut the last one. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        if os.write(descriptor, b"\n" + lines) <= len(lines):
            raise OSError("the disk is full")
    finally:
        os.close(descriptor)


def latest_sessions(home: Path, most: int) -> list[Session]:
    """The conversations that were used last, the latest first. Blocking."""
    return [Session(path) for path in reversed(_by_age(home / _FOLDER)[-most:])]


def _by_age(folder: Path) -> list[Path]:
    """Oldest first. What another process forgets meanwhile is left out."""
    found: list[tuple[int, str, Path]] = []
    for path in folder.glob(f"[!.]*{_ENDING}") if folder.is_dir() else ():
        with suppress(FileNotFoundError):
            found.append((path.stat().st_mtime_ns, path.name, path))
    return [path for _, _, path in sorted(found)]


def _forget_old(folder: Path) -> None:
    for path in _by_age(folder)[:-MOST_KEPT]:
        path.unlink(missing_ok=True)
