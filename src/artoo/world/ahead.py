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

from artoo.world.overlay import PRIVATE_PLACES, View
from artoo.world.path_set import PathSet
from artoo.world.stage import Layer
from artoo.world.steps import EARLIER, RESULT, Block, Steps

_CLOSE, _EXECVE, _PRCTL, _MOUNT, _UMOUNT, _OPEN, _WRITE = 3, 59, 157, 165, 166, 257, 1
_MKDIR, _UNLINK, _SYMLINK, _UNSHARE, _DUP, _EXECVE_AT = 258, 263, 266, 272, 292, 322
_OPEN_SO, _SET_ATTRIBUTES, _NO_LINKS = 437, 442, 4
_HERE = -100
_NEW_MOUNTS, _NEW_USER = 0x20000, 0x10000000
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_PROGRAMS = 1, 2, 4, 8
_REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 0x20, 0x1000, 0x4000, 0x40000
_PATH_ONLY, _CLOSE_LATER, _CREATE = os.O_PATH | os.O_CLOEXEC, os.O_CLOEXEC, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC
_ALL_BELOW, _EMPTY_PATH, _REMOVE_DIRECTORY, _DETACH = 0x8000, 0x1000, 0x200, 2
_DIES_WITH_PARENT, _KILL = 1, 9
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2"), ("ptmx", "pts/ptmx"))
_PRIVATE_SET = PathSet(PRIVATE_PLACES)


def laid_ahead(
    view: View, argv: Sequence[str], *, shared_memory: int, user_namespace: bool, first_descriptor: int
) -> bytes:
    """A program that lays the view's files and becomes `argv`. It uses descriptors from `first_descriptor` on."""
    laying = _Laying(first_descriptor)
    laying.begin(user_namespace=user_namespace)
    laying.open_all(view, argv[0])
    laying.private(view, shared_memory)
    laying.roots(view)
    laying.close(view)
    laying.protect(view)
    laying.become(argv, view.env)
    return laying.steps.program()


class _Laying:
    """The steps, and the descriptors under which they have what they opened."""

    def __init__(self, first_descriptor: int) -> None:
        self.steps = Steps()
        self._next = first_descriptor
        self._opened: dict[str, int] = {}

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

    def open_all(self, view: View, program: str) -> None:
        """Everything that is mounted or run later, while every path still leads to it."""
        covers = os.fspath(view.stage.covers)
        self._mount(covers, covers, "", _BIND)
        self._mount("none", covers, "", _REMOUNT | _BIND | _READ_ONLY | _NO_SUID | _NO_DEVICES | _NO_PROGRAMS)
        for path in (program, covers, _scratch(view), *_devices()):
            self._open(path)
        for layer in view.stage.layers:
            for place in (layer.root, layer.upper, layer.work, *layer.below):
                self._open(os.fspath(place))
        for path in view.bound:
            self._open(path, allowed=(errno.ENOENT,))

    def private(self, view: View, shared_memory: int) -> None:
        """The task's own /tmp, an empty /run, few devices."""
        for place in _private_temporary():
            self._bind(_scratch(view), place)
        self._mount("tmpfs", "/run", "tmpfs", _NO_SUID | _NO_DEVICES, "mode=755,size=64k")
        self._mount("tmpfs", "/dev", "tmpfs", _NO_SUID, "mode=755,size=1m")
        for device in _devices():
            self.steps.call(_OPEN, _HERE, device.encode(), _CREATE, 0o600, what=f"make {device}")
            self.steps.call(_CLOSE, RESULT, what=f"close {device}")
            self._bind(device, device)
        for name, target in _LINKS:
            self.steps.call(_SYMLINK, target.encode(), _HERE, f"/dev/{name}".encode(), what=f"link /dev/{name}")
        for name in ("pts", "shm"):
            self._make(f"/dev/{name}")
        terminals = "newinstance,ptmxmode=0666,mode=620"
        self._mount("devpts", "/dev/pts", "devpts", _NO_SUID | _NO_PROGRAMS, terminals)
        self._mount("tmpfs", "/dev/shm", "tmpfs", _NO_SUID | _NO_DEVICES, f"mode=1777,size={shared_memory}")

    def roots(self, view: View) -> None:
        """The roots under their layers, and what is shown as it is: outside the roots first, inside them last."""
        in_roots = PathSet(str(layer.root) for layer in view.stage.layers)
        self._show(path for path in view.bound if not in_roots.cover(path))
        for layer in view.stage.layers:
            self._lay(layer)
        self._show(path for path in view.bound if in_roots.cover(path))

    def close(self, view: View) -> None:
        """Covers what is closed, be it a file or a directory by now; what is gone meanwhile needs no cover.

        In a root, a view may have a link of its own where the person has something closed. It hides that, and what
        the link leads to is not meant. Elsewhere nothing but the person changes paths, and a link is an error.
        """
        in_roots = PathSet(str(layer.root) for layer in view.stage.layers)
        target, self._next = self._next, self._next + 1
        sources = (f"{self._at(os.fspath(view.stage.covers))}/{name}".encode() for name in ("file", "directory"))
        file, directory = sources
        place = f"/proc/self/fd/{target}".encode()
        how = Block(struct.pack("<QQQ", _PATH_ONLY, 0, _NO_LINKS))
        for path in map(os.fspath, view.hidden):
            gone = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP) if in_roots.cover(path) else (errno.ENOENT,)
            what = f"close {path}"
            self.steps.call(_OPEN_SO, _HERE, os.fsencode(path), how, 24, what=what, allowed=gone)
            self.steps.call(_DUP, RESULT, target, _CLOSE_LATER, what=what, allowed=(errno.EBADF, errno.EINVAL))
            for cover in (file, directory):  # the one that does not fit is refused; what was covered is so twice
                known = (errno.ENOTDIR, errno.ENOENT)
                self.steps.call(_MOUNT, cover, place, b"", _BIND, b"", what=what, allowed=known)

    def protect(self, view: View) -> None:
        """All is read-only but for what a command may write. /proc is bubblewrap's: it lays a new one over it."""
        self._mark("/", _READ_ONLY | _NO_SUID | _NO_DEVICES, 0, below=True)
        for device in _devices():
            self._mark(device, 0, _NO_DEVICES)
        roots = (os.fspath(layer.root) for layer in view.stage.layers)
        for place in ("/proc", *roots, *_private_temporary(), "/dev/pts", "/dev/shm"):
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
        """A root under its layers; through an overlay of its own where a layer lies in it (`Layer.footing`)."""
        root = os.fspath(layer.root)
        if _PRIVATE_SET.cover(root):
            self._make_way(root)
        lowest, alone, void = self._at(root), "/run/alone", "/run/void"
        if layer.footing is not None:
            for place in (alone, void):
                self._make(place)
            sources = f"lowerdir={lowest}:{void},userxattr"
            self._mount("overlay", alone, "overlay", _NO_SUID | _NO_DEVICES | _READ_ONLY, sources)
            lowest = alone
        lower = ":".join((*(self._at(os.fspath(place)) for place in layer.below), lowest))
        upper, work = (self._at(os.fspath(place)) for place in (layer.upper, layer.work))
        options = f"lowerdir={lower},upperdir={upper},workdir={work},userxattr"
        self._mount("overlay", root, "overlay", _NO_SUID | _NO_DEVICES, options)
        if layer.footing is not None:
            self.steps.call(_UMOUNT, alone.encode(), _DETACH, what=f"unmount {alone}")
            for place in (alone, void):
                self.steps.call(_UNLINK, _HERE, place.encode(), _REMOVE_DIRECTORY, what=f"remove {place}")

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

    def _make(self, path: str) -> None:
        self.steps.call(_MKDIR, _HERE, os.fsencode(path), 0o755, what=f"make {path}", allowed=(errno.EEXIST,))

    def _open(self, path: str, allowed: tuple[int, ...] = ()) -> None:
        if path in self._opened:
            return
        descriptor, self._next = self._next, self._next + 1
        self._opened[path] = descriptor
        self.steps.call(_OPEN, _HERE, os.fsencode(path), _PATH_ONLY, what=f"open {path}", allowed=allowed)
        known = (errno.EINVAL, *((errno.EBADF,) if allowed else ()))  # it has that number already; nothing is there
        self.steps.call(_DUP, RESULT, descriptor, _CLOSE_LATER, what=f"keep {path}", allowed=known)

    def _at(self, path: str) -> str:
        return f"/proc/self/fd/{self._opened[path]}"

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


def _scratch(view: View) -> str:
    return os.fspath(view.request.scratch or view.stage.scratch)


def _private_temporary() -> tuple[str, ...]:
    return tuple(place for place in ("/tmp", "/var/tmp") if os.path.isdir(place))


def _devices() -> tuple[str, ...]:
    return tuple(device for name in _DEVICES if os.path.exists(device := f"/dev/{name}"))
