"""Upload this machine's task logs and audit chains to the store at intervals.

No task waits for the upload.

The local files are kept until the store has them. If the store cannot be reached, the upload is only delayed. If
the process dies, the next process sends what is missing. The order of sending keeps every state of the store
verifiable. Task logs come first, then the audit chains that refer to them, then the anchors that refer to the
chains. A task log that was deleted here is deleted in the store only after the audit chain that records the
deletion was sent.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from artoo.auditor.chain import link_of
from artoo.auditor.files import lines_of
from artoo.auditor.layout import ANCHORS, audit_directory
from artoo.contracts.errors import ConfigurationError
from artoo.runtime.app.machine_name import machine_name
from artoo.runtime.task.auditor import Auditing
from artoo.store import stream
from artoo.store.address import StoreAddress
from artoo.store.connecting import connect, explanation
from artoo.store.schema import check
from artoo.tasklog.layout import TASKS, tasks_directory

if TYPE_CHECKING:
    from artoo.store.stream import Connection

EVERY_SECONDS = 2.0
AWAY_SECONDS = 15.0
CLOSING_SECONDS = 5.0
LOOK_SECONDS = 600.0
"""Number of seconds between two searches for logs that were deleted in this home."""

logger = logging.getLogger(__name__)


class Sharing:
    """Uploads logs in one thread over one connection. `note` reports that a task's log has grown."""

    def __init__(self, home: Path, address: StoreAddress) -> None:
        self._home = home
        self._address = address
        self._auditing: Auditing | None = None
        self._unconfirmed: list[stream.KeptAnchor] = []
        self._ending = threading.Event()
        self._grown: set[str] = set()
        self._lock = threading.Lock()
        self._sizes: dict[str, int] | None = None
        self._unreadable: set[str] = set()
        """Files for which a read error has already been logged."""
        self._next_look = 0.0
        self._witnessed: dict[str, int] = {}
        self._away = False
        self._thread = threading.Thread(target=self._run, name="artoo-sharing", daemon=True)

    def start(self) -> None:
        """Start the thread. It first sends the data that earlier processes of this home could not send."""
        self._thread.start()

    def witness_through(self, auditing: Auditing) -> None:
        """Set the `auditing` that records the positions of the other machines' audit chains."""
        self._auditing = auditing

    def note(self, task: str) -> None:
        """Record that a task's log has grown. The call is fast and may be made in any thread."""
        with self._lock:
            self._grown.add(task)

    def close(self) -> None:
        """Send the remaining data for at most five seconds. The next start sends what is still missing."""
        self._ending.set()
        self._thread.join(CLOSING_SECONDS)

    def _run(self) -> None:
        connection: Connection | None = None
        try:
            last = False
            while not last:
                # One last pass runs after the end was requested.
                last = self._ending.is_set()
                try:
                    connection = connection if connection is not None else self._connected()
                    self._pass(connection)
                    self._told(None)
                except (psycopg.Error, ConfigurationError, OSError) as error:
                    if connection is not None:
                        with suppress(psycopg.Error):
                            connection.close()
                    connection = None
                    self._told(error)
                self._ending.wait(AWAY_SECONDS if self._away else EVERY_SECONDS)
        finally:
            if connection is not None:
                connection.close()

    def _connected(self) -> Connection:
        connection = connect(self._address)
        try:
            check(connection, self._address)
            self._machine = machine_name(self._home)
            stream.seen(connection, self._machine, version("artoo"))
            self._sizes = stream.sizes(connection, self._machine)
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._grown.update(_names(tasks_directory(self._home)))
        return connection

    def _told(self, error: Exception | None) -> None:
        if error is not None and not self._away:
            why = (
                str(error) if isinstance(error, ConfigurationError) else explanation(self._address, "reach", error)
            )
            logger.warning("logs stay on this machine until the store is back: %s", why)
        elif error is None and self._away:
            logger.warning("the store is back; what was logged meanwhile is in it")
        self._away = error is not None

    def _pass(self, connection: Connection) -> None:
        """Send all data that was added since the last pass."""
        # The sizes of the audit files are read before those of the task logs, which keeps the order that the
        # module's docstring describes.
        audit = audit_directory(self._home)
        sizes = {path: path.stat().st_size for path in sorted(audit.glob("*.jsonl"))}
        anchors = sizes.pop(audit / ANCHORS, 0)
        with self._lock:
            grown, self._grown = self._grown, set()
        try:
            for task in sorted(grown):
                for path in _files_of(tasks_directory(self._home) / task):
                    self._send(connection, path, None, task)
            for path, size in sizes.items():
                self._send(connection, path, size, None)
            self._send(connection, audit / ANCHORS, anchors, None)
            _send_anchors(connection, self._machine, audit / ANCHORS, anchors)
            self._witness(connection)
            self._forget(connection, sizes)
        except BaseException:
            with self._lock:
                self._grown |= grown
            raise

    def _send(self, connection: Connection, path: Path, most: int | None, task: str | None) -> None:
        """Send the next pieces of a file. Of a log, only whole lines are sent; other files (blobs, images) are sent
        whole."""
        name = path.relative_to(self._home).as_posix()
        sizes = self._sizes if self._sizes is not None else {}
        at = sizes.get(name, 0)
        try:
            with path.open("rb") as file:
                file.seek(at)
                end = os.fstat(file.fileno()).st_size if most is None else most
                while at < end and (piece := file.read(min(end - at, stream.PIECE_BYTES))):
                    if path.suffix == ".jsonl":
                        piece = _whole_lines(piece) or (piece if len(piece) == stream.PIECE_BYTES else b"")
                    if not piece:
                        return
                    sizes[name] = at = stream.put(connection, self._machine, name, at, piece, task)
                    file.seek(at)
        except FileNotFoundError:
            # the log was old and has been deleted meanwhile
            return
        except OSError as error:
            # An error with one file does not stop the upload of the others.
            if name not in self._unreadable:
                logger.warning("%s cannot be sent to the store: %s; see who may read it", path, error.strerror)
                self._unreadable.add(name)

    def _forget(self, connection: Connection, audit: Mapping[Path, int]) -> None:
        """Delete from the store those logs that artoo itself has deleted here (`log.keep_days`,
        `log.keep_megabytes`).

        `audit`: the audit chains that record the deletions, with the sizes that were already sent.
        """
        # If a user deletes a log by hand, the audit does not record it, so the store keeps the log.
        if self._sizes is None or time.monotonic() < self._next_look:
            return
        sent = {task for name in self._sizes if (task := _task_of(name)) is not None}
        gone = sent - set(_names(tasks_directory(self._home)))
        self._next_look = time.monotonic() + LOOK_SECONDS
        if gone:
            gone &= _forgotten_in(audit)
        for task in sorted(gone):
            stream.forget(connection, self._machine, task)
            for name in [name for name in self._sizes if _task_of(name) == task]:
                del self._sizes[name]

    def _witness(self, connection: Connection) -> None:
        """Record the latest audit anchors of the other machines in this machine's own audit chain."""
        if self._auditing is None:
            return
        for anchor in stream.latest_of_others(connection, self._machine):
            if self._witnessed.get(anchor.machine) == anchor.number:
                continue
            self._auditing.note_witness(anchor.machine, anchor.number, anchor.hash)
            self._witnessed[anchor.machine] = anchor.number
            self._unconfirmed.append(anchor)
        if chain := self._auditing.chain:
            for anchor in self._unconfirmed:
                stream.add_witness(connection, self._machine, chain, anchor)
            self._unconfirmed.clear()


def _send_anchors(connection: Connection, machine: str, path: Path, most: int) -> None:
    """Send the anchors in the first `most` bytes of a file. Later anchors refer to parts of chains that have not
    been sent yet."""
    if not path.exists():
        return
    known = stream.anchors_kept(connection, machine)
    found: list[stream.KeptAnchor] = []
    for line, whole in lines_of(path):
        most -= len(line) + 1
        if most < 0:
            break
        link = link_of(line) if whole else None
        if link is None or link.number <= known:
            continue
        fields = link.fields()
        count = fields.get("count")
        found.append(
            stream.KeptAnchor(
                machine,
                link.number,
                link.hash,
                str(fields.get("chain")),
                str(fields.get("event")),
                count if isinstance(count, int) else 0,
                str(fields.get("head")),
            )
        )
    stream.add_anchors(connection, found)


def _whole_lines(piece: bytes) -> bytes:
    return piece[: piece.rfind(b"\n") + 1]


def _task_of(name: str) -> str | None:
    """Return the task whose log contains a file of the store. Return None if the file belongs to the audit."""
    folder, _, rest = name.partition("/")
    return rest.partition("/")[0] if folder == TASKS else None


def _forgotten_in(audit: Mapping[Path, int]) -> set[str]:
    """Return the tasks whose logs artoo has deleted, according to these audit files up to the sizes that were
    already sent."""
    found: set[str] = set()
    for path, most in audit.items():
        for line, whole in lines_of(path):
            most -= len(line) + 1
            if most < 0 or not whole:
                break
            link = link_of(line) if b"log_forgotten" in line else None
            if link is not None and link.record.startswith(b'{"type":"log_forgotten"'):
                found.add(str(link.fields().get("task")))
    return found


def _names(directory: Path) -> list[str]:
    if not directory.is_dir():
        return []
    return [entry.name for entry in os.scandir(directory) if entry.is_dir() and not entry.name.startswith(".")]


def _files_of(directory: Path) -> list[Path]:
    """Return the files that the lines of a log refer to, followed by the log files."""
    beside = [path for folder in ("blobs", "images") for path in sorted((directory / folder).glob("*"))]
    return [*(path for path in beside if not path.suffix), *sorted(directory.glob("log*.jsonl"))]
