"""Plain copies of the user's directories without overlay, with limits on paths and bytes.

A copy is made when the sandbox starts. Before each turn, files that the user has changed and the task has not are
copied again. Contents are cloned if the file system supports it. Paths beyond the limits are not copied, but
reported.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.changes import Node
from artoo.contracts.errors import SandboxError
from artoo.ports.workspace import MIB
from artoo.sandbox.limits.usage import disk_usage
from artoo.sandbox.reading.programs import find_program
from artoo.sandbox.remove_tree import remove_tree
from artoo.workspace.changes.base import BaseEntry, BaseManifest, Key, stamp_of
from artoo.workspace.commit.dirfd_ops import copy, set_metadata
from artoo.workspace.directory import Covered, WorkspaceDirectory
from artoo.workspace.files.beneath import open_beneath
from artoo.workspace.fs.names import printable
from artoo.workspace.fs.stat import (
    DIRECTORY_FLAGS,
    NodeState,
    closing_descriptor,
    glance,
    opened,
    read_state,
    state_of,
)

_COPIED = (Node.FILE, Node.LINK)
_TEMPORARY = ".artoo-copy"
_MOST_REPORTED = 20


@dataclass(frozen=True, slots=True)
class CopyLimits:
    """The maximum amounts that are copied for one workspace."""

    paths: int = 50_000
    bytes: int = 2_048 * MIB


@dataclass(slots=True)
class Copier:
    """Updates copies from the user's files, except paths that the task has changed. Blocking; raises OSError.

    `hidden` decides which absolute paths are never copied. `left_out`: the printable paths that were not copied
    because of the limits.
    """

    manifest: BaseManifest
    hidden: Callable[[str], bool]
    limits: CopyLimits = field(default_factory=CopyLimits)
    left_out: set[str] = field(default_factory=set[str])
    _paths: int = 0
    _bytes: int = 0

    def follow(self, covered: Iterable[Covered]) -> None:
        """Update the copies to the user's present files."""
        self._paths = self._bytes = 0
        self.left_out.clear()
        before = dict(self.manifest.entries)
        for one in covered:
            one.place.mkdir(mode=0o700, parents=True, exist_ok=True)
            with opened(one.root) as root, opened(one.place) as place:
                self._follow_tree(one, root, place)
        if self.manifest.entries != before:
            self.manifest.save()

    def notes(self) -> tuple[str, ...]:
        """Return a note about paths that are missing in the copies, for model and user."""
        if not self.left_out:
            return ()
        listed = sorted(self.left_out)
        more = f" and {len(listed) - _MOST_REPORTED} more" if len(listed) > _MOST_REPORTED else ""
        return (
            f"the workspace is a copy of at most {self.limits.paths:,} paths and {self.limits.bytes // MIB:,} MiB; "
            f"missing in it: {', '.join(listed[:_MOST_REPORTED])}{more}",
        )

    def _follow_tree(self, one: Covered, root: int, place: int) -> None:
        if (one.number, "") not in self.manifest.entries:
            state = read_state(root, ".")
            assert state is not None
            os.fchmod(place, state.mode | 0o700)
            self._copied((one.number, ""), state, place, ".")
        seen, listed = set[str](), set[str]()
        waiting = deque([""])  # breadth first, so that only deep paths are left out because of the limits
        while waiting:
            relative = waiting.popleft()
            with ExitStack() as held:
                try:
                    source, target = (
                        held.enter_context(closing_descriptor(open_beneath(above, relative, DIRECTORY_FLAGS)))
                        for above in (root, place)
                    )
                # the path cannot be read or was deleted meanwhile, or the task has removed, replaced or locked it
                except OSError:
                    continue
                listed.add(relative)
                for name in sorted(os.listdir(source), key=os.fsencode):
                    inner = f"{relative}/{name}".lstrip("/")
                    seen.add(inner)
                    if self._follow(one, inner, source, target, name):
                        waiting.append(inner)
        self._remove(one.number, place, seen, listed)

    def _follow(self, one: Covered, relative: str, source: int, target: int, name: str) -> bool:
        """Copy a path if it is new or changed. Returns True for a directory whose entries must be processed."""
        path = f"{one.root}/{relative}"
        state = None if self.hidden(path) else glance(source, name)
        if state is None or not (state.is_directory or state.node in _COPIED):
            return False
        if self._paths + 1 > self.limits.paths or self._bytes + state.size > self.limits.bytes:
            self.left_out.add(printable(path))
            return False
        self._paths += 1
        self._bytes += state.size
        key = (one.number, relative)
        entry, have = self.manifest.entries.get(key), glance(target, name)
        if state.is_directory and have is not None:
            return have.is_directory
        if entry is not None and entry.source == stamp_of(state):
            return False
        # The copy differs from the one that artoo made, which means that the task has changed the path.
        if (entry is None) != (have is None) or (entry and have and entry.copy != stamp_of(have)):
            # the task made, changed or deleted the path, so its version stays, and settlement compares the versions
            return False
        if state.is_directory:
            os.mkdir(name, 0o700, dir_fd=target)
            set_metadata((target, name), _as_ours(state)._replace(mode=state.mode | 0o700), times=False)
        elif not _copy_whole(source, target, name, state):
            return False
        self._copied(key, state, target, name)
        return state.is_directory

    def _copied(self, key: Key, source: NodeState, target: int, name: str) -> None:
        made = glance(target, name)
        assert made is not None
        self.manifest.entries[key] = BaseEntry(stamp_of(source), stamp_of(made))

    def _remove(self, number: int, place: int, seen: set[str], listed: set[str]) -> None:
        """Delete from the copy the paths that the user deleted and the task has not changed.

        `seen`: the paths that the user has. `listed`: the directories whose entries were read.
        """
        gone: dict[str, None] = {}
        for path in sorted(path for at, path in self.manifest.entries if at == number and path):
            above = path.rpartition("/")[0]
            if above in gone or (above in listed and path not in seen):
                gone[path] = None
        for path in reversed(gone):
            above, _, name = path.rpartition("/")
            with (
                suppress(OSError),  # the task has changed a parent of it or added entries to it
                closing_descriptor(open_beneath(place, above, DIRECTORY_FLAGS)) as target,
            ):
                state = glance(target, name)
                if state is None or self.manifest.is_changed((number, path), state):
                    continue
                (os.rmdir if state.is_directory else os.unlink)(name, dir_fd=target)
                del self.manifest.entries[number, path]


def _copy_whole(source: int, target: int, name: str, state: NodeState) -> bool:
    """Copy a file or link. Returns False if this user may not read it, because then commands may not read it
    either."""
    with suppress(FileNotFoundError):
        os.unlink(_TEMPORARY, dir_fd=target)
    try:
        copy((source, name), _as_ours(read_state(source, name) or state), (target, _TEMPORARY))
    except PermissionError:
        with suppress(FileNotFoundError):
            os.unlink(_TEMPORARY, dir_fd=target)
        return False
    os.rename(_TEMPORARY, name, src_dir_fd=target, dst_dir_fd=target)
    return True


def _as_ours(state: NodeState) -> NodeState:
    """Return the state with this user as owner. If this process is root, the owner stays the same, because only
    root may set another one."""
    return state if os.geteuid() == 0 else state._replace(uid=os.geteuid(), gid=os.getegid())


MOST_BYTES, MOST_PATHS = 1_024 * MIB, 50_000
"""The maximum size of a workspace that may be copied."""

_CHANGED = BaseEntry((), ())
"""The entry of a copied path that the task has changed or deleted. No path has this stamp."""


def copy_workspace(source: WorkspaceDirectory, target: WorkspaceDirectory) -> None:
    """Copy a workspace, and replace `target`. The record is written last. Blocking.

    Raises SandboxError if the workspace is too large or cannot be copied. Then nothing is left at `target`.
    """
    remove_tree(target.base)
    try:
        _copy(source, target)
    except OSError as error:
        raise SandboxError(f"the workspace cannot be copied: {error.strerror}; free space") from error
    finally:
        if not target.exists:
            with suppress(OSError):
                remove_tree(target.base)


def _copy(source: WorkspaceDirectory, target: WorkspaceDirectory) -> None:
    covered = source.covered()
    size, paths = disk_usage((*(one.place for one in covered), source.scratch), MOST_BYTES, MOST_PATHS)
    if size > MOST_BYTES or paths > MOST_PATHS:
        raise SandboxError("the workspace is too large to be copied, so there is no second solution of it")
    target.output.mkdir(mode=0o700, parents=True)
    for one in covered:
        place = target.base / one.place.relative_to(source.base)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _copy_tree(one.place, place)
        if one.place == source.upper(one.number):
            target.work(one.number).mkdir(mode=0o700)
    _copy_tree(source.scratch, target.scratch)
    if source.base_file.exists():
        # copied with its mtime, which is the time of the last comparison
        shutil.copy2(source.base_file, target.base_file)
    if source.manifest.exists():
        _copy_manifest(covered, source, target)
    target.write_record(source.record().model_copy(update={"task_id": target.task_id}))


def _copy_tree(source: Path, target: Path) -> None:
    """Copy a tree, including the whiteouts and attributes that overlayfs needs."""
    command = (find_program("cp") or "cp", "-a", "--", source, target)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, env={"LC_ALL": "C"})
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise SandboxError(f"the workspace cannot be copied: {said[-1] if said else 'cp failed'}")


def _copy_manifest(covered: tuple[Covered, ...], source: WorkspaceDirectory, target: WorkspaceDirectory) -> None:
    """Write the new copies' manifest. Paths that the task has not changed get the stamps of the new copies."""
    old, new = BaseManifest.read(source.manifest), BaseManifest(target.manifest)
    places = {one.number: (one.place, target.copy(one.number)) for one in covered}
    for key, entry in old.entries.items():
        was, now = (_state(place, key[1]) for place in places[key[0]])
        same = was is not None and now is not None and not old.is_changed(key, was)
        new.entries[key] = BaseEntry(entry.source, stamp_of(now)) if same and now is not None else _CHANGED
    new.save()


def _state(place: Path, path: str) -> NodeState | None:
    try:
        return state_of(os.lstat(place / path))
    except OSError:  # the task has deleted the path, or replaced a directory above it
        return None
