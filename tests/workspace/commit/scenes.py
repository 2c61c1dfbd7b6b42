"""A project and every kind of change to it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def fill(project: Path) -> None:
    """Make the tree before."""
    for name in ("over", "over2", "gone", "mode", "swap", "log", "touched", "labelled"):
        (project / name).write_text(f"old {name}\n")
    (project / "tree" / "inner").mkdir(parents=True)
    (project / "tree" / "inner" / "leaf").write_text("leaf")
    (project / "tree").chmod(0o750)
    (project / "link").symlink_to("log")
    (project / "again" / "deep").mkdir(parents=True)
    for name in ("again/a", "again/old", "again/deep/old"):
        (project / name).write_text(name)
    os.link(project / "over2", project / "twin")
    (project / "removed").mkdir()
    (project / "removed" / "x").write_text("x")
    _same_times(project, 1_000_000_000)
    os.utime(project / "removed", ns=(1_000_000_000, 2_000_000_000))


def change(project: Path) -> None:
    """Make every kind of change."""
    (project / "over").write_text("new over\n")
    (project / "over2").unlink()
    (project / "over2").write_text("its own now\n")
    (project / "gone").unlink()
    (project / "mode").chmod(0o711)
    os.utime(project / "touched", ns=(1, 3_000_000_000))
    os.setxattr(project / "labelled", "user.label", b"\xff\x00")
    (project / "swap").unlink()
    (project / "swap" / "deep").mkdir(parents=True)
    (project / "swap" / "deep" / "s").write_text("s")
    shutil.rmtree(project / "tree")
    (project / "tree").write_text("file now")
    (project / "link").unlink()
    (project / "link").symlink_to("mode")
    (project / "new" / "m").mkdir(parents=True)
    (project / "new" / "m" / "n").write_text("n")
    os.link(project / "new" / "m" / "n", project / "new" / "n2")
    (project / "new").chmod(0o710)
    shutil.rmtree(project / "again")
    (project / "again" / "deep").mkdir(parents=True)
    for name in ("again/a", "again/b", "again/deep/a"):
        (project / name).write_text(f"new {name}")
    shutil.rmtree(project / "removed")
    _same_times(project, 4_000_000_000)


def _same_times(project: Path, mtime_ns: int) -> None:
    """Give all new files the same time, so that trees made in a row are equal."""
    for directory, names, files in os.walk(project):
        for path in (Path(directory, name) for name in (*names, *files)):
            if not (path.is_dir() and not path.is_symlink()) and path.lstat().st_mtime_ns > 10_000_000_000:
                os.utime(path, ns=(1_000_000_000, mtime_ns), follow_symlinks=False)
