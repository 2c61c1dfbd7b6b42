"""The bundle format of a change set for another machine, with its limits on bytes and paths.

In this format, a change set can be reviewed and applied on another machine.

    one line of JSON: the manifest ─┬─ the contents of its files, one after another, in the manifest's order

Paths are relative to the project or to the output folder. A bundle contains the types of paths, contents, modes,
and the digests of files that are replaced. It contains no owners, inodes or attributes. The other machine unpacks
the bundle into a workspace. The result is the same as if the task had worked there. For each path, it compares the
state before the task with its own file. If they are equal, the base in the workspace is the local file. The new
file gets the local owner and mode, except for the bits of the mode that the task has changed. If they are not
equal, the base is the state before the task, so that settlement reports a conflict as usual.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from artoo.contracts.changes import Node, path_bytes, printable_path
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import MIB, Roots
from artoo.workspace.changes.base import Base, append_lines
from artoo.workspace.changes.change_set import ChangeSet, read_change_set
from artoo.workspace.changes.effect import Effect
from artoo.workspace.directory import WorkspaceDirectory, make_upper
from artoo.workspace.files.walker import Walker
from artoo.workspace.fs.names import printable
from artoo.workspace.fs.stat import FILE_FLAGS, NodeState
from artoo.workspace.git.layout import PathPurpose, part_of
from artoo.workspace.settlement.service import Settlement

MOST_BYTES = 64 << 20
"""Maximum number of bytes of the contents in one bundle, because the bundle passes through the database of the
store."""
MOST_PATHS = 20_000
MOST_MANIFEST = 32 << 20
"""Maximum number of bytes of the line with the manifest."""
_CHUNK = 1 << 20
_LATEST = (1 << 63) - 1
"""The latest modification time that file systems can store, in nanoseconds since the epoch."""

Where = Literal["project", "workspace"]


class StaysHere(SandboxError):
    """Raised if a change set cannot be used on another machine, or is too large for the store. The message says
    why."""


class PathState(BaseModel):
    """The state of one path. `mode`: the permission bits. `size`: in bytes. `target`: the target of a link,
    printable."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    node: Node
    mode: int = Field(default=0, ge=0, le=0o7777)
    size: int = Field(default=0, ge=0)
    sha256: str | None = None
    target: str = ""
    mtime_ns: int = Field(default=0, ge=-_LATEST, le=_LATEST)


class Item(BaseModel):
    """One path that was changed (printable, relative to `where`), with its state before the task and after it. None
    means that the path does not exist."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    where: Where
    path: str = Field(min_length=1)
    was: PathState | None
    now: PathState | None


class BundleManifest(BaseModel):
    """All items of a change set, ordered by path within each place."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    format: Literal[1] = 1
    items: tuple[Item, ...]

    @property
    def contents(self) -> tuple[Item, ...]:
        """Return the items whose contents follow the manifest, in their order."""
        return tuple(item for item in self.items if item.now is not None and item.now.node is Node.FILE)


# --- writing ------------------------------------------------------------------------------------------------------

_CARRIED = (Node.FILE, Node.DIRECTORY, Node.LINK)


def pack(settlement: Settlement, reviewed: ChangeSet, into: BinaryIO) -> BundleManifest:
    """Write the bundle of the change set that was reviewed just before. Blocking.

    Git's own files are packed as plain files. On the other machine, git reads them when the change set is settled.
    Raises StaysHere if the change set cannot be sent to another machine. Raises SandboxError if it cannot be read,
    and OSError if the disk is full.
    """
    if reviewed.all_conflicts:
        first = reviewed.all_conflicts[0]
        raise StaysHere(f"it conflicts with files of the machine that made it ({first.path}: {first.reason})")
    roots = settlement.directory.record().roots
    raw = read_change_set(settlement.directory, settlement.artoo_home)
    packed = [(effect, _item(effect, roots)) for effect in raw.effects if not _is_local(effect)]
    if len(packed) > MOST_PATHS:
        raise StaysHere(f"it changes {len(packed):,} paths, and at most {MOST_PATHS:,} travel")
    packed.sort(key=lambda one: (one[1].where, path_bytes(one[1].path)))
    manifest = BundleManifest(items=tuple(item for _, item in packed))
    total = sum(item.now.size for item in manifest.contents if item.now is not None)
    if total > MOST_BYTES:
        raise StaysHere(f"it writes {total / MIB:,.1f} MiB, and at most {MOST_BYTES / MIB:,.0f} MiB travel")
    into.write(manifest.model_dump_json().encode() + b"\n")
    for effect, item in packed:
        if item.now is not None and item.now.node is Node.FILE:
            _copy(effect, item.now.size, into)
    return manifest


def _is_local(effect: Effect) -> bool:
    """Return whether a path is a reflog or a scratch file of git, which belongs to one clone only."""
    _, found, inner = os.fsdecode(effect.path).partition("/.git/")
    if not found:
        return False
    if inner == "logs" or inner.startswith("logs/"):
        return True
    state = effect.after or effect.before
    plain = state is not None and state.node is Node.FILE and not inner.startswith("modules/")
    return plain and part_of(inner) is PathPurpose.SCRATCH


def _item(effect: Effect, roots: Roots) -> Item:
    """Describe one change. Raises StaysHere if the change has no meaning for the files of another machine."""
    where, relative = _placed(effect.path, roots, effect.shown)
    for state in (effect.before, effect.after):
        if state is not None and state.node not in _CARRIED:
            raise StaysHere(f"{effect.shown} is a {state.node.value}, which only its own machine has")
    if effect.after is not None:
        _require_plain(effect.before, effect.after, effect.shown)
    was = None if effect.before is None else _known(effect.before, effect.before_digest)
    now = None if effect.after is None else _known(effect.after, effect.digest)
    return Item(where=where, path=relative, was=was, now=now)


def _placed(path: bytes, roots: Roots, shown: str) -> tuple[Where, str]:
    """Return the project or the output folder that contains the path (the inner one), and the path relative to
    it."""
    places: list[tuple[Where, Path]] = [("project", roots.project), ("workspace", roots.workspace)]
    for where, root in sorted(places, key=lambda one: -len(one[1].parts)):
        above = os.fsencode(root) + b"/"
        if path.startswith(above):
            return where, printable_path(path.removeprefix(above))
    raise StaysHere(f"it changes {shown}, outside of project and output folder")


def _require_plain(before: NodeState | None, after: NodeState, shown: str) -> None:
    """Raise StaysHere if the task has given the path another owner or other attributes."""
    owners = {os.geteuid()} if before is None else {os.geteuid(), before.uid}
    if after.uid not in owners:
        raise StaysHere(f"{shown} gets another owner")
    if after.xattrs != (() if before is None else before.xattrs):
        raise StaysHere(f"{shown} gets other attributes")


def _known(state: NodeState, sha256: str | None) -> PathState:
    return PathState(
        node=state.node,
        mode=0 if state.node is Node.LINK else state.mode,
        size=state.size,
        sha256=sha256 if state.node is Node.FILE else None,
        target=printable_path(state.target) if state.target else "",
        mtime_ns=0 if state.is_directory else state.mtime_ns,
    )


def _copy(effect: Effect, size: int, into: BinaryIO) -> None:
    """Copy the content from the workspace. It must have exactly `size` bytes."""
    try:
        with open(os.open(effect.source, FILE_FLAGS), "rb") as file:
            written = sum(into.write(piece) for piece in iter(lambda: file.read(_CHUNK), b""))
    except PermissionError as error:
        raise SandboxError(f"{effect.shown} cannot be read: {error.strerror}") from error
    if written != size:
        raise SandboxError(f"{effect.shown} changed while it was packed; try again")


# --- reading ------------------------------------------------------------------------------------------------------

_DEEPEST = 128
"""Maximum depth of directories. No real project needs more, and the time to make nested directories grows with the
square of the depth."""


def unpack(
    source: BinaryIO,
    directory: WorkspaceDirectory,
    roots: Roots,
    covered: tuple[Path, ...],
    *,
    to_look: bool = True,
) -> None:
    """Replace the contents of the workspace by those of the bundle. The caller must hold its lock. Blocking.

    `covered`: the real directories that get an upper directory. They contain the project and the output folder.
    `to_look`: true to mark the workspace as unpacked only for a review. Raises SandboxError if the bundle cannot be
    read or has paths outside of these directories. Raises OSError if the disk is full. After an error the workspace
    is empty.
    """
    manifest = _manifest_of(source)
    _empty(directory)
    try:
        laying = _Laying(directory, roots, covered)
        for item in manifest.items:
            laying.lay(item, source)
        laying.end(source)
        append_lines(directory.base_file, laying.base_lines())
        if to_look:
            directory.brought.touch(mode=0o600)
        directory.make("bubblewrap", roots, covered)
    except BaseException:
        _empty(directory)
        raise


def _manifest_of(source: BinaryIO) -> BundleManifest:
    line = source.readline(MOST_MANIFEST + 1)
    try:
        return BundleManifest.model_validate_json(line)
    except ValidationError as error:
        raise SandboxError(f"the bundle cannot be read ({error}); was it made by a newer artoo?") from error


def _empty(directory: WorkspaceDirectory) -> None:
    """Delete everything in a workspace except its lock file. The caller holds the lock. The record is deleted
    first."""
    (directory.base / "workspace.json").unlink(missing_ok=True)
    directory.base.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.remove_rest()


class _Laying:
    """Writes into the upper directories of one workspace, which no other process may use meanwhile."""

    def __init__(self, directory: WorkspaceDirectory, roots: Roots, covered: tuple[Path, ...]) -> None:
        self._bases: list[Base] = []
        self._absent: list[str] = []
        self._places = {"project": roots.project, "workspace": roots.workspace}
        self._tops = {root: directory.upper(number) for number, root in enumerate(covered)}
        self._undressed: list[tuple[Path, Path | None, int | None, int | None]] = []
        for root, upper in self._tops.items():
            make_upper(upper, root)
            (upper.parent / "work").mkdir(mode=0o700, exist_ok=True)

    def lay(self, item: Item, source: BinaryIO) -> None:
        """Write the next path of the manifest. `source` is positioned at the content of the path. Raises
        SandboxError."""
        root, relative = self._find(item)
        path, inner = root / relative, self._tops[root] / relative
        real, digest = _here(path)
        same = _is(real, digest, item.was)
        if item.was is None:
            self._absent.append(printable(path))
        else:
            self._bases.append(_base(path, item.was, real, same=same))
        if item.now is None:
            if not self._is_gone_already(root, relative):
                self._make_parents(root, relative)
                # A character device 0/0 is a whiteout, by which the overlay hides the path.
                os.mknod(inner, stat.S_IFCHR)
            return
        self._make_parents(root, relative)
        _put(inner, item.now, source)
        alike = (same or item.was is None or _is(real, digest, item.now)) and real is not None
        if alike and real is not None and real.node is item.now.node:
            changed = 0 if item.was is None else item.was.mode ^ item.now.mode
            mode = (real.mode & ~changed) | (item.now.mode & changed)
            self._undressed.append((inner, path, mode, item.now.mtime_ns))
        else:
            self._undressed.append((inner, None, item.now.mode, item.now.mtime_ns))

    def base_lines(self) -> list[bytes]:
        """Return the states of all paths before the task, as lines of `base.jsonl`."""
        absent = json.dumps({"looked_ns": 0, "absent": self._absent}).encode()
        return [*(base.model_dump_json().encode() for base in self._bases), absent]

    def end(self, source: BinaryIO) -> None:
        """Set owners, modes and times. The deepest paths come first, because directories may become read-only.

        Raises SandboxError if the bundle has more bytes than its manifest describes.
        """
        if source.read(1):
            raise SandboxError("the bundle holds more than it says; it was not made by this artoo")
        for inner, like, mode, mtime_ns in reversed(self._undressed):
            if like is not None:
                _look_like(inner, like)
            if not inner.is_symlink():
                if mode is not None:
                    inner.chmod(mode)
                if mtime_ns:
                    os.utime(inner, ns=(mtime_ns, mtime_ns))

    def _find(self, item: Item) -> tuple[Path, str]:
        """Return the covered directory that contains an item, and the path of the item relative to it. Raises
        SandboxError."""
        raw = path_bytes(item.path)
        if any(part in (b"", b".", b"..") or b"\0" in part for part in raw.split(b"/")):
            raise SandboxError(f"the bundle names {item.path!r}, which leads out of its place")
        if raw.count(b"/") > _DEEPEST:
            raise SandboxError(f"{item.path[:80]}… nests deeper than {_DEEPEST} directories: refused")
        path = self._places[item.where] / os.fsdecode(raw)
        for root in self._tops:
            if path.is_relative_to(root):
                return root, str(path.relative_to(root))
        raise SandboxError(f"the bundle changes {printable(path)}, which no workspace covers here")

    def _is_gone_already(self, root: Path, relative: str) -> bool:
        """Return whether a parent directory is deleted, replaced or missing, so that no whiteout is needed."""
        for above in _above(relative):
            inner = self._tops[root] / above
            if os.path.lexists(inner) and not _is_directory(inner):
                return True
            if not os.path.lexists(inner) and _here(root / above)[0] is None:
                return True
        return False

    def _make_parents(self, root: Path, relative: str) -> None:
        """Make the parent directories of a path, with the metadata of the local ones. Raises SandboxError."""
        for above in _above(relative):
            inner = self._tops[root] / above
            if not os.path.lexists(inner):
                inner.mkdir(mode=0o755)
                like, _ = _here(root / above)
                if like is not None and like.is_directory:
                    self._undressed.append((inner, root / above, None, None))
                else:
                    # This was a directory when the task ran. If it is anything else here, that is a conflict.
                    known = PathState(node=Node.DIRECTORY, mode=0o755)
                    self._bases.append(_base(root / above, known, like, same=False))
            elif not _is_directory(inner):
                raise SandboxError(f"the bundle puts {printable(root / relative)} below a file or a link: refused")


def _above(relative: str) -> list[str]:
    """Return the directories above a path, outermost first."""
    parts = relative.split("/")[:-1]
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _here(path: Path) -> tuple[NodeState | None, str | None]:
    """Return the state of a local path, without following links. If it is a file that can be read, also return its
    sha256."""
    with Walker() as walker:
        state = walker.read(str(path))
        return state, None if state is None else walker.digest(str(path), state)


def _is(real: NodeState | None, digest: str | None, known: PathState | None) -> bool:
    """Return whether the local path has the state `known`."""
    if real is None or known is None or real.node is not known.node:
        return False
    if real.node is Node.LINK:
        return printable_path(real.target) == known.target
    return real.is_directory or (digest is not None and digest == known.sha256)


def _base(path: Path, was: PathState, real: NodeState | None, *, same: bool) -> Base:
    if not same or real is None:
        found = real or NodeState(was.node, was.mode, os.geteuid(), os.getegid(), mtime_ns=was.mtime_ns)
        real = found._replace(node=was.node, size=was.size, target=path_bytes(was.target), inode=0)
    return Base(path=printable(path), was=real, sha256=was.sha256)


def _put(inner: Path, now: PathState, source: BinaryIO) -> None:
    if now.node is Node.DIRECTORY:
        inner.mkdir(mode=0o755, exist_ok=True)
    elif now.node is Node.LINK:
        target = path_bytes(now.target)
        if not target or b"\0" in target:
            raise SandboxError(f"the bundle makes a link to {now.target!r}, which is no path")
        os.symlink(target, os.fsencode(inner))
    else:
        with inner.open("xb") as file:
            left = now.size
            while left and (piece := source.read(min(left, _CHUNK))):
                left -= file.write(piece)
        if left:
            raise SandboxError("the bundle holds less than it says; it was not sent whole")


def _look_like(inner: Path, real: Path) -> None:
    """Copy owner, mode, attributes and time from the file of the user. If this user may not change the owner, it
    stays."""
    seen = real.lstat()
    with suppress(PermissionError):
        os.chown(inner, seen.st_uid, seen.st_gid, follow_symlinks=False)
    shutil.copystat(real, inner, follow_symlinks=False)
