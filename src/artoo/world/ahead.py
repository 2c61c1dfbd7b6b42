"""Lays a view's file system before bubblewrap starts, so that bubblewrap finds it there and has only to isolate.

bubblewrap reads the whole table of mounts for each place that it binds, and a view has dozens of closed places.
Here each is one system call, made by the process that becomes bubblewrap (`steps`), in a mount namespace of that
process alone: nothing is shared by two commands, nothing outlives one, and what is closed is looked up for each.

The order: everything is opened before anything is covered; private places, devices, roots under their layers, what
is shown as it is, closed places; then all becomes read-only but for what a command may write. Numbers are x86-64's.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from artoo.world.overlay import PRIVATE_PLACES, View
from artoo.world.path_set import PathSet
from artoo.world.stage import Layer
from artoo.world.steps import EARLIER, RESULT, Block, Part, Steps, program

_CLOSE, _EXECVE, _PRCTL, _MOUNT, _OPEN, _WRITE = 3, 59, 157, 165, 257, 1
_MKDIR, _UNLINK, _SYMLINK, _UNSHARE, _DUP, _EXECVE_AT = 258, 263, 266, 272, 292, 322
_CLOSE_RANGE, _OPEN_SO, _SET_ATTRIBUTES, _NO_LINKS = 436, 437, 442, 4
_HERE = -100
_NEW_MOUNTS, _NEW_USER = 0x20000, 0x10000000
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_PROGRAMS = 1, 2, 4, 8
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x40000
_PATH_ONLY, _CLOSE_LATER, _CREATE = os.O_PATH | os.O_CLOEXEC, os.O_CLOEXEC, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC
_ALL_BELOW, _EMPTY_PATH, _REMOVE_DIRECTORY = 0x8000, 0x1000, 0x200
_DIES_WITH_PARENT, _KILL = 1, 9
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2"), ("ptmx", "pts/ptmx"))
_VOID, _COVERS = "/run/void", ("/run/cover", "/run/covers")
"""In a file system of the command's own: an empty directory, and what is laid over closed files and directories."""
_PRIVATE_SET = PathSet(PRIVATE_PLACES)
_MULTIPLE = 32
"""Descriptors and calls are numbered in steps of it, so that a part of the list is the same for many commands."""

_Place = tuple[str, bool, bool]
"""A closed path, whether it is a directory of the person's, and whether it lies in a root."""


def laid_ahead(
    view: View,
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    shared_memory: int,
    user_namespace: bool,
    first_descriptor: int,
) -> bytes:
    """A program that lays the view's files and becomes `argv`. It uses descriptors from `first_descriptor` on."""
    laying = _Laying(view, first_descriptor)
    laying.begin(user_namespace=user_namespace)
    laying.open_all(argv[0])
    laying.private(shared_memory)
    laying.roots()
    laying.steps.fill(_MULTIPLE)
    before = laying.steps.part()
    closing = _closing(before.end, laying.file, _closed(view))
    laying.steps = Steps(closing.end, 2)
    laying.protect()
    laying.become(argv, env)
    return program(before, closing, laying.steps.part())


class _Laying:
    """The steps, and the descriptors under which they have what they opened."""

    def __init__(self, view: View, first_descriptor: int) -> None:
        self.steps = Steps()
        self.file = -(-first_descriptor // _MULTIPLE) * _MULTIPLE  # mostly the same, so that `_closing` is too
        self._view = view
        self._next = self.file + 3  # `_closing` uses three
        self._opened: dict[str, int] = {}
        self._devices = tuple(device for name in _DEVICES if os.path.exists(device := f"/dev/{name}"))
        self._temporary = tuple(place for place in ("/tmp", "/var/tmp") if os.path.isdir(place))
        self._scratch = os.fspath(view.request.scratch or view.stage.scratch)

    def begin(self, *, user_namespace: bool) -> None:
        """A mount namespace of our own, from which nothing spreads."""
        self.steps.call(_PRCTL, _DIES_WITH_PARENT, _KILL, what="die with the parent")
        self.steps.call(_UNSHARE, _NEW_MOUNTS | (_NEW_USER if user_namespace else 0), what="unshare")
        if user_namespace:
            user, group = os.geteuid(), os.getegid()
            for name, text in (
                ("setgroups", "deny"),
                ("uid_map", f"{user} {user} 1"),
                ("gid_map", f"{group} {group} 1"),
            ):
                path = f"/proc/self/{name}"
                self.steps.call(_OPEN, _HERE, path.encode(), os.O_WRONLY | os.O_CLOEXEC, what=f"open {path}")
                self.steps.call(_WRITE, RESULT, text.encode(), len(text), what=f"write {path}")
                self.steps.call(_CLOSE, EARLIER, what=f"close {path}")
        self._mount("none", "/", "", _PRIVATE | _RECURSIVE)

    def open_all(self, program: str) -> None:
        """Everything that is mounted or run later, while every path still leads to it."""
        view = self._view
        for path in (program, self._scratch, *self._devices):
            self._open(path)
        for layer in view.stage.layers:
            for place in (layer.root, layer.upper, layer.work, *layer.below):
                self._open(os.fspath(place))
        for path in view.bound:
            self._open(path, allowed=(errno.ENOENT,))

    def private(self, shared_memory: int) -> None:
        """The task's own /tmp, an empty /run, few devices."""
        for place in self._temporary:
            self._bind(self._scratch, place)
        self._mount("tmpfs", "/run", "tmpfs", _NO_SUID | _NO_DEVICES, "mode=755,size=64k")
        self._create(_COVERS[0], 0o000)
        self.steps.call(_MKDIR, _HERE, _COVERS[1].encode(), 0o000, what=f"make {_COVERS[1]}")
        for number, cover in enumerate(_COVERS, self.file):
            self._keep(cover, number)
        self._mount("tmpfs", "/dev", "tmpfs", _NO_SUID, "mode=755,size=1m")
        for device in self._devices:
            self._create(device, 0o600)
            self._bind(device, device)
        for name, target in _LINKS:
            self.steps.call(_SYMLINK, target.encode(), _HERE, f"/dev/{name}".encode(), what=f"link /dev/{name}")
        for name in ("pts", "shm"):
            self._make(f"/dev/{name}")
        terminals = "newinstance,ptmxmode=0666,mode=620"
        self._mount("devpts", "/dev/pts", "devpts", _NO_SUID | _NO_PROGRAMS, terminals)
        self._mount("tmpfs", "/dev/shm", "tmpfs", _NO_SUID | _NO_DEVICES, f"mode=1777,size={shared_memory}")

    def roots(self) -> None:
        """The roots under their layers, and what is shown as it is: outside the roots first, inside them last."""
        layers, bound = self._view.stage.layers, self._view.bound
        in_roots = PathSet(str(layer.root) for layer in layers)
        self._show(path for path in bound if not in_roots.cover(path))
        for layer in layers:
            self._lay(layer)
        self._show(path for path in bound if in_roots.cover(path))

    def protect(self) -> None:
        """All is read-only but for what a command may write. /proc is bubblewrap's: it lays a new one over it."""
        for cover, flags in zip(_COVERS, (0, _REMOVE_DIRECTORY), strict=True):  # they stay where they are laid
            self.steps.call(_UNLINK, _HERE, cover.encode(), flags, what=f"remove {cover}")
        self._mark("/", _READ_ONLY | _NO_SUID | _NO_DEVICES, 0, below=True)
        for device in self._devices:
            self._mark(device, 0, _NO_DEVICES)
        roots = (os.fspath(layer.root) for layer in self._view.stage.layers)
        for place in ("/proc", *roots, *self._temporary, "/dev/pts", "/dev/shm"):
            self._mark(place, 0, _READ_ONLY)

    def become(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Starts what was opened, wherever that lies by now; a script can only be started by its path."""
        words = tuple(map(os.fsencode, argv))
        variables = tuple(os.fsencode(f"{name}={value}") for name, value in env.items())
        descriptor, what = self._opened[argv[0]], f"start {argv[0]}"
        self.steps.call(
            _EXECVE_AT, descriptor, b"", words, variables, _EMPTY_PATH, what=what, allowed=(errno.ENOENT,)
        )
        self.steps.call(_EXECVE, words[0], words, variables, what=what)

    def _lay(self, layer: Layer) -> None:
        """A root under its layers; through an overlay of its own where a layer lies in it (`Layer.footing`).

        That one is left where it is, below the root: an unmount makes the kernel wait for all its readers.
        """
        root = os.fspath(layer.root)
        if _PRIVATE_SET.cover(root):
            self._make_way(root)
        lowest = self._at(root)
        if layer.footing is not None:
            self._make(_VOID)  # on a file system of its own: the root may hold every other empty directory
            sources = f"lowerdir={lowest}:{_VOID},userxattr"
            self._mount("overlay", root, "overlay", _NO_SUID | _NO_DEVICES | _READ_ONLY, sources)
            self.steps.call(_UNLINK, _HERE, _VOID.encode(), _REMOVE_DIRECTORY, what=f"remove {_VOID}")
            self._keep(root, self._next)
            lowest, self._next = _at(self._next), self._next + 1
        lower = ":".join((*(self._at(os.fspath(place)) for place in layer.below), lowest))
        upper, work = (self._at(os.fspath(place)) for place in (layer.upper, layer.work))
        options = f"lowerdir={lower},upperdir={upper},workdir={work},userxattr"
        self._mount("overlay", root, "overlay", _NO_SUID | _NO_DEVICES, options)

    def _show(self, paths: Iterable[str]) -> None:
        for path in paths:
            if _PRIVATE_SET.cover(path):
                self._make_way(path)
            self._bind(path, path, _RECURSIVE, allowed=(errno.ENOENT,))

    def _make_way(self, path: str) -> None:
        """A directory below a private place, which a command sees empty."""
        parts = path.split("/")
        for end in range(3, len(parts) + 1):
            self._make("/".join(parts[:end]))

    def _create(self, path: str, mode: int) -> None:
        self.steps.call(_OPEN, _HERE, path.encode(), _CREATE, mode, what=f"make {path}")
        self.steps.call(_CLOSE, RESULT, what=f"close {path}")

    def _make(self, path: str) -> None:
        self.steps.call(_MKDIR, _HERE, os.fsencode(path), 0o755, what=f"make {path}", allowed=(errno.EEXIST,))

    def _open(self, path: str, allowed: tuple[int, ...] = ()) -> None:
        if path not in self._opened:
            self._opened[path], self._next = self._next, self._next + 1
            self._keep(path, self._opened[path], allowed)

    def _keep(self, path: str, descriptor: int, allowed: tuple[int, ...] = ()) -> None:
        self.steps.call(_OPEN, _HERE, os.fsencode(path), _PATH_ONLY, what=f"open {path}", allowed=allowed)
        known = (errno.EINVAL, *((errno.EBADF,) if allowed else ()))  # it has that number already; nothing is there
        self.steps.call(_DUP, RESULT, descriptor, _CLOSE_LATER, what=f"keep {path}", allowed=known)

    def _at(self, path: str) -> str:
        return _at(self._opened[path])

    def _bind(self, path: str, target: str, more: int = 0, allowed: tuple[int, ...] = ()) -> None:
        self._mount(self._at(path), target, "", _BIND | more, allowed=allowed)

    def _mount(
        self, source: str, target: str, kind: str, flags: int, options: str = "", allowed: tuple[int, ...] = ()
    ) -> None:
        texts = (os.fsencode(one) for one in (source, target, kind))
        what = f"mount {kind or source} on {target}"
        self.steps.call(_MOUNT, *texts, flags, options.encode(), what=what, allowed=allowed)

    def _mark(self, place: str, now: int, no_longer: int, *, below: bool = False) -> None:
        bits = Block(struct.pack("<QQQQ", now, no_longer, 0, 0))
        flags = _ALL_BELOW if below else 0
        self.steps.call(_SET_ATTRIBUTES, _HERE, os.fsencode(place), flags, bits, 32, what=f"mark {place}")


def _closed(view: View) -> tuple[_Place, ...]:
    roots = tuple(os.fspath(layer.root) for layer in view.stage.layers)
    return tuple(zip(view.hidden, map(os.path.isdir, view.hidden), _inside(view.hidden, roots), strict=True))


@lru_cache(maxsize=8)
def _inside(paths: tuple[str, ...], roots: tuple[str, ...]) -> tuple[bool, ...]:
    in_roots = PathSet(roots)
    return tuple(map(in_roots.cover, paths))


@lru_cache(maxsize=4)
def _closing(before: int, file: int, places: tuple[_Place, ...]) -> Part:
    """Covers what is closed, be it a file or a directory by now; what is gone meanwhile needs no cover.

    `file` and the descriptor after it are the covers; the next one is used for each place. In a root, a view may
    have a link of its own where the person has something closed. It hides that, and what the link leads to is not
    meant. Elsewhere nothing but the person changes paths, and a link is an error.

    To mount what does not fit makes the kernel wait for all its readers (RCU), as an unmount does. So what the
    person has there is tried first; when that fits, the descriptor is closed (`close_range` with the result, 0, as
    its flags; what failed gives it impossible ones), and the other one finds nothing to be mounted on.
    """
    steps = Steps(before, 1)
    covers, target = (_at(file).encode(), _at(file + 1).encode()), file + 2
    how = Block(struct.pack("<QQQ", _PATH_ONLY, 0, _NO_LINKS))
    unfit = (errno.ENOTDIR, errno.ENOENT)
    for path, is_directory, in_root in places:
        gone = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP) if in_root else (errno.ENOENT,)
        likely, other = reversed(covers) if is_directory else covers
        what, place = f"close {path}", _at(target).encode()
        steps.call(_CLOSE, target, what=what, allowed=(errno.EBADF,))
        steps.call(_OPEN_SO, _HERE, os.fsencode(path), how, 24, what=what, allowed=gone)
        steps.call(_DUP, RESULT, target, _CLOSE_LATER, what=what, allowed=(errno.EBADF, errno.EINVAL))
        steps.call(_MOUNT, likely, place, b"", _BIND, b"", what=what, allowed=unfit)
        steps.call(_CLOSE_RANGE, target, target, RESULT, what=what, allowed=(errno.EINVAL,))
        steps.call(_MOUNT, other, place, b"", _BIND, b"", what=what, allowed=unfit)
    return steps.part()


def _at(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"
