"""The positive rule for what may take effect unasked (SPEC section 8.3): everything that it does not name asks.

Ordinary is a regular file, or a new directory, whose path has no hidden name, no character that cannot be seen and
no name that a tool starts by itself, with no execute bit, access list, extended attribute or second hard link, and
with this user as its owner. The directory that holds it is always one: the walk that found the file follows no
link.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cache
from importlib import resources

from artoo.contracts.changes import Node, is_visible
from artoo.contracts.settling import ChangeClass
from artoo.workspace.changes.effect import Effect
from artoo.workspace.changes.path_class import Places
from artoo.workspace.changes.verdict import Verdict
from artoo.workspace.fs.stat import NodeState

_MODULE_ENDINGS = ("py", "so", "pyd", "pyc")
_HIDDEN = Verdict(ChangeClass.PERSISTENCE, "its name is hidden, and programs read such files by themselves")
_INVISIBLE = Verdict(ChangeClass.PERSISTENCE, "its name has characters that cannot be seen")
_STARTED = Verdict(ChangeClass.PERSISTENCE, "a build tool, test runner or interpreter starts it by itself")
_SHADOWS = Verdict(ChangeClass.PERSISTENCE, "Python imports it in place of its own module of this name")
_EXECUTABLE = Verdict(ChangeClass.MODE, "it can be executed")
_ATTRIBUTES = Verdict(ChangeClass.MODE, "it has an access list or extended attributes")
_LINKED = Verdict(ChangeClass.MODE, "it has other names (hard links)")
_FOREIGN = Verdict(ChangeClass.MODE, "it belongs to another user or group")
_SPECIAL_MODE = Verdict(ChangeClass.MODE, "its mode has special bits")


@dataclass(slots=True)
class SilentRule:
    """The rule over one change set. `packages`: real directories that hold the user's own `__init__.py`."""

    places: Places
    _packages: dict[bytes, bool] = field(default_factory=dict[bytes, bool])
    _groups: dict[bytes, int | None] = field(default_factory=dict[bytes, int | None])

    def unusual(self, effect: Effect) -> Verdict | None:
        """Return why a path of project or output folder is not ordinary; None if it is, or lies elsewhere."""
        below = self.places.below_bounds(effect.path)
        if below is None:
            return None
        found = name_verdict(below.split(b"/"), is_directory=_is_directory(effect)) if below else None
        if found is None and self._shadows(effect):
            found = _SHADOWS
        return found or self._metadata(effect)

    def _metadata(self, effect: Effect) -> Verdict | None:
        after = effect.after
        if after is None or effect.in_place:
            return None
        if after.node is Node.FILE:
            return self._file(effect, after)
        if after.is_directory:
            return self._directory(effect, after)
        return None  # links and special files are never ordinary: the table says so

    def _file(self, effect: Effect, after: NodeState) -> Verdict | None:
        if after.mode & 0o111:
            return _EXECUTABLE
        if after.mode & 0o7000:
            return _SPECIAL_MODE
        if after.xattrs:
            return _ATTRIBUTES
        if max(after.links, 0 if effect.before is None else effect.before.links) > 1:
            return _LINKED
        return None if self._is_ours(effect, after) else _FOREIGN

    def _directory(self, effect: Effect, after: NodeState) -> Verdict | None:
        if after.mode & 0o5000 or (after.mode & 0o2000 and self._group_above(effect.path) is None):
            return _SPECIAL_MODE
        if after.xattrs:
            return _ATTRIBUTES
        return None if self._is_ours(effect, after) else _FOREIGN

    def _is_ours(self, effect: Effect, after: NodeState) -> bool:
        """True if the owner is this user, and the group this user's, the old one, or given by the directory."""
        groups = {os.getegid(), self._group_above(effect.path)}
        before = effect.before
        if before is not None and before.node is Node.FILE:
            groups.add(before.gid)
        return after.uid == os.geteuid() and after.gid in groups

    def _group_above(self, path: bytes) -> int | None:
        """Return the group that the user's directory gives to new files (set-group-id), if it gives one."""
        directory = path.rpartition(b"/")[0]
        if directory not in self._groups:
            try:
                seen = os.lstat(directory)
                self._groups[directory] = seen.st_gid if seen.st_mode & 0o2000 else None
            except OSError:  # the task made it
                above = directory.rpartition(b"/")[0]
                self._groups[directory] = self._group_above(directory) if above else None
        return self._groups[directory]

    def _shadows(self, effect: Effect) -> bool:
        """True if a file is imported in place of a module of the standard library.

        A module inside a package of the user's own is not, as long as no program is started from inside of it.
        """
        if effect.after is None or effect.after.is_directory:
            return False
        directory, _, name = effect.path.rpartition(b"/")
        module, _, ending = os.fsdecode(name).partition(".")
        if module == "__init__":
            directory, _, name = directory.rpartition(b"/")
            module = os.fsdecode(name)
        if not ending.endswith(_MODULE_ENDINGS) or module not in sys.stdlib_module_names:
            return False
        return not self._is_package(directory)

    def _is_package(self, directory: bytes) -> bool:
        if directory not in self._packages:
            self._packages[directory] = os.path.isfile(directory + b"/__init__.py")
        return self._packages[directory]


def _is_directory(effect: Effect) -> bool:
    return all(state is None or state.is_directory for state in (effect.before, effect.after))


def name_verdict(parts: Sequence[bytes], *, is_directory: bool) -> Verdict | None:
    """Return why the names of a path below project or output folder are not ordinary; None if they are."""
    for part in parts:
        if part.startswith(b"."):
            return _HIDDEN
        if not _all_visible(part):
            return _INVISIBLE
    folded = [os.fsdecode(part).casefold() for part in parts]
    return _STARTED if _start_names().match(folded, is_directory=is_directory) else None


def _all_visible(name: bytes) -> bool:
    if name.isascii():
        return name.decode().isprintable()
    try:
        return all(map(is_visible, name.decode()))
    except UnicodeDecodeError:
        return False


@dataclass(frozen=True, slots=True)
class StartNames:
    """The names of `start_names.txt`, in the forms in which they are compared."""

    exact: frozenset[str]
    pattern: re.Pattern[str]
    directories: frozenset[str]
    directory_pattern: re.Pattern[str]
    pairs: frozenset[tuple[str, str]]

    @classmethod
    def parse(cls, lines: Iterable[str]) -> StartNames:
        found = [line.strip().casefold() for line in lines]
        names = [line for line in found if line and not line.startswith("#")]
        directories = [name.rstrip("/") for name in names if name.endswith("/")]
        pairs = [tuple(name.split("/")) for name in names if "/" in name.rstrip("/")]
        files = [name for name in names if "/" not in name]
        return cls(
            frozenset(name for name in files if not _is_pattern(name)),
            _any_of(name for name in files if _is_pattern(name)),
            frozenset(name for name in directories if not _is_pattern(name)),
            _any_of(name for name in directories if _is_pattern(name)),
            frozenset((pair[0], pair[1]) for pair in pairs),
        )

    def match(self, parts: Sequence[str], *, is_directory: bool) -> bool:
        """True if a path, by its casefolded names, has a name that is started by itself."""
        *above, name = parts
        if not is_directory and (name in self.exact or self.pattern.match(name)):
            return True
        if above and (above[-1], name) in self.pairs:
            return True
        return any(part in self.directories or self.directory_pattern.match(part) for part in parts)


def _is_pattern(name: str) -> bool:
    return "*" in name or "?" in name


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    joined = "|".join(translate(pattern) for pattern in patterns)
    return re.compile(joined or r"(?!)")


@cache
def _start_names() -> StartNames:
    text = resources.files("artoo.workspace.changes").joinpath("start_names.txt").read_text("utf-8")
    return StartNames.parse(text.splitlines())
