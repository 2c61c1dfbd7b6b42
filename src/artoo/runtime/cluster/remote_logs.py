"""Read and list tasks' logs of other machines from the store, and verify their audit."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from artoo.auditor.chain import link_of
from artoo.auditor.files import lines_of
from artoo.auditor.layout import ANCHORS, audit_directory, chains_in
from artoo.auditor.verify import Verification, Witnessed, verify
from artoo.contracts.errors import ConfigurationError
from artoo.disk.whole import write_whole
from artoo.runtime.app.machine_name import machine_name
from artoo.store import stream
from artoo.store.address import StoreAddress
from artoo.store.opened import opened
from artoo.store.stream import Extent, KeptAnchor
from artoo.tasklog.layout import part_path, task_directory, tasks_directory
from artoo.tasklog.reader import TaskLogReader, TaskSummary, summary_in

if TYPE_CHECKING:
    from artoo.store.stream import Connection

FOLDER = "elsewhere"
"""The folder below the home for copies of the task logs of other machines. It may be deleted at any time."""
SHOWN = 5
ENDS = 1 << 20
"""Number of bytes that are read at the beginning and at the end of a log for a list of tasks."""
RUNNING_SECONDS = 60.0
"""Number of seconds without a new message after which a task without a result no longer counts as running."""


def find_log_elsewhere(home: Path, address: StoreAddress, task_id: str) -> TaskLogReader:
    """Return the log of a task of any machine, as far as it is in the store. The beginning of the id is enough if
    it is unique.

    Raises ConfigurationError if the store has no such task or several, or if the store cannot be reached.
    """
    with opened(address, "read") as connection:
        found = stream.tasks(connection, task_id, SHOWN + 1)
        exact = [each for each in found if each[1] == task_id] or found
        if len(exact) != 1:
            named = ", ".join(task for _, task in exact[:SHOWN])
            said = f"is the beginning of several tasks ({named} …)" if exact else "is no task of any machine"
            raise ConfigurationError(f"{task_id!r} {said}, neither here nor in the store {address}")
        machine, task = exact[0]
        place = home / FOLDER / machine
        _copied(connection, machine, stream.files(connection, machine, task=task), place)
        return TaskLogReader(task_directory(place, task))


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A task of another machine, in the state in which it is in the store."""

    machine: str
    summary: TaskSummary


def list_elsewhere(home: Path, address: StoreAddress, limit: int) -> list[Elsewhere]:
    """Return the latest tasks of the other machines, latest first. Raises ConfigurationError."""
    mine = machine_name(home)
    with opened(address, "read") as connection, tempfile.TemporaryDirectory(prefix="artoo-list-") as folder:
        found: list[Elsewhere] = []
        for task in stream.latest_tasks(connection, limit):
            extents = stream.extents(connection, task, mine)
            for machine in dict.fromkeys(each.machine for each in extents):
                logs = [each for each in extents if each.machine == machine]
                summary = _summary(connection, logs, task_directory(Path(folder), task))
                if summary is not None:
                    found.append(Elsewhere(machine, summary))
        return found


def _summary(connection: Connection, files: Sequence[Extent], place: Path) -> TaskSummary | None:
    """Summarise a log from its beginning and its end. If it has no result but grew in the last minute, the task
    counts as running."""
    parts = [each for each in files if PurePosixPath(each.file).suffix == ".jsonl"]
    if not parts:
        return None
    place.mkdir(parents=True, exist_ok=True)
    first, last = parts[0], parts[-1]
    head = stream.part(connection, first.machine, first.file, 0, ENDS)
    start = max(last.size - ENDS, len(head) if first is last else 0)
    tail = stream.part(connection, last.machine, last.file, start, last.size) if start < last.size else b""
    if first is not last or start > len(head):
        # each part may begin or end in the middle of a line
        head, tail = head[: head.rfind(b"\n") + 1], tail.partition(b"\n")[2] if start else tail
    log = part_path(place, 0)
    log.write_bytes(head + tail)
    summary = summary_in(place)
    log.unlink()
    if summary is None:
        return None
    running = summary.result is None and last.age < RUNNING_SECONDS
    return replace(summary, bytes=sum(each.size for each in files), running=running)


def verify_shared(home: Path, address: StoreAddress, found: Verification) -> list[str]:
    """Compare this machine's audit with the store, and verify the audits of other machines by their copies in the
    store.

    Problems are added to `found`. Returns one line of text per verified machine.
    """
    # A store that cannot be reached is reported as a problem, because nothing in it was verified.
    try:
        with opened(address, "read") as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return _verified(connection, home, found)
    except ConfigurationError as error:
        found.add(Path(str(address)), None, "missing", f"the store could not be asked: {error}")
        return []


def _verified(connection: Connection, home: Path, found: Verification) -> list[str]:
    mine = machine_name(home)
    _against_store(stream.anchors_of(connection, mine), audit_directory(home), "this machine", found)
    _against_witness(connection, found.witnessed, "this machine", found)
    lines: list[str] = []
    for machine in stream.machines(connection):
        if machine == mine:
            continue
        with tempfile.TemporaryDirectory(prefix="artoo-audit-") as folder:
            place = Path(folder)
            _copied(connection, machine, _all_files(connection, machine), place)
            theirs = verify(audit_directory(place), tasks_directory(place), copy=True)
            _against_store(stream.anchors_of(connection, machine), audit_directory(place), machine, theirs)
            _against_witness(connection, theirs.witnessed, machine, theirs)
        for each in theirs.problems:
            shown = each.file.relative_to(place) if each.file.is_relative_to(place) else each.file
            found.add(Path(f"{machine}:{shown}"), each.line, each.what, each.detail)
        records = sum(state.records for state in theirs.chains)
        lines.append(
            f"{machine}: {len(theirs.chains)} chains, {records} records, {theirs.task_logs} task log files"
        )
    return lines


def _against_store(kept: Sequence[KeptAnchor], directory: Path, who: str, found: Verification) -> None:
    """Compare the audit chains of a machine with the anchors of these chains in the store."""
    path = directory / ANCHORS
    there: dict[int, str] = {}
    for line, whole in lines_of(path) if path.exists() else ():
        link = link_of(line) if whole else None
        if link is not None:
            there[link.number] = link.hash
    last = max(there, default=0)
    lost = [each for each in kept if each.number > last]
    if lost:
        found.add(path, last + 1, "cut", f"the store knows {kept[-1].number} anchors of {who}, {last} are there")
    rewritten = next((each for each in kept if each.number in there and there[each.number] != each.hash), None)
    if rewritten is not None:
        what = f"it is not the anchor that the store has of {who}: chain {rewritten.chain} was rewritten"
        found.add(path, rewritten.number, "changed", what)
    chains = chains_in(directory)
    for chain, event in {each.chain: each.event for each in kept}.items():
        if event != "retired" and chain not in chains:
            count = max(each.count for each in kept if each.chain == chain)
            found.add(directory / f"audit-{chain}.jsonl", None, "missing", f"the store knows {count} records of it")


def _against_witness(connection: Connection, seen: Sequence[Witnessed], who: str, found: Verification) -> None:
    """Check that the store still has the anchors that another machine has recorded as a witness."""
    for machine in dict.fromkeys(each.machine for each in seen):
        kept = {each.number: each.hash for each in stream.anchors_of(connection, machine)}
        for each in seen:
            if each.machine == machine and kept.get(each.number) != each.hash:
                what = "changed" if each.number in kept else "removed"
                has = "another" if what == "changed" else "none"
                told = f"{who} saw anchor {each.number} of {machine}, and the store has {has}"
                found.add(Path("audit_anchors"), each.number, what, told)
                break


def _all_files(connection: Connection, machine: str) -> list[str]:
    tasks = [task for each, task in stream.tasks(connection, "", 1_000_000) if each == machine]
    return [
        *stream.files(connection, machine, task=None),
        *(file for task in tasks for file in stream.files(connection, machine, task=task)),
    ]


def _copied(connection: Connection, machine: str, files: Sequence[str], place: Path) -> None:
    """Copy all files of a machine from the store below `place`. Raises ConfigurationError for a file name that
    leads outside of `place`."""
    # Other machines can write to the store, so the file names in it are not trusted.
    if machine in ("", ".", "..") or "/" in machine or "\0" in machine:
        raise ConfigurationError(f"The store names a machine {machine!r}: that is no name of one.")
    for file in files:
        parts = PurePosixPath(file).parts
        if PurePosixPath(file).is_absolute() or ".." in parts or parts[:1] not in (("tasks",), ("audit",)):
            raise ConfigurationError(
                f"The store names a file {file!r} of machine {machine}: this is not the name of a log."
            )
        path = place.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, stream.content(connection, machine, file), sync=False)
