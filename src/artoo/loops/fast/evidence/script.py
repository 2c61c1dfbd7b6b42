"""Whether a Python script can have read anything, or only prints what stands in it."""

from __future__ import annotations

import ast
import warnings
from functools import lru_cache

_BLIND_MODULES = frozenset(
    {
        "collections",
        "dataclasses",
        "decimal",
        "fractions",
        "functools",
        "itertools",
        "json",
        "math",
        "operator",
        "re",
        "statistics",
        "string",
        "textwrap",
        "typing",
    }
)
"""Modules that compute and look at nothing."""

_DOORS = frozenset({"open", "input", "exec", "eval", "compile", "__import__", "__builtins__", "globals", "vars"})
"""Names through which a script without other imports reaches the world."""


@lru_cache(maxsize=256)
def is_blind(code: str) -> bool:
    """True when the script cannot have looked at anything. What cannot be parsed is not called blind."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return not any(_looks(node) for node in ast.walk(tree))


def _looks(node: ast.AST) -> bool:
    match node:
        case ast.Import(names=names):
            return any(name.name.partition(".")[0] not in _BLIND_MODULES for name in names)
        case ast.ImportFrom(module=module):
            return (module or "").partition(".")[0] not in _BLIND_MODULES
        case ast.Name(id=name):
            return name in _DOORS
        case ast.Attribute(attr=name):
            return name.startswith("__")
        case _:
            return False
