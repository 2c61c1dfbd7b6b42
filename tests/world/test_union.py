"""The view's files, read without a mount."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from artoo.ports.world import Files
from artoo.world.union import RealFiles, Union
from artoo.world.view_place import Stratum

ACTOR = Path(__file__).with_name("overlay_world.py")
Seen = tuple[list[list[str]], list[list[str]]]


def act(seed: int, steps: int, root: Path, below: list[Path], upper: Path | None) -> Seen:
    """Random changes in a real overlay over `root`, and what the kernel shows then."""
    for folder in (root, *([upper, upper.with_name("work")] if upper else [])):
        folder.mkdir(parents=True, exist_ok=True)
    places = {
        "root": str(root),
        "below": [str(one) for one in below],
        "upper": str(upper) if upper else "",
        "work": str(upper.with_name("work")) if upper else "",
    }
    prefix = ["unshare", "--user", "--map-root-user", "--mount"] if upper else []
    done = subprocess.run(
        [*prefix, sys.executable, str(ACTOR), str(seed), str(steps)],
        input=json.dumps(places),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "mount" in done.stderr:
        pytest.skip(f"no overlay can be mounted here: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    snapshot, leads = json.loads(done.stdout)
    return snapshot, leads


def seen(files: Files, root: Path) -> list[list[str]]:
    """The same as the kernel's snapshot, through `Files`."""
    found: list[list[str]] = []
    for name in files.names(root):
        path = root / name
        place = files.at(path)
        assert place is not None, path
        if place.is_symlink():
            found.append([str(path), "link", str(place.readlink())])
        elif place.is_dir():
            found += [[str(path), "directory", ""], *seen(files, path)]
        else:
            found.append([str(path), "file", place.read_text()])
    return sorted(found)


def leads(files: Files, path: str) -> str | None:
    """Where a path leads, as the kernel says it; None for what is not there."""
    try:
        end = files.resolve(Path(path))
    except OSError as error:
        return os.strerror(error.errno or 0)
    return str(end) if files.at(end) is not None else None


def assert_same(files: Files, root: Path, kernel: Seen) -> None:
    snapshot, places = kernel
    assert seen(files, root) == snapshot
    for path, place in places:
        if place == os.strerror(errno.ENOTDIR):  # realpath goes on by name there; nothing is at its end
            assert leads(files, path) in (None, place) or ".." in path
        elif "/.." not in path or place == os.strerror(errno.ELOOP):
            assert leads(files, path) == place, path


@pytest.mark.parametrize("seed", range(12))
def test_layers_read_as_the_kernel_shows_them(tmp_path: Path, seed: int) -> None:
    """Whatever was done in a view, in a fork over it and in one over that, is read as a mount would show it."""
    root, uppers = tmp_path / "root", [tmp_path / str(number) / "up" for number in range(3)]
    assert_same(RealFiles(), root, act(seed, 60, root, [], None))
    below: list[Path] = []
    for number, upper in enumerate(uppers):
        kernel = act(100 * (number + 1) + seed, 40, root, below, upper)
        below.insert(0, upper)
        assert_same(Union((Stratum(root, tuple(below)),)), root, kernel)


def test_a_copy_hides_the_real_directory(tmp_path: Path) -> None:
    """Where no overlay can be had the topmost copy is all that is there."""
    root, copy = tmp_path / "root", tmp_path / "copy"
    root.mkdir()
    copy.mkdir()
    (root / "a").write_text("real")
    (copy / "b").write_text("copied")
    files = Union((Stratum(root, (copy,), whole=True),))
    assert files.names(root) == ("b",) and files.at(root / "a") is None
    assert files.at(root / "b") == copy / "b"


def test_a_root_inside_another_is_read_through_its_own_layers(tmp_path: Path) -> None:
    """The way to a root is there even where the layer around it knows nothing of it; the rest is not."""
    scratch, upper, root = tmp_path / "scratch", tmp_path / "up", tmp_path / "home"
    for folder in (scratch, upper, root):
        folder.mkdir()
    (upper / "new").write_text("n")
    (root / "old").write_text("o")
    files = Union((Stratum(Path("/tmp"), (scratch,), whole=True), Stratum(root, (upper,))))
    assert files.names(root) == ("new", "old")
    if root.is_relative_to("/tmp"):
        assert files.names(Path("/tmp")) == (root.parts[2],)
        assert files.at(scratch / "x") is None


def test_what_lies_outside_all_layers_is_the_disks(tmp_path: Path) -> None:
    """Roots that are not overlaid pass through; what is no directory, or not there, has no names."""
    (tmp_path / "there").write_text("t")
    for files in (RealFiles(), Union(())):
        assert files.names(tmp_path) == ("there",) and files.at(tmp_path / "there") == tmp_path / "there"
        assert files.at(tmp_path / "nothing") is None
        assert files.resolve(tmp_path / "x" / ".." / "y") == tmp_path / "y"
        with pytest.raises(NotADirectoryError):
            files.names(tmp_path / "there")
        with pytest.raises(FileNotFoundError):
            files.names(tmp_path / "nothing")
