"""Patterns for project files, and the walk beneath them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_doubles import MakeToolbox, said

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus
from artoo.ports.sandbox import Roots
from artoo.tools.builtin.glob import Glob
from artoo.tools.path_pattern import path_pattern
from artoo.tools.registry import SubTaskToolbox
from artoo.tools.walk import Hidden, Kind, Walk, WalkLimits
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


def test_too_many_alternatives_are_refused() -> None:
    """Braces cannot be used to make work without end."""
    with pytest.raises(ToolError, match="alternatives"):
        path_pattern("{a,b}" * 20)


@given(st.text("*?[]{},/.ab!", max_size=30), st.text("ab./", max_size=30))
def test_any_pattern_can_be_read(pattern: str, path: str) -> None:
    """No pattern fails but for its number of alternatives."""
    try:
        path_pattern(pattern).matches(path)
    except ToolError as error:
        assert "alternatives" in str(error)


async def test_files_are_listed_sorted_and_counted(toolbox: SubTaskToolbox, roots: Roots) -> None:
    """The count is in the record and in the first line; hidden directories are left out, and named."""
    make(roots.project, "b.py", "a.py", "src/c.py", "src/d.txt", ".venv/e.py")
    call = await toolbox.call("glob", {"pattern": "**/*.py"})
    assert (call.status, call.result_count) == (CallStatus.OK, 3)
    assert call.output.splitlines() == [
        "3 files match **/*.py",
        "a.py",
        "b.py",
        "src/c.py",
        "(hidden directories were not searched: .venv)",
    ]
    assert (await toolbox.call("glob", {"pattern": ".venv/*.py"})).result_count == 1


async def test_nothing_found_is_an_answer(toolbox: SubTaskToolbox) -> None:
    """An empty result is a result."""
    call = await toolbox.call("glob", {"pattern": "*.zip"})
    assert (call.status, call.result_count, call.output) == (CallStatus.OK, 0, "0 files match *.zip")


async def test_patterns_stay_in_the_project(toolbox: SubTaskToolbox, roots: Roots) -> None:
    """Absolute patterns work inside project and workspace; others are pointed to find_files."""
    make(roots.project, "a.py", "src/a.py")
    make(roots.workspace, "w.py")
    assert (await toolbox.call("glob", {"pattern": f"{roots.project}/*.py"})).result_count == 1
    inside = await toolbox.call("glob", {"pattern": "~/artoo_workspace/*.py"})
    assert inside.output.splitlines()[1:] == [str(roots.workspace / "w.py")]
    for pattern in ("/etc/*", "../*", "~/*.py", "src/../../x"):
        call = await toolbox.call("glob", {"pattern": pattern})
        assert call.status is CallStatus.ERROR
        assert "find_files" in said(call)


async def test_links_are_listed_and_never_followed(toolbox: SubTaskToolbox, roots: Roots, tmp_path: Path) -> None:
    """A loop of directories ends, and a link out of the project is not entered."""
    make(tmp_path / "outside", "secret.py")
    make(roots.project, "d/a.py")
    (roots.project / "d" / "loop").symlink_to("..")
    (roots.project / "out").symlink_to(tmp_path / "outside")
    (roots.project / "gone.py").symlink_to("nowhere")
    call = await toolbox.call("glob", {"pattern": "**/*.py"})
    assert call.output.splitlines()[1:] == ["d/a.py", "gone.py"]


async def test_a_search_that_stops_early_says_so(make_toolbox: MakeToolbox, roots: Roots) -> None:
    """A bound that was hit is truncation; with nothing found by then it is no answer at all."""
    make(roots.project, *(f"{number:03}.txt" for number in range(40)))
    box = make_toolbox(tools=(Glob(roots, limits=WalkLimits(entries=10)),))
    some = await box.call("glob", {"pattern": "*.txt"})
    assert (some.status, some.truncated, some.result_count) == (CallStatus.OK, True, 10)
    none = await box.call("glob", {"pattern": "*.zip"})
    assert none.status is CallStatus.TIMEOUT
    assert "there may be more" in said(none)


def test_a_walk_ends_at_its_time_limit(tmp_path: Path) -> None:
    """Time is bounded as well as entries."""
    make(tmp_path, "a", "b", "c")
    ticks = iter(range(100))
    walk = Walk(tmp_path, WalkLimits(seconds=1.5), monotonic=lambda: float(next(ticks)))
    assert [entry.path for entry in walk] == ["a"]
    assert not walk.complete


def test_a_walk_honours_ignore_files_as_git_does(tmp_path: Path) -> None:
    """Inner files overrule outer ones, directories are pruned, and .git is never entered."""
    make(tmp_path, "a.log", "keep/b.log", "build/c.txt", "src/d.txt", "src/e.tmp", ".git/f")
    (tmp_path / ".gitignore").write_text("*.log\nbuild/\n# comment\n\\#odd\n")
    (tmp_path / "keep" / ".gitignore").write_text("!b.log\n")
    (tmp_path / "src" / ".gitignore").write_bytes(b"*.tmp\n\xff\xfe\n")
    files = {entry.path for entry in Walk(tmp_path, honour_ignore=True) if entry.kind is Kind.FILE}
    assert files == {".gitignore", "keep/.gitignore", "keep/b.log", "src/.gitignore", "src/d.txt"}


def test_an_ignore_file_that_is_no_file_is_ignored(tmp_path: Path) -> None:
    """A pipe or a link called .gitignore is neither waited for nor followed."""
    make(tmp_path, "a/x", "b/x")
    os.mkfifo(tmp_path / "a" / ".gitignore")
    (tmp_path / "b" / ".gitignore").symlink_to("/etc/passwd")
    assert {entry.path for entry in Walk(tmp_path, honour_ignore=True)} >= {"a/x", "b/x"}


def test_hidden_entries_come_last_or_not_at_all(tmp_path: Path) -> None:
    """LAST visits hidden directories after everything else; SKIP leaves them out and names them."""
    make(tmp_path, ".cache/deep/x", "z/y/x")
    order = [entry.path for entry in Walk(tmp_path, hidden=Hidden.LAST) if entry.kind is Kind.FILE]
    assert order == ["z/y/x", ".cache/deep/x"]
    walk = Walk(tmp_path, hidden=Hidden.SKIP)
    assert [entry.path for entry in walk] == ["z", "z/y", "z/y/x"]
    assert walk.hidden_skipped == [".cache"]


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
