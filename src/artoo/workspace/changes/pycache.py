"""Compiled Python and the caches of known tools: they stay in the workspace and are never applied.

A program that needs such a cache makes it again, and a cache that a task filled is code that nobody reviewed. Only
the deletion of a whole cache directory, or of a compiled file by name, is a change like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

from artoo.workspace.changes.effect import Effect

CACHES = frozenset(
    {
        b"__pycache__",
        b".eslintcache",
        b".hypothesis",
        b".import_linter_cache",
        b".ipynb_checkpoints",
        b".mypy_cache",
        b".parcel-cache",
        b".pyre",
        b".pytest_cache",
        b".pytype",
        b".ruff_cache",
        b".sass-cache",
        b".stylelintcache",
        b".turbo",
    }
)
_COMPILED = (b".pyc", b".pyo")


def split_caches(effects: Sequence[Effect]) -> tuple[tuple[Effect, ...], tuple[Effect, ...]]:
    """Return the effects that count, and those that stay in the workspace."""
    deleted = {effect.path for effect in effects if effect.after is None}
    counted: list[Effect] = []
    left_out: list[Effect] = []
    for effect in effects:
        cache = _cache_of(effect)
        if cache is None:
            out = effect.after is not None and effect.path.endswith(_COMPILED)
        else:
            out = cache not in deleted
        (left_out if out else counted).append(effect)
    return tuple(counted), tuple(left_out)


def _cache_of(effect: Effect) -> bytes | None:
    """Return the path of the outermost cache directory that holds an effect."""
    parts = effect.relative.split(b"/")
    for number, part in enumerate(parts):
        if part in CACHES and (number < len(parts) - 1 or _is_directory(effect)):
            below = b"/".join(parts[: number + 1])
            return effect.root.rstrip(b"/") + b"/" + below
    return None


def _is_directory(effect: Effect) -> bool:
    states = (effect.before, effect.after)
    return all(state is None or state.is_directory for state in states)
