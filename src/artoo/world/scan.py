"""Reads what a layer changes: walks it beside what is below it (`below`), never following a link.

A whiteout deletes, an opaque directory replaces; everything else is a new or a copied-up version of what is below.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

from artoo.contracts.changes import Node, printable_path
from artoo.contracts.errors import SandboxError
from artoo.world.below import Below, Found, below, is_opaque, is_whiteout
from artoo.world.nodes import Content, NodeState, at, glance, read_state, state_of, with_attributes, with_content
from artoo.world.opened import READ, WORK, opened_up, with_rights
from artoo.world.stage import Layer
from artoo.world.unheld import unheld, with_unheld

DEEPEST = 200
"""Directories in each other, below a root."""


class Effect(NamedTuple):
    """What happens to one path: from `before` to `after` (None: nothing there).

    `relative` is the path below the layer's root (empty for the root itself), `path` the whole one; `place` is root
    and `relative` as printable paths, `shown` the whole of it: every phase asks for them. `in_place`: the thing
    stays, only its mode, owner, attributes or times change. `appended`: the old content is the start of the new.
    `real`: what was before is the person's own, not what a frozen layer made of it. `before_digest`: of its
    content, if that was read. `unmarked`: the layer's file was seen to have no attributes, not even the overlay's
    own. A tuple, because thousands are made at once.
    """

    layer: Layer
    relative: bytes
    path: bytes
    place: tuple[str, str]
    shown: str
    before: NodeState | None
    after: NodeState | None
    in_place: bool = False
    replaced_directory: bool = False
    appended: bool = False
    digest: str | None = None
    real: bool = True
    before_digest: str | None = None
    unmarked: bool = False


class Touched(NamedTuple):
    """A thing of the person's that a layer holds a version of, or hides, whether or not it changes it.

    `place` and `shown` are those of an `Effect`. `digest`: of its content, if that had to be read.
    """

    place: tuple[str, str]
    shown: str
    state: NodeState
    digest: str | None = None


Known = Callable[[str, NodeState], tuple[NodeState, str] | None]
"""A person's file, absolute and printable, as it was glanced at: its state with attributes and the digest of its
content, if they were read before and it is the same since."""


def scan(layers: tuple[Layer, ...], limit: int, known: Known | None = None) -> list[Effect]:
    """All effects of all layers, in path order. Raises SandboxError when they cannot be read completely.

    What is `known` of a person's files is not read again.
    """
    return _scanned(layers, limit, None, known)


def scan_touched(layers: tuple[Layer, ...], limit: int) -> tuple[list[Effect], list[Touched]]:
    """As `scan`; with all that the layers touch of the real files."""
    touched: list[Touched] = []
    return _scanned(layers, limit, touched, None), touched


def _scanned(
    layers: tuple[Layer, ...], limit: int, touched: list[Touched] | None, known: Known | None
) -> list[Effect]:
    found: list[Effect] = []
    for layer in layers:
        found += _Scanner(layer, limit - len(found), touched, known).effects()
    return sorted(found, key=lambda effect: effect.path)


@contextmanager
def readable_layers(effects: Sequence[Effect]) -> Generator[bool]:
    """While it lasts, what the effects leave can be read and moved out of its layers, whatever modes they have.

    Whether something of them had to be opened for that, and is closed again at the end.
    """
    with ExitStack() as opened:
        any_opened = False
        for effect in effects if os.geteuid() != 0 else ():
            after, layer = effect.after, effect.layer
            if after is not None and after.is_directory and after.mode & WORK != WORK:
                place = os.fsencode(layer.upper) + b"/" + effect.relative
                opened.enter_context(with_rights(place, after.mode, WORK, layer.notes))
                any_opened = True
        yield any_opened


class _Scanner:
    """One walk over one layer."""

    def __init__(self, layer: Layer, limit: int, touched: list[Touched] | None, known: Known | None) -> None:
        self._known = known
        self._layer = layer
        self._root = os.fsencode(layer.root)
        self._root_shown = printable_path(self._root)
        self._limit = limit
        self._touched = touched
        self._found: list[Effect] = []

    def effects(self) -> list[Effect]:
        try:
            upper = os.open(self._layer.upper, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError as error:
            raise self._unreadable(b"", error) from error
        try:
            seen = os.fstat(upper)
            with (
                self._opened(upper, ".", state_of(seen), b"") as readable,
                below(self._layer.root, self._layer.below) as lower,
            ):
                before = Found(-1, lower.state, not self._layer.below)
                self._touch(b"", before)
                self._metadata(b"", before, self._root_state(readable, seen, lower.state))
                self._directory(readable, lower, b"", opaque=False)
        finally:
            os.close(upper)
        return self._found

    def _root_state(self, readable: int, seen: os.stat_result, before: NodeState) -> NodeState:
        """What `make_upper` could not give was not changed by anybody: an owner, attributes."""
        state = read_state(readable, ".")
        assert state is not None
        if os.geteuid() != 0 and (state.uid, state.gid) == (os.geteuid(), os.getegid()):
            state = state._replace(uid=before.uid, gid=before.gid)
        if state.xattrs != before.xattrs:
            state = with_unheld(state, before, unheld(self._layer.upper))
        return state._replace(mode=stat.S_IMODE(seen.st_mode))

    def _directory(self, upper: int, lower: Below | None, relative: bytes, *, opaque: bool) -> None:
        """`opaque`: it hides what is below it, or a directory above it does, which hides all that is below."""
        self._bound(relative)
        names = sorted(os.listdir(upper), key=os.fsencode)
        for name in names:
            self._entry(upper, lower, name, _join(relative, name), hidden=opaque)
        if opaque and lower is not None:
            for name in sorted(set(lower.names()) - set(names), key=os.fsencode):
                self._gone(lower, name, _join(relative, name))

    def _entry(self, upper: int, lower: Below | None, name: str, relative: bytes, *, hidden: bool) -> None:
        after = glance(upper, name)
        assert after is not None
        if is_whiteout(upper, name, after):
            if lower is not None:
                self._gone(lower, name, relative)
            return
        if after.is_directory:
            before = lower.find(name) if lower is not None else None
            self._touch(relative, before)
            self._subdirectory(upper, lower, name, relative, before, after, hidden)
        else:
            self._leaf(upper, lower, name, relative, after)

    def _subdirectory(
        self,
        upper: int,
        lower: Below | None,
        name: str,
        relative: bytes,
        before: Found | None,
        after: NodeState,
        hidden: bool,
    ) -> None:
        with self._opened(upper, name, after, relative) as inside:
            after = (read_state(upper, name) or after)._replace(mode=after.mode)
            if lower is None or before is None or not before.state.is_directory:
                self._add(self._effect(relative, before, after))
                self._directory(inside, None, relative, opaque=False)
                return
            opaque = hidden or is_opaque(upper, name)
            with self._entered(lower, name, relative) as inner:
                if opaque and inner.names():
                    self._add(self._effect(relative, before, after, in_place=True, replaced_directory=True))
                else:
                    self._metadata(relative, before, after)
                self._directory(inside, inner, relative, opaque=opaque)

    def _leaf(self, upper: int, lower: Below | None, name: str, relative: bytes, after: NodeState) -> None:
        """`after` was glanced at: attributes are read where the content is."""
        before, old = self._compared_with(None if lower is None else lower.glimpse(name), name, relative, after)
        start = None if old is None or before is None else before.state.size
        digest, started, unmarked = None, None, False
        if after.node is Node.FILE:
            after, digest, started, unmarked = self._content(upper, name, relative, after, start)
        else:
            after = with_attributes(upper, name, after)
        self._touch(relative, before, old)
        if before is not None and _same_content(before.state, after, old, digest):
            self._metadata(relative, before, after, digest)
            return
        if before is not None and before.state.is_directory and lower is not None:
            self._children_gone(lower, name, relative)
        grown = old is not None and old == started
        effect = self._effect(
            relative, before, after, appended=grown, digest=digest, before_digest=old, unmarked=unmarked
        )
        self._add(effect)

    def _compared_with(
        self, before: Found | None, name: str, relative: bytes, after: NodeState
    ) -> tuple[Found | None, str | None]:
        """What was there, with its attributes; the digest of its content if the new one may be the same or more.

        No digest when it cannot be read: then it cannot be shown to be the same, or an addition.
        """
        if before is None:
            return None, None
        was = before.state
        if was.node is after.node is Node.FILE and after.size >= was.size:
            known = None
            if self._known is not None and before.real:
                known = self._known(self._shown(relative), was)
            if known is not None:
                return Found(before.directory, known[0], real=True), known[1]
            with suppress(OSError):
                read = with_content(before.directory, name, was)
                return Found(before.directory, read.state, before.real), read.digest
        return Found(before.directory, with_attributes(before.directory, name, was), before.real), None

    def _metadata(self, relative: bytes, before: Found, after: NodeState, digest: str | None = None) -> None:
        """A copied-up thing with the same content: a change only if its metadata differ."""
        times_differ = not after.is_directory and before.state.mtime_ns != after.mtime_ns
        if times_differ or not before.state.same_metadata(after):
            self._add(self._effect(relative, before, after, in_place=True, digest=digest))

    def _gone(self, lower: Below, name: str, relative: bytes) -> None:
        before = lower.find(name)
        if before is None:
            return
        self._touch(relative, before)
        self._add(self._effect(relative, before, None))
        if before.state.is_directory:
            self._children_gone(lower, name, relative)

    def _children_gone(self, lower: Below, name: str, relative: bytes) -> None:
        self._bound(relative)
        with self._entered(lower, name, relative) as inside:
            for child in inside.names():
                self._gone(inside, child, _join(relative, child))

    def _touch(self, relative: bytes, before: Found | None, digest: str | None = None) -> None:
        if self._touched is not None and before is not None and before.real:
            place = self._root_shown, printable_path(relative)
            self._touched.append(Touched(place, self._shown(relative), before.state, digest))

    def _effect(
        self,
        relative: bytes,
        before: Found | None,
        after: NodeState | None,
        *,
        in_place: bool = False,
        replaced_directory: bool = False,
        appended: bool = False,
        digest: str | None = None,
        before_digest: str | None = None,
        unmarked: bool = False,
    ) -> Effect:
        place = self._root_shown, printable_path(relative)
        return Effect(
            self._layer,
            relative,
            self._root + b"/" + relative if relative else self._root,
            place,
            "/".join(place) if relative else self._root_shown,
            None if before is None else before.state,
            after,
            in_place,
            replaced_directory,
            appended,
            digest,
            before is not None and before.real,
            before_digest,
            unmarked,
        )

    def _shown(self, relative: bytes) -> str:
        return f"{self._root_shown}/{printable_path(relative)}" if relative else self._root_shown

    @contextmanager
    def _opened(self, directory: int, name: str, state: NodeState, relative: bytes) -> Generator[int]:
        """A directory of the layer, opened even if the command took its owner's rights away."""
        with ExitStack() as opened:
            try:
                descriptor = opened.enter_context(opened_up(directory, name, state.mode, self._layer.notes, READ))
            except OSError as error:
                raise self._unreadable(relative, error) from error
            yield descriptor

    @contextmanager
    def _entered(self, lower: Below, name: str, relative: bytes) -> Generator[Below]:
        with ExitStack() as opened:
            try:
                inside = opened.enter_context(lower.enter(name))
            except OSError as error:
                raise self._unreadable(relative, error) from error
            yield inside

    def _bound(self, relative: bytes) -> None:
        if relative.count(b"/") > DEEPEST:
            raise SandboxError(f"{os.fsdecode(relative[:80])}… nests deeper than {DEEPEST} directories: refused")

    def _content(self, upper: int, name: str, relative: bytes, state: NodeState, start: int | None) -> Content:
        """A file of the layer, and how its first `start` bytes begin it."""
        try:
            return with_content(upper, name, state, start)
        except PermissionError:
            return self._content_opened_up(upper, name, relative, state, start)
        except OSError as error:
            raise self._unreadable(relative, error) from error

    def _content_opened_up(
        self, upper: int, name: str, relative: bytes, state: NodeState, start: int | None
    ) -> Content:
        """Reads a file that the command made unreadable; it is ours, in our layer, and gets its mode back."""
        try:
            with with_rights(at(upper, name), state.mode, 0o400, self._layer.notes):
                return with_content(upper, name, state, start)
        except OSError as error:
            raise self._unreadable(relative, error) from error

    def _add(self, effect: Effect) -> None:
        if len(self._found) >= self._limit:
            raise SandboxError(
                f"the command changes more than {self._limit} paths below {self._layer.root}: refused"
            )
        self._found.append(effect)

    def _unreadable(self, relative: bytes, error: OSError) -> SandboxError:
        place = os.fsdecode(os.path.join(os.fsencode(self._layer.root), relative))
        return SandboxError(
            f"cannot read what the command did to {place!r}: {error.strerror}; nothing of it was applied"
        )


def _join(relative: bytes, name: str) -> bytes:
    raw = os.fsencode(name)
    return relative + b"/" + raw if relative else raw


def _same_content(was: NodeState, after: NodeState, old: str | None, new: str | None) -> bool:
    if was.node is not after.node:
        return False
    if after.node is Node.FILE:
        return was.size == after.size and old is not None and old == new
    return (was.target, was.rdev) == (after.target, after.rdev)
