"""A project, a workspace's version of it, and the effects that lead from one to the other."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

from artoo.contracts.changes import ApplyReport, Node, printable_path
from artoo.workspace.changes.effect import Effect
from artoo.workspace.commit import apply
from artoo.workspace.fs.stat import NodeState, read_state
from plain_user import PLAIN_USER

TASK = "20261128-task"
Tree = dict[str, tuple[object, ...]]


class CommitWorld:
    """`home/project` is the user's, `home/.artoo` artoo's; `made` is a copy of the project that a task changes."""

    def __init__(self, base: Path, artoo_home: Path | None = None) -> None:
        self.base = base
        self.project = base / "home" / "project"
        self.artoo_home = artoo_home or base / "home" / ".artoo"
        self.undo_home = self.artoo_home / "undo"
        self.made = self.artoo_home / "made"

    def begin(self, fill: Callable[[Path], object] = lambda _: None) -> None:
        """Make the project."""
        self.project.mkdir(parents=True)
        self.artoo_home.mkdir(parents=True, exist_ok=True)
        fill(self.project)

    def work(self, change: Callable[[Path], object]) -> list[Effect]:
        """Change a copy of the project, and return the effects of that."""
        if self.made.exists():
            remove(self.made)
        copy_tree(self.project, self.made)
        change(self.made)
        return effects_between(self.project, self.made)

    def apply(self, change: Callable[[Path], object], task: str = TASK, note: str = "") -> ApplyReport:
        """Let a task change the project, and apply that."""
        return apply(self.work(change), task_id=task, undo_home=self.undo_home, note=note)

    def apply_effects(self, effects: list[Effect], *, share: bool = False) -> ApplyReport:
        return apply(effects, task_id=TASK, undo_home=self.undo_home, share=share)

    def tree(self, *, times: bool = False, inodes: bool = False) -> Tree:
        return tree(self.project, times=times, inodes=inodes)

    def records(self) -> list[str]:
        """Return the files that artoo keeps, but for the lock."""
        found = self.undo_home.rglob("*") if self.undo_home.exists() else ()
        return sorted(str(one.relative_to(self.undo_home)) for one in found if one.is_file() and one.name != "lock")


def copy_tree(source: Path, target: Path) -> None:
    """Copy a tree with modes, owners, times and hard links."""
    links: dict[int, str] = {}

    def copy_one(one: str, other: str) -> None:
        seen = os.lstat(one)
        if seen.st_nlink > 1 and not stat.S_ISLNK(seen.st_mode) and seen.st_ino in links:
            os.link(links[seen.st_ino], other)
            return
        if stat.S_ISFIFO(seen.st_mode) or stat.S_ISSOCK(seen.st_mode):
            os.mknod(other, seen.st_mode)
            os.utime(other, ns=(seen.st_atime_ns, seen.st_mtime_ns))
            return
        if locked := not stat.S_ISLNK(seen.st_mode) and not os.access(one, os.R_OK):
            os.chmod(one, 0o600)
        shutil.copy2(one, other, follow_symlinks=False)
        for path in (one, other) if locked else ():
            os.chmod(path, stat.S_IMODE(seen.st_mode))
        with suppress(PermissionError):
            os.chown(other, seen.st_uid, seen.st_gid, follow_symlinks=False)
        links[seen.st_ino] = other

    shutil.copytree(source, target, symlinks=True, copy_function=copy_one)


def effects_between(project: Path, made: Path) -> list[Effect]:
    """Return what leads from one tree to the other, in path order."""
    before, after = _states(project), _states(made)
    effects: list[Effect] = []
    for relative in sorted(before.keys() | after.keys()):
        old, new = before.get(relative), after.get(relative)
        both_directories = old is not None and new is not None and old[0].is_directory and new[0].is_directory
        same_content = old is not None and new is not None and _content(old) == _content(new)
        if same_content and old is not None and new is not None:
            same_time = both_directories or old[0].mtime_ns == new[0].mtime_ns
            if old[0].same_metadata(new[0]) and same_time:
                continue
        path = os.fsencode(project) + b"/" + relative if relative else os.fsencode(project)
        in_place = same_content and old is not None and (both_directories or old[0].node is not Node.LINK)
        effects.append(
            Effect(
                root=os.fsencode(project),
                path=path,
                shown=printable_path(path),
                before=None if old is None else old[0],
                after=None if new is None else new[0],
                source=b"" if new is None else os.fsencode(made) + (b"/" + relative if relative else b""),
                in_place=in_place,
                digest=None if new is None else new[1],
                before_digest=None if old is None else old[1],
            )
        )
    return effects


def _content(one: tuple[NodeState, str | None]) -> tuple[object, ...]:
    return one[0].node, one[0].target, one[1]


def _states(root: Path) -> dict[bytes, tuple[NodeState, str | None]]:
    found: dict[bytes, tuple[NodeState, str | None]] = {}
    left = [b""]
    while left:
        relative = left.pop()
        path = os.path.join(os.fsencode(root), relative) if relative else os.fsencode(root)
        directory = os.open(os.path.dirname(path), os.O_RDONLY)
        try:
            state = read_state(directory, os.fsdecode(os.path.basename(path)))
        finally:
            os.close(directory)
        assert state is not None
        digest = None
        if state.node is Node.FILE:
            try:
                digest = hashlib.sha256(Path(os.fsdecode(path)).read_bytes()).hexdigest()
            except PermissionError:
                digest = None
        found[relative] = (state, digest)
        if state.is_directory:
            left += [os.path.join(relative, name) if relative else name for name in os.listdir(path)]
    return found


def tree(root: Path, *, times: bool = False, inodes: bool = False) -> Tree:
    """Return every path with kind, mode, owner, content and attributes; for files times and inodes if asked."""
    found: Tree = {}
    for relative, (state, digest) in _states(root).items():
        entry: tuple[object, ...] = (
            state.node,
            state.mode,
            state.uid,
            state.gid,
            state.target,
            digest,
            state.xattrs,
        )
        if not state.is_directory and times:
            entry += (state.mtime_ns,)
        if not state.is_directory and inodes:
            entry += (state.inode, state.links)
        found[os.fsdecode(relative)] = entry
    return found


def write(path: Path, text: str) -> None:
    """Save as most editors do: a new file gets the name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}~")
    beside.write_text(text)
    beside.replace(path)


def texts(directory: Path, names: Iterable[str]) -> list[str]:
    return [(directory / name).read_text() for name in names]


def remove(path: Path) -> None:
    """Remove a tree whatever its modes."""
    for directory, _, _ in os.walk(path):
        os.chmod(directory, 0o700)
    shutil.rmtree(path)


@contextmanager
def plain_world() -> Generator[CommitWorld]:
    """A world of a plain user's, in a directory that the user can reach."""
    place = Path(tempfile.mkdtemp(prefix="artoo-plain-")).resolve()
    world = CommitWorld(place / "base")
    world.begin()
    if os.geteuid() == 0:
        for path in (place, *place.rglob("*")):
            os.chown(path, PLAIN_USER, PLAIN_USER)
    try:
        yield world
    finally:
        remove(place)
