"""Workspaces without a sandbox: what a task would leave on disk, made from what it does to a copy of the home."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.changes import Node, printable_path
from artoo.ports.sandbox import Roots
from artoo.workspace.changes.base import Base, append_lines
from artoo.workspace.directory import WorkspaceDirectory, Workspaces
from artoo.workspace.fs.stat import DIRECTORY_FLAGS, NodeState, digest_file, read_state


@dataclass
class World:
    """A home with a project. `artoo_home` lies in the home, as in real life."""

    home: Path

    @property
    def project(self) -> Path:
        return self.home / "project"

    @property
    def artoo_home(self) -> Path:
        return self.home / ".artoo"

    @property
    def roots(self) -> Roots:
        return Roots(home=self.home, workspace=self.home / "artoo_workspace", project=self.project)

    @classmethod
    def at(cls, base: Path, **files: str) -> World:
        """Make a home below `base` with these files in its project (`__` in a name is a slash, `_` a dot)."""
        world = cls(base.resolve() / "home")
        world.project.mkdir(parents=True)
        for name, text in files.items():
            path = world.project / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return world


def workspace_of(world: World, change: Callable[[Path], object], task_id: str = "task-1") -> WorkspaceDirectory:
    """Return a workspace over the world's home in which `change` was done; it gets a copy of the home for that."""
    copy = world.home.parent / f"wanted-{task_id}"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(world.home, copy, symlinks=True, ignore=shutil.ignore_patterns(".artoo"))
    for real, wanted in ((world.home, copy), *_pairs(world.home, copy)):
        seen = real.lstat()
        os.utime(wanted, ns=(seen.st_atime_ns, seen.st_mtime_ns), follow_symlinks=False)
    change(copy)
    directory = Workspaces(world.artoo_home).directory(task_id)
    directory.make("bubblewrap", world.roots, (world.home,))
    upper = directory.upper(0)
    upper.mkdir(parents=True, exist_ok=True)
    directory.work(0).mkdir(exist_ok=True)
    shutil.copystat(world.home, upper)
    bases: list[Base] = []
    _lay(world.home, copy, upper, world.home, bases)
    absent = json.dumps({"looked_ns": 0, "absent": list(_new_paths(world.home, copy))}).encode()
    append_lines(directory.base_file, [*(base.model_dump_json().encode() for base in bases), absent])
    shutil.rmtree(copy)
    return directory


def _new_paths(real: Path, copy: Path) -> Iterator[str]:
    """What the task found nothing at, printable."""
    for place, wanted in _pairs(real, copy):
        if os.path.lexists(wanted) and not os.path.lexists(place):
            yield printable_path(os.fsencode(place))


def _pairs(real: Path, copy: Path) -> Iterator[tuple[Path, Path]]:
    for directory, names, files in os.walk(copy, topdown=False):
        for name in (*names, *files):
            wanted = Path(directory) / name
            yield real / wanted.relative_to(copy), wanted


def _lay(real: Path, wanted: Path, upper: Path, root: Path, bases: list[Base]) -> None:
    """Lay down what differs between two directories of one name; times of directories aside."""
    names = {child.name for child in (*wanted.iterdir(), *real.iterdir())}
    for name in sorted(names - ({".artoo"} if real == root else set())):
        one, other, into = real / name, wanted / name, upper / name
        if not os.path.lexists(other):
            bases += _bases(one)
            _white_out(into)
        elif not os.path.lexists(one):
            _copy(other, into)
        elif _is_directory(one) and _is_directory(other):
            into.mkdir()
            shutil.copystat(other, into)
            bases.append(_base(one))
            _lay(one, other, into, root, bases)
            if not os.listdir(into) and stat.S_IMODE(one.lstat().st_mode) == stat.S_IMODE(other.lstat().st_mode):
                into.rmdir()
        elif not _same(one, other):
            bases += _bases(one)
            _copy(other, into)


def _same(one: Path, other: Path) -> bool:
    was, now = one.lstat(), other.lstat()
    if was.st_mode != now.st_mode:
        return False
    if one.is_symlink():
        return os.readlink(one) == os.readlink(other)
    return was.st_mtime_ns == now.st_mtime_ns and one.read_bytes() == other.read_bytes()


def _copy(source: Path, target: Path) -> None:
    if _is_directory(source):
        shutil.copytree(source, target, symlinks=True)
    elif stat.S_ISFIFO(source.lstat().st_mode):
        os.mkfifo(target)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _white_out(path: Path) -> None:
    if os.geteuid() == 0:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(0, 0))
        return
    path.touch()
    os.setxattr(path, "user.overlay.whiteout", b"y")


def _bases(path: Path) -> Iterator[Base]:
    yield _base(path)
    if _is_directory(path):
        for child in sorted(path.iterdir()):
            yield from _bases(child)


def _base(path: Path) -> Base:
    state, digest = state_and_digest(path)
    assert state is not None
    return Base(path=printable_path(os.fsencode(path)), was=state, sha256=digest)


def state_and_digest(path: Path) -> tuple[NodeState | None, str | None]:
    """Return what is at a path, and the sha256 of a file."""
    parent = os.open(path.parent, DIRECTORY_FLAGS)
    try:
        state = read_state(parent, path.name)
        is_file = state is not None and state.node is Node.FILE
        return state, digest_file(parent, path.name) if is_file else None
    finally:
        os.close(parent)


Entry = tuple[object, ...]


def snapshot(root: Path, *, skip: str = ".artoo", times: bool = False) -> dict[str, Entry]:
    """Return every path below `root` with kind, mode, owner, attributes, and content or target.

    `times`: with those of files too.
    """
    found: dict[str, Entry] = {}
    for directory, names, files in os.walk(root):
        if skip in names and Path(directory) == root:
            names.remove(skip)
        for name in (*names, *files):
            path = Path(directory) / name
            seen = path.lstat()
            entry: Entry = (stat.S_IFMT(seen.st_mode), stat.S_IMODE(seen.st_mode), seen.st_uid, seen.st_gid)
            if stat.S_ISREG(seen.st_mode):
                entry += (path.read_bytes(), seen.st_mtime_ns if times else 0)
            elif stat.S_ISLNK(seen.st_mode):
                entry = (entry[0], os.readlink(path))
            if attributes := {one: os.getxattr(path, one, follow_symlinks=False) for one in _attributes(path)}:
                entry += (attributes,)
            found[os.path.relpath(path, root)] = entry
    return found


def _attributes(path: Path) -> list[str]:
    return sorted(os.listxattr(path, follow_symlinks=False))
