"""Stages one file write without running anything: `write_file` goes through the same door as the shell."""

from __future__ import annotations

import asyncio
import os
import stat
import uuid
from pathlib import Path

from artoo.contracts.changes import printable_path
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import SandboxRequest, StagedChanges
from artoo.world.began import Began
from artoo.world.classify import Places
from artoo.world.describe import describe
from artoo.world.mounts import MountTable
from artoo.world.scan import scan
from artoo.world.stage import Stage, make_stage, overlay_roots
from artoo.world.staged import Staged


async def stage_write(request: SandboxRequest, path: Path, content: bytes, artoo_home: Path) -> StagedChanges:
    """The changes that writing `content` to `path` would be: new directories, and the file.

    Links are resolved first, so what is shown is what would be written. Raises SandboxError when the place is
    outside every root or cannot hold a file.
    """
    return await asyncio.to_thread(_stage, request, path, content, artoo_home)


def _stage(request: SandboxRequest, path: Path, content: bytes, artoo_home: Path) -> StagedChanges:
    real = Path(os.path.realpath(request.cwd / path))
    roots = overlay_roots(request.roots, MountTable.read())
    began = Began.now()
    stage = make_stage(artoo_home / "stage", uuid.uuid4().hex, roots)
    try:
        _lay_down(stage, real, content)
        effects = scan(stage.layers, request.limits.paths)
        changes = describe(effects, Places.of(request.roots, artoo_home), request.ledger)
    except BaseException:
        stage.discard()
        raise
    return Staged(
        request, stage, effects, changes, meanwhile=began.until(Began.now()), undo_home=artoo_home / "undo"
    )


def _lay_down(stage: Stage, real: Path, content: bytes) -> None:
    layer = stage.layer_of(os.fsencode(real))
    shown = printable_path(os.fsencode(real))
    if layer is None or real == layer.root:
        raise SandboxError(f"{shown} is outside home, workspace and project: nothing may be written there")
    seen = real.lstat() if os.path.lexists(real) else None
    if seen is not None and not stat.S_ISREG(seen.st_mode):
        raise SandboxError(f"{shown} is not a regular file: choose another path")
    relative = real.relative_to(layer.root)
    upper, lower = layer.upper, layer.root
    for part in relative.parts[:-1]:
        upper, lower = upper / part, lower / part
        _make_directory(upper, lower, shown)
    target = upper / relative.name
    try:
        target.write_bytes(content)
    except OSError as error:
        raise SandboxError(f"cannot stage a write to {shown}: {error.strerror}") from error
    if seen is not None:
        _dress_like(real, seen, target)


def _make_directory(upper: Path, lower: Path, shown: str) -> None:
    """A directory of the upper layer as overlayfs would copy it up: like the one below, or new."""
    try:
        seen = lower.lstat() if os.path.lexists(lower) else None
        if seen is not None and not stat.S_ISDIR(seen.st_mode):
            raise SandboxError(f"{shown} cannot be written: {lower} is not a directory")
        upper.mkdir()
        if seen is not None:
            _dress_like(lower, seen, upper)
    except OSError as error:
        raise SandboxError(f"cannot stage a write to {shown}: {error.strerror}") from error


def _dress_like(lower: Path, seen: os.stat_result, upper: Path) -> None:
    """Owner, mode and attributes as they are below, so that only the content differs."""
    os.chown(upper, seen.st_uid, seen.st_gid)
    if hasattr(os, "listxattr"):
        for name in os.listxattr(lower, follow_symlinks=False):
            if not name.startswith(("security.", "trusted.")):
                os.setxattr(upper, name, os.getxattr(lower, name, follow_symlinks=False), follow_symlinks=False)
    upper.chmod(stat.S_IMODE(seen.st_mode))
