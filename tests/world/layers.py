"""Views without commands: the layers that a task would leave, laid down from what it would have done to a copy."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from sandbox_world import World

from artoo.contracts.changes import Node, printable_path
from artoo.world.base import Base, append_base
from artoo.world.files import parent_of
from artoo.world.git_head import head_of
from artoo.world.journal import StateRecord
from artoo.world.nodes import digest_file, read_state
from artoo.world.view_place import TRUNK, ViewKind, ViewPlace, Views


def view_of(world: World, change: Callable[[Path], object], task_id: str = "task-1") -> ViewPlace:
    """A view over the world's home in which `change` was done: it gets a copy of the home to do it in."""
    copy = world.home.parent / f"wanted-{task_id}"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(world.home, copy, symlinks=True, ignore=shutil.ignore_patterns(".artoo"))
    for real, wanted in ((world.home, copy), *_pairs(world.home, copy)):
        seen = real.lstat()
        os.utime(wanted, ns=(seen.st_atime_ns, seen.st_mtime_ns), follow_symlinks=False)
    change(copy)
    place = Views(world.artoo_home).place(task_id)
    place.make(ViewKind.OVERLAY, world.roots, (world.home,), head_of(world.project))
    upper = place.upper(TRUNK, 0)
    upper.parent.mkdir(parents=True)
    (upper.parent / "work").mkdir()
    upper.mkdir()
    shutil.copystat(world.home, upper)
    bases: list[Base] = []
    _layer(world.home, copy, upper, world.home, bases)
    append_base(place.base_file(), bases)
    shutil.rmtree(copy)
    return place


def _pairs(real: Path, copy: Path) -> Iterator[tuple[Path, Path]]:
    for directory, names, files in os.walk(copy, topdown=False):
        for name in (*names, *files):
            wanted = Path(directory) / name
            yield real / wanted.relative_to(copy), wanted


def _layer(real: Path, wanted: Path, upper: Path, root: Path, bases: list[Base]) -> None:
    """Lays down what differs between two directories of one name; times of directories aside."""
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
            _layer(one, other, into, root, bases)
            if not os.listdir(into) and stat.S_IMODE(one.lstat().st_mode) == stat.S_IMODE(other.lstat().st_mode):
                into.rmdir()
        elif not _same(one, other):
            bases += _bases(one)
            _copy(other, into)


def _same(one: Path, other: Path) -> bool:
    was, now = one.lstat(), other.lstat()
    if (stat.S_IFMT(was.st_mode), was.st_mode) != (stat.S_IFMT(now.st_mode), now.st_mode):
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
    with parent_of(str(path.parent), printable_path(os.fsencode(path.name))) as (directory, name):
        state = read_state(directory, name)
        was = StateRecord.of(state)
        assert state is not None and was is not None
        digest = digest_file(directory, name) if state.node is Node.FILE else None
    return Base(path=printable_path(os.fsencode(path)), was=was, changed_ns=state.ctime_ns, sha256=digest)
