"""What was in a tree when its copy was made: the base that a submission is compared with.

<layer>/manifest.jsonl   one line a path: the original's identity, the copy's, and what it held
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import orjson

from artoo.contracts.changes import Node
from artoo.contracts.errors import SandboxError


@dataclass(frozen=True, slots=True)
class Base:
    """One path of the original as it was copied.

    `tree` is `project` or `workspace`, `path` printable and relative to it (empty for the tree itself). `content`:
    sha256 of a file, the target of a link, else empty. `stamp` tells whether the copy was touched since (inode,
    size, ctime in ns; zeros for what is no file). `copied` False: it was left out (credentials, special files,
    what cannot be read), so that its absence from the copy says nothing.
    """

    tree: str
    path: str
    node: Node
    mode: int
    content: str = ""
    stamp: tuple[int, int, int] = (0, 0, 0)
    copied: bool = True


Manifest = Mapping[tuple[str, str], Base]
"""Bases by tree and path."""


def write_manifest(place: Path, bases: Iterable[Base]) -> None:
    """Writes the manifest, durable. Raises OSError."""
    with place.open("xb") as file:
        for base in bases:
            file.write(orjson.dumps(asdict(base)) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read_manifest(place: Path) -> Manifest:
    """Raises SandboxError when it is missing or damaged."""
    try:
        lines = place.read_bytes().splitlines()
        bases = [_base(cast("dict[str, object]", orjson.loads(line))) for line in lines]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise SandboxError(f"the manifest {place} cannot be read ({error}); submit this work again") from error
    return {(base.tree, base.path): base for base in bases}


def _base(fields: Mapping[str, object]) -> Base:
    inode, size, changed = cast("tuple[int, int, int]", fields["stamp"])
    return Base(
        tree=str(fields["tree"]),
        path=str(fields["path"]),
        node=Node(fields["node"]),
        mode=cast("int", fields["mode"]),
        content=str(fields["content"]),
        stamp=(inode, size, changed),
        copied=bool(fields["copied"]),
    )
