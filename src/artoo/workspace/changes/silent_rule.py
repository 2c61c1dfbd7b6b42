"""Decide if a change may apply without approval (`--apply new`), by name, mode, and shadowed program files.

A change that this rule does not permit needs approval. Reference: SPEC section 8.3.

An ordinary path is a regular file or a new directory. Its path has no hidden name, no invisible character and no
name that a tool starts by itself. It has no execute bit, access list, extended attribute or second hard link, and
this user owns it. No program would load it instead of another file or module. Its parents are real directories,
because the walk that finds changes follows no links.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from glob import escape, glob

from artoo.contracts.changes import Node
from artoo.contracts.settling import ChangeClass
from artoo.workspace.changes.effect import Effect, Verdict
from artoo.workspace.changes.path_class import Places, why_not_ordinary
from artoo.workspace.fs.stat import NodeState

_MODULES = frozenset({"py", "so", "pyd"})
_SCRIPTS = frozenset({"js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "json", "node", "wasm"})
_PROJECTS = {"go": "", "v": "", "cs": ".csproj", "ex": "mix.exs", "vb": ".vbproj"}
"""Languages whose compiler includes every file in a directory. For some it includes the files of all directories
below a project file."""
_BASES = (
    "/usr", "/usr/local", "{project}/*", "{project}/.*", "{home}/.local", "{home}/.pyenv/versions/*",
    "{home}/.virtualenvs/*", "{home}/.local/share/virtualenvs/*", "{home}/.cache/pypoetry/virtualenvs/*",
    "{home}/*conda*", "{home}/*conda*/envs/*", "{home}/*forge*", "{home}/*forge*/envs/*",
)  # fmt: skip
"""Places of Python environments, in addition to the active one, in which installed modules are searched
(`_INSTALLED`)."""
_INSTALLED = ("lib/python3*", "lib/python3*/*-packages")


@dataclass(slots=True)
class SilentRule:
    """The rule, applied to one change set. Each of the user's directories is read only once."""

    places: Places
    _seen: dict[bytes, os.stat_result | None] = field(default_factory=dict[bytes, os.stat_result | None])
    _named: dict[str, dict[str, set[str]]] = field(default_factory=dict[str, dict[str, set[str]]])
    _modules: set[str] = field(default_factory=set[str])

    def unusual(self, effect: Effect) -> Verdict | None:
        """Return why a path in the project or the output folder is not ordinary. Return None if it is ordinary or
        lies elsewhere."""
        below = self.places.below_bounds(effect.path)
        if below is None:
            return None
        if below and (reason := why_not_ordinary(below.split(b"/"), is_directory=effect.is_directory)):
            return Verdict(ChangeClass.PERSISTENCE, reason)
        if effect.after is None or effect.in_place:
            return None
        if effect.after.node is Node.FILE and (reason := self._shadows(effect)) is not None:
            return Verdict(ChangeClass.PERSISTENCE, reason)
        reason = self._metadata(effect, effect.after)
        return None if reason is None else Verdict(ChangeClass.MODE, reason)

    def _metadata(self, effect: Effect, after: NodeState) -> str | None:
        """Return why the metadata are not ordinary, or None. Links and special files are not handled here but in
        the classification."""
        above = self._above(effect.path)
        group = above.st_gid if above is not None and above.st_mode & 0o2000 else None
        if effect.before is None and above is not None and not above.st_mode & 0o200:
            return "the directory that holds it is read-only"
        if after.node is Node.FILE and after.mode & 0o111:
            return "it can be executed"
        if after.mode & (0o7000 if after.node is Node.FILE or group is None else 0o5000):
            return "its mode has special bits"
        if after.xattrs:
            return "it has an access list or extended attributes"
        before = effect.before if effect.before is not None and effect.before.node is Node.FILE else None
        if after.node is Node.FILE and max(after.links, before.links if before is not None else 1) > 1:
            return "it has other names (hard links)"
        groups = {os.getegid(), group, None if before is None else before.gid}
        if after.uid != os.geteuid() or after.gid not in groups:
            return "it belongs to another user or group"
        return None

    def _above(self, path: bytes) -> os.stat_result | None:
        """Return the status of the nearest parent of a path that exists. New directories below it have inherited
        its group."""
        directory = path.rpartition(b"/")[0]
        if directory not in self._seen:
            try:
                self._seen[directory] = os.lstat(directory or b"/")
            except OSError:
                self._seen[directory] = self._above(directory) if directory else None
        return self._seen[directory]

    def _shadows(self, effect: Effect) -> str | None:
        """Return why a program may load a file instead of another file or an installed module. Return None if no
        program would.

        Each language, and each JavaScript bundler, has its own order in which it tries `x.py`, `x.so` and `x/`, or
        `x`, `x.ts`, `x.json` and `x/index.js`. Any such neighbouring file counts, whatever the order is.
        """
        directory, _, name = os.fsdecode(effect.path).rpartition("/")
        stem, kinds = _kind_of(name)
        is_new = effect.before is None
        if kinds is None:
            if is_new and self._is_compiled(directory, name.rpartition(".")[2]):
                return "the compiler takes it into the package that is there, and runs its initializers"
            return None
        if kinds is _MODULES:
            if stem == "__init__":
                if is_new and any(self._holds(one, kinds) for one in (directory, *self._below(directory))):
                    return "Python runs it before the modules next to it"
                directory, stem = os.path.split(directory)
            if self._is_module(stem) and not os.path.isfile(f"{directory}/__init__.py"):
                return "Python imports it in place of an installed module of this name"
        # Neighbouring files have the same name except for the ending. Programs choose between them in their own
        # order.
        for other in sorted(self._names(directory).get(stem, ())) if is_new else ():
            is_kind = "." in other and _kind_of(other)[1] is kinds
            if is_kind or (other != name and self._holds(f"{directory}/{other}", kinds)):
                return f"programs may load it in place of {other}"
        return None

    def _is_compiled(self, directory: str, ending: str) -> bool:
        """True if a compiler includes a file with this ending, because the directory contains other source files or
        a project file."""
        if (project := _PROJECTS.get(ending)) is None:
            return False
        ends, above = (f".{ending}", project or f".{ending}"), os.path.dirname(directory)
        if any(one.endswith(ends) for group in self._names(directory).values() for one in group):
            return True
        is_within = project and self.places.below_bounds(os.fsencode(above)) is not None
        return bool(is_within) and self._is_compiled(above, ending)

    def _holds(self, directory: str, kinds: frozenset[str]) -> bool:
        """True if the user's directory can be loaded as a package, because it contains modules or an index
        script."""
        names = self._names(directory)
        found = names.values() if kinds is _MODULES else [names.get("index", set[str]())]
        return any(_kind_of(one)[1] is kinds for group in found for one in group)

    def _below(self, directory: str) -> list[str]:
        """Return the subdirectories of a directory. If they are loaded as packages, the directory's `__init__` is
        imported first."""
        with suppress(OSError):
            return [one.path for one in os.scandir(directory) if one.is_dir(follow_symlinks=False)]
        return []

    def _names(self, directory: str) -> dict[str, set[str]]:
        """Return the names in one of the user's directories, grouped by the name under which programs load them."""
        if directory not in self._named:
            found: dict[str, set[str]] = {}
            with suppress(OSError):  # the directory does not exist
                for name in os.listdir(directory):
                    found.setdefault(_kind_of(name)[0], set()).add(name)
            self._named[directory] = found
        return self._named[directory]

    def _is_module(self, name: str) -> bool:
        """True if the name is that of one of Python's own modules, or of a module installed for the user, the
        system or the project."""
        if not self._modules:
            project, home = (escape(os.fsdecode(one)) for one in (self.places.project, self.places.home))
            bases = [one.format(project=project, home=home) for one in _BASES]
            if active := os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX"):
                bases.append(escape(active))
            packages = (one for base in bases for below in _INSTALLED for one in glob(f"{base}/{below}"))
            self._modules = set(sys.stdlib_module_names).union(*map(self._names, packages))
        return name in self._modules or name.startswith("_sysconfigdata")


def _kind_of(name: str) -> tuple[str, frozenset[str] | None]:
    """Return the name under which programs load a file, and its possible endings. Return None if programs never
    load it.

    For example, `x.abi3.so` is loaded as x, and a file without an ending may be a script.
    """
    stem, dot, ending = name.rpartition(".")
    if ending in _MODULES:
        return name.partition(".")[0], _MODULES
    if ending in _SCRIPTS or not dot:
        return stem or name, _SCRIPTS
    return name, None
