"""Patterns of paths, and the walk below a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo.contracts.errors import ToolError
from artoo.tools.files.glob_patterns import path_pattern
from artoo.tools.files.walk import EntryKind, Walk, WalkLimits
from artoo.workspace.files.rooted import RealFiles


def make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("*.py", ["a.py", "src/b.py", "a/b/c.py"], ["a.pyx", "a.py/b"]),
        ("./*.py", ["a.py"], ["src/b.py"]),
        ("src/*.py", ["src/b.py", "src/c/b.py"], ["a.py"]),
        ("./src/*.py", ["src/b.py"], ["a.py", "src/c/b.py"]),
        ("src/**/*.py", ["src/b.py", "src/a/b/c.py"], ["a.py", "xsrc/b.py"]),
        ("**/*.py", ["a.py", "b/a.py"], ["a.txt"]),
        ("**/test/**", ["test/a", "x/test/a/b"], ["testing/a"]),
        ("a?c/[xy].{md,txt}", ["abc/x.md", "abc/y.txt"], ["a/c/x.md", "abc/z.md", "abc/x.rst"]),
        ("[!a]*/b", ["cd/b"], ["ad/b", "c/d/b"]),
        ("**", ["a", "a/b"], []),
        ("***", ["a"], []),
    ],
)
def test_a_pattern_matches_whole_paths_name_by_name(pattern: str, fits: list[str], fits_not: list[str]) -> None:
    """Wildcards stay within a name, `**` crosses directories, a pattern without a slash works at any depth."""
    matcher = path_pattern(pattern)
    assert [path for path in fits if not matcher.matches(path)] == []
    assert [path for path in fits_not if matcher.matches(path)] == []


def test_a_walk_ends_at_its_time_limit(tmp_path: Path) -> None:
    """Time is bounded as well as entries."""
    make(tmp_path, "a", "b", "c")
    walk = Walk(tmp_path, WalkLimits(seconds=0.0))
    assert list(walk) == []
    assert not walk.complete


def test_a_walk_honours_ignore_files_as_git_does(tmp_path: Path) -> None:
    """Inner files overrule outer ones, directories are pruned, and .git is never entered."""
    make(tmp_path, "a.log", "keep/b.log", "build/c.txt", "src/d.txt", "src/e.tmp", ".git/f")
    (tmp_path / ".gitignore").write_text("*.log\nbuild/\n# comment\n\\#odd\n")
    (tmp_path / "keep" / ".gitignore").write_text("!b.log\n")
    (tmp_path / "src" / ".gitignore").write_bytes(b"*.tmp\n\xff\xfe\n")
    files = {entry.path for entry in Walk(tmp_path, honour_ignore=True) if entry.kind is EntryKind.FILE}
    assert files == {".gitignore", "keep/.gitignore", "keep/b.log", "src/.gitignore", "src/d.txt"}


def test_unreadable_directories_are_remembered(tmp_path: Path) -> None:
    """A directory that cannot be read is named; an unreadable root is an error."""
    make(tmp_path, "open/x", "shut/x")

    class OneShut(RealFiles):
        def names(self, directory: Path) -> tuple[str, ...]:
            if directory.name == "shut":
                raise PermissionError(13, "Permission denied")
            return super().names(directory)

    walk = Walk(tmp_path, files=OneShut())
    assert "open/x" in [entry.path for entry in walk]
    assert walk.unreadable == ["shut"]
    with pytest.raises(ToolError, match="cannot list"):
        list(Walk(tmp_path / "nowhere"))
