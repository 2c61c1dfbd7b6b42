"""The steps by which a view's files are laid: private places, devices, roots under their layers, what is closed.

The order: everything is opened before anything is covered; private places, devices, roots under their layers, what
is shown as it is, closed places; then all becomes read-only but for what a command may write. They are made by the
process that becomes the sandbox, in a mount namespace of its own: nothing is shared by two commands, nothing
outlives one. What a list of steps is made from (`Plan`) is looked up for each command; for what is the same again
the list is, too. Numbers are x86-64's.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from artoo.world.overlay import PRIVATE_PLACES, View
from artoo.world.path_set import PathSet
from artoo.world.steps import RESULT, Block, Part, Steps

_CLOSE, _MOUNT, _OPEN, _MKDIR, _UNLINK, _SYMLINK, _DUP = 3, 165, 257, 258, 263, 266, 292
_CLOSE_RANGE, _OPEN_SO, _SET_ATTRIBUTES, _NO_LINKS = 436, 437, 442, 4
_HERE = -100
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_PROGRAMS = 1, 2, 4, 8
_BIND, _RECURSIVE = 0x1000, 0x4000
_PATH_ONLY, _CLOSE_LATER, _CREATE = os.O_PATH | os.O_CLOEXEC, os.O_CLOEXEC, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC
_ALL_BELOW, _REMOVE_DIRECTORY = 0x8000, 0x200
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2"), ("ptmx", "pts/ptmx"))
_VOID, _COVERS = "/run/void", ("/run/cover", "/run/covers")
"""In a file system of the command's own: an empty directory, and what is laid over closed files and directories."""
_PRIVATE_SET = PathSet(PRIVATE_PLACES)
_MULTIPLE = 32
"""Descriptors are numbered from a multiple of it on, so that the steps are the same for many commands."""

_Place = tuple[str, bool, bool]
"""A closed path, whether it is a directory of the person's, and whether it lies in a root."""


@dataclass(frozen=True, slots=True)
class Root:
    """A root, and the frozen layers over it. `footed`: see `stage.Layer.footing`."""

    path: str
    below: tuple[str, ...]
    footed: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """What the steps are made from, but for the command's own layers.

    `proc_follows`: whether somebody else lays a new /proc later, who must be able to write in this one.
    """

    roots: tuple[Root, ...]
    bound: tuple[str, ...]
    closed: tuple[_Place, ...]
    devices: tuple[str, ...]
    temporary: tuple[str, ...]
    shared_memory: int
    proc_follows: bool

    @classmethod
    def of(cls, view: View, shared_memory: int, *, proc_follows: bool) -> Plan:
        """As everything is now. Blocking."""
        layers = view.stage.layers
        return cls(
            tuple(Root(str(one.root), tuple(map(str, one.below)), one.footing is not None) for one in layers),
            view.bound,
            _closed(view),
            tuple(device for name in _DEVICES if os.path.exists(device := f"/dev/{name}")),
            tuple(place for place in ("/tmp", "/var/tmp") if os.path.isdir(place)),
            shared_memory,
            proc_follows,
        )


@dataclass(frozen=True, slots=True)
class Numbers:
    """Under which descriptors the steps have what they need: three for covers and what is covered, then what
    differs from command to command: a program, the /tmp, for each root its upper and its work directory."""

    first: int
    roots: int

    @classmethod
    def after(cls, used: int, view: View) -> Numbers:
        return cls(-(-(used + 1) // _MULTIPLE) * _MULTIPLE, len(view.stage.layers))

    @property
    def program(self) -> int:
        return self.first + 3

    @property
    def scratch(self) -> int:
        return self.first + 4

    def upper(self, root: int) -> int:
        return self.first + 5 + 2 * root

    def work(self, root: int) -> int:
        return self.upper(root) + 1

    @property
    def end(self) -> int:
        return self.upper(self.roots)


def keep(steps: Steps, path: str, descriptor: int, allowed: tuple[int, ...] = ()) -> None:
    """Opens a path under a number, while it still leads there."""
    steps.call(_OPEN, _HERE, os.fsencode(path), _PATH_ONLY, what=f"open {path}", allowed=allowed)
    known = (errno.EINVAL, *((errno.EBADF,) if allowed else ()))  # it has that number already; nothing is there
    steps.call(_DUP, RESULT, descriptor, _CLOSE_LATER, what=f"keep {path}", allowed=known)


def keep_own(steps: Steps, view: View, numbers: Numbers) -> None:
    """Opens what is the command's own."""
    keep(steps, os.fspath(view.request.scratch or view.stage.scratch), numbers.scratch)
    for number, layer in enumerate(view.stage.layers):
        keep(steps, os.fspath(layer.upper), numbers.upper(number))
        keep(steps, os.fspath(layer.work), numbers.work(number))


@lru_cache(maxsize=8)
def laid(before: int, number: int, numbers: Numbers, plan: Plan) -> Part:
    """The steps, as part `number` of a list, after `before` others, which open what is the command's own."""
    laying = _Laying(Steps(before, number), numbers, plan)
    laying.open_all()
    laying.private()
    laying.roots()
    laying.close()
    laying.protect()
    return laying.steps.part()


class _Laying:
    """The steps, and the descriptors under which they have what they opened."""

    def __init__(self, steps: Steps, numbers: Numbers, plan: Plan) -> None:
        self.steps = steps
        self._numbers = numbers
        self._plan = plan
        self._next = numbers.end
        self._opened: dict[str, int] = {}

    def open_all(self) -> None:
        """Everything that is mounted later, while every path still leads to it."""
        for path in self._plan.devices:
            self._open(path)
        for root in self._plan.roots:
            for place in (root.path, *root.below):
                self._open(place)
        for path in self._plan.bound:
            self._open(path, allowed=(errno.ENOENT,))

    def private(self) -> None:
        """The task's own /tmp, an empty /run, few devices."""
        for place in self._plan.temporary:
            self._mount(_at(self._numbers.scratch), place, "", _BIND)
        self._mount("tmpfs", "/run", "tmpfs", _NO_SUID | _NO_DEVICES, "mode=755,size=64k")
        self._create(_COVERS[0], 0o000)
        self.steps.call(_MKDIR, _HERE, _COVERS[1].encode(), 0o000, what=f"make {_COVERS[1]}")
        for number, cover in enumerate(_COVERS, self._numbers.first):
            keep(self.steps, cover, number)
        self._mount("tmpfs", "/dev", "tmpfs", _NO_SUID, "mode=755,size=1m")
        for device in self._plan.devices:
            self._create(device, 0o600)
            self._bind(device, device)
        for name, target in _LINKS:
            self.steps.call(_SYMLINK, target.encode(), _HERE, f"/dev/{name}".encode(), what=f"link /dev/{name}")
        for name in ("pts", "shm"):
            self._make(f"/dev/{name}")
        terminals = "newinstance,ptmxmode=0666,mode=620"
        self._mount("devpts", "/dev/pts", "devpts", _NO_SUID | _NO_PROGRAMS, terminals)
        memory = f"mode=1777,size={self._plan.shared_memory}"
        self._mount("tmpfs", "/dev/shm", "tmpfs", _NO_SUID | _NO_DEVICES, memory)

    def roots(self) -> None:
        """The roots under their layers, and what is shown as it is: outside the roots first, inside them last."""
        in_roots = PathSet(root.path for root in self._plan.roots)
        self._show(path for path in self._plan.bound if not in_roots.cover(path))
        for number, root in enumerate(self._plan.roots):
            self._lay(number, root)
        self._show(path for path in self._plan.bound if in_roots.cover(path))

    def close(self) -> None:
        """Covers what is closed, be it a file or a directory by now; what is gone meanwhile needs no cover.

        In a root, a view may have a link of its own where the person has something closed. It hides that, and what
        the link leads to is not meant. Elsewhere nothing but the person changes paths, and a link is an error.

        To mount what does not fit makes the kernel wait for all its readers (RCU), as an unmount does. So what the
        person has there is tried first; when that fits, the descriptor is closed (`close_range` with the result, 0,
        as its flags; what failed gives it impossible ones), and the other one finds nothing to be mounted on.
        """
        file, call = self._numbers.first, self.steps.call
        covers, target = (_at(file).encode(), _at(file + 1).encode()), file + 2
        how = Block(struct.pack("<QQQ", _PATH_ONLY, 0, _NO_LINKS))
        unfit = (errno.ENOTDIR, errno.ENOENT)
        for path, is_directory, in_root in self._plan.closed:
            gone = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP) if in_root else (errno.ENOENT,)
            likely, other = reversed(covers) if is_directory else covers
            what, place = f"close {path}", _at(target).encode()
            call(_CLOSE, target, what=what, allowed=(errno.EBADF,))
            call(_OPEN_SO, _HERE, os.fsencode(path), how, 24, what=what, allowed=gone)
            call(_DUP, RESULT, target, _CLOSE_LATER, what=what, allowed=(errno.EBADF, errno.EINVAL))
            call(_MOUNT, likely, place, b"", _BIND, b"", what=what, allowed=unfit)
            call(_CLOSE_RANGE, target, target, RESULT, what=what, allowed=(errno.EINVAL,))
            call(_MOUNT, other, place, b"", _BIND, b"", what=what, allowed=unfit)

    def protect(self) -> None:
        """All is read-only but for what a command may write."""
        for cover, flags in zip(_COVERS, (0, _REMOVE_DIRECTORY), strict=True):  # they stay where they are laid
            self.steps.call(_UNLINK, _HERE, cover.encode(), flags, what=f"remove {cover}")
        self._mark("/", _READ_ONLY | _NO_SUID | _NO_DEVICES, 0, below=True)
        for device in self._plan.devices:
            self._mark(device, 0, _NO_DEVICES)
        proc = ("/proc",) if self._plan.proc_follows else ()
        roots = (root.path for root in self._plan.roots)
        for place in (*proc, *roots, *self._plan.temporary, "/dev/pts", "/dev/shm"):
            self._mark(place, 0, _READ_ONLY)

    def _lay(self, number: int, root: Root) -> None:
        """A root under its layers; through an overlay of its own where a layer lies in it (`Layer.footing`).

        That one is left where it is, below the root: an unmount makes the kernel wait for all its readers.
        """
        if _PRIVATE_SET.cover(root.path):
            self._make_way(root.path)
        lowest = self._at(root.path)
        if root.footed:
            self._make(_VOID)  # on a file system of its own: the root may hold every other empty directory
            sources = f"lowerdir={lowest}:{_VOID},userxattr"
            self._mount("overlay", root.path, "overlay", _NO_SUID | _NO_DEVICES | _READ_ONLY, sources)
            self.steps.call(_UNLINK, _HERE, _VOID.encode(), _REMOVE_DIRECTORY, what=f"remove {_VOID}")
            keep(self.steps, root.path, self._next)
            lowest, self._next = _at(self._next), self._next + 1
        lower = ":".join((*map(self._at, root.below), lowest))
        upper, work = _at(self._numbers.upper(number)), _at(self._numbers.work(number))
        options = f"lowerdir={lower},upperdir={upper},workdir={work},userxattr"
        self._mount("overlay", root.path, "overlay", _NO_SUID | _NO_DEVICES, options)

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
            keep(self.steps, path, self._opened[path], allowed)

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


def _at(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"
