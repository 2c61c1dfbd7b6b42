"""Finds new files that a program would load in place of what the user has, although both stay there.

Python prefers `x/__init__.py` to `x.so`, `x.so` to `x.py`, and `x.py` to a directory `x` without `__init__.py`.
Node and its bundlers complete `./x` to `x`, `x.js`, `x.ts`, `x.json` or `x/index.js`, each in an order of its own.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field

_OWN_MODULE = "Python imports it in place of its own module of this name"
_IN_PLACE = "programs may load it in place of {}"
_LIBRARIES = frozenset({"so", "pyd"})
_SCRIPTS = frozenset({"js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx"})
_AFTER_SCRIPTS = frozenset({"json", "node", "wasm"})

_Names = dict[str, set[str]]


@dataclass(slots=True)
class Shadowing:
    """Looks at the user's directories, each once."""

    _listed: dict[bytes, _Names] = field(default_factory=dict[bytes, _Names])

    def reason(self, path: bytes, *, is_new: bool) -> str | None:
        """Return why the file at a path may be loaded in place of another; None if it is not."""
        directory, _, raw = path.rpartition(b"/")
        name = os.fsdecode(raw)
        stem, ending = _split(name)
        if stem == "__init__" and (ending == "py" or ending in _LIBRARIES):
            return self._package(directory, is_new=is_new)
        if ending == "py" or ending in _LIBRARIES:
            if _is_own_module(stem) and not os.path.isfile(directory + b"/__init__.py"):
                return _OWN_MODULE
            return self._module(directory, stem, ending) if is_new else None
        return self._script(directory, name) if is_new else None

    def _package(self, package: bytes, *, is_new: bool) -> str | None:
        directory, _, raw = package.rpartition(b"/")
        name = os.fsdecode(raw)
        if _is_own_module(name) and not os.path.isfile(directory + b"/__init__.py"):
            return _OWN_MODULE
        if not is_new:
            return None
        beside = self._names(directory).get(name, set())
        other = min((one for one in beside if _split(one)[1] in {"py", *_LIBRARIES}), default=None)
        if other is None and self._holds_modules(package):
            other = f"the directory {name}"
        return None if other is None else _IN_PLACE.format(other)

    def _module(self, directory: bytes, stem: str, ending: str) -> str | None:
        beside = self._names(directory).get(stem, set())
        if ending in _LIBRARIES and f"{stem}.py" in beside:
            return _IN_PLACE.format(f"{stem}.py")
        modules = stem in beside and self._holds_modules(directory + b"/" + os.fsencode(stem))
        return _IN_PLACE.format(f"the directory {stem}") if modules else None

    def _holds_modules(self, directory: bytes) -> bool:
        return any(_split(one)[1] == "py" for names in self._names(directory).values() for one in names)

    def _script(self, directory: bytes, name: str) -> str | None:
        stem, dot, ending = name.rpartition(".")
        if not dot:
            stem, ending = name, ""
        elif ending not in _SCRIPTS | _AFTER_SCRIPTS:
            return None
        later = _AFTER_SCRIPTS if ending in _AFTER_SCRIPTS else _SCRIPTS | _AFTER_SCRIPTS
        taken_before = {f"{stem}.{one}" for one in later} - {name}
        beside = self._names(directory).get(stem.partition(".")[0], set())
        other = min(beside & taken_before, default=None)
        inner = directory + b"/" + os.fsencode(stem)
        if other is None and dot and any(_split(one)[1] in _SCRIPTS for one in self._names(inner).get("index", ())):
            other = f"{stem}/index"
        return None if other is None else _IN_PLACE.format(other)

    def _names(self, directory: bytes) -> _Names:
        """Return the names in a directory of the user's, by what stands before the first dot."""
        if directory not in self._listed:
            found: _Names = {}
            with suppress(OSError):
                for raw in os.listdir(directory):
                    name = os.fsdecode(raw)
                    found.setdefault(name.partition(".")[0], set()).add(name)
            self._listed[directory] = found
        return self._listed[directory]


def _split(name: str) -> tuple[str, str]:
    """Return what stands before the first dot, and the last ending: `x.abi3.so` is a library of the name x."""
    stem, _, rest = name.partition(".")
    return stem, rest.rpartition(".")[2] if rest.endswith((".so", ".pyd")) else rest


def _is_own_module(name: str) -> bool:
    return name in sys.stdlib_module_names or name.startswith("_sysconfigdata")
