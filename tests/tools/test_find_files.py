"""Files by name or path pattern: in the project by a walk, elsewhere through each kind of index."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from tool_doubles import MakeToolbox, said

from artoo.contracts.execution import CallStatus
from artoo.ports.sandbox import Roots
from artoo.tools.builtin.find_files import FindFiles
from artoo.tools.core.registry import SubTaskToolbox
from artoo.tools.files.search import MAX_FOUND, FileQuery, FileSearch
from artoo.tools.files.walk import WalkLimits
from artoo.workspace.files.rooted import real_files


@pytest.fixture
def documents(roots: Roots) -> Path:
    place = roots.home / "Documents"
    for path in ("Report 2024.pdf", "old/report-2023.PDF", "old/notes.txt", "Reports/x.md", ".hidden/report.pdf"):
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text("x")
    return place


def make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")


def spotlight(folder: Path, script: str) -> FileSearch:
    """A search whose `mdfind` is a script of the test."""
    folder.mkdir(exist_ok=True)
    path = folder / "program"
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return FileSearch(str(path))


async def test_files_are_listed_and_counted(toolbox: SubTaskToolbox, roots: Roots) -> None:
    """The count is in the record and in the first line; hidden directories are left out, and named."""
    make(roots.project, "b.py", "a.py", "src/c.py", "src/d.txt", ".venv/e.py")
    call = await toolbox.call("find_files", {"pattern": "**/*.py"})
    assert (call.status, call.result_count) == (CallStatus.OK, 3)
    assert call.output.splitlines() == [
        "3 files match **/*.py",
        "a.py",
        "b.py",
        "src/c.py",
        "(hidden directories were not searched: .venv)",
    ]
    assert (await toolbox.call("find_files", {"pattern": ".venv/*.py"})).result_count == 1


async def test_a_pattern_may_begin_with_a_folder(toolbox: SubTaskToolbox, roots: Roots, documents: Path) -> None:
    """Absolute patterns, patterns from the home and patterns with `..` name their folder themselves."""
    make(roots.project, "a.py", "src/a.py")
    make(roots.workspace, "w.py")
    for pattern, found in (
        (f"{roots.project}/*.py", ["a.py"]),
        ("~/artoo_workspace/*.py", [str(roots.workspace / "w.py")]),
        ("src/../*.py", ["a.py"]),
        ("../Documents/old/*.txt", [str(documents / "old/notes.txt")]),
    ):
        call = await toolbox.call("find_files", {"pattern": pattern})
        assert call.output.splitlines()[1:] == found, pattern


async def test_a_search_that_stops_early_says_so(make_toolbox: MakeToolbox, roots: Roots) -> None:
    """A bound that was hit is truncation; with nothing found by then it is no answer at all."""
    make(roots.project, *(f"{number:03}.txt" for number in range(40)))
    box = make_toolbox(tools=(FindFiles(FileSearch(limits=WalkLimits(entries=10)), roots),))
    some = await box.call("find_files", {"pattern": "*.txt"})
    assert (some.status, some.truncated, some.result_count) == (CallStatus.OK, True, 10)
    none = await box.call("find_files", {"pattern": "*.zip"})
    assert none.status is CallStatus.TIMEOUT
    assert "there may be more" in said(none)


def test_a_search_of_the_home_honours_ignore_files_and_is_bounded(roots: Roots) -> None:
    """Ignored places are not searched but named, and no more than the limit is listed."""
    make(roots.home / "repo", "build/made.txt", *(f"n{number}.txt" for number in range(MAX_FOUND + 20)))
    (roots.home / "repo" / ".gitignore").write_text("build/\n")
    found = FileSearch().search(FileQuery("*.txt", (roots.home,), indexed=True), real_files())
    assert (len(found.paths), found.count) == (MAX_FOUND, MAX_FOUND + 20)
    assert found.remarks == ("(ignored files were not searched: repo/build/)",)
    assert not any("build" in path for path in found.paths)


def test_spotlight_is_asked_and_its_answer_checked(documents: Path, tmp_path: Path) -> None:
    """mdfind gets the folder and a condition; names that do not fit, or are gone, are left out."""
    log = tmp_path / "arguments"
    script = f"""printf '%s\\n' "$@" > {log}
printf '%s\\0' {documents}/gone.pdf "{documents}/Report 2024.pdf" {documents}/old/notes.txt /etc/report.pdf"""
    search = spotlight(tmp_path / "bin", script)
    found = search.search(FileQuery("*.pdf", (documents,), indexed=True), real_files())
    assert found.paths == (str(documents / "Report 2024.pdf"),)
    assert found.how == "Spotlight"
    assert log.read_text().splitlines() == ["-0", "-onlyin", str(documents), 'kMDItemFSName == "*.pdf"c']


@pytest.mark.parametrize("script", ["exit 2", "exit 0", "kill -9 $$", "yes /x/notes.txt | tr '\\n' '\\0'"])
def test_spotlight_falls_back_to_a_walk(documents: Path, tmp_path: Path, script: str) -> None:
    """No database, no answer, a crash and an answer without end end in a walk."""
    search = spotlight(tmp_path / "bin", script)
    found = search.search(FileQuery("notes.txt", (documents,), indexed=True), real_files())
    assert found.paths == (str(documents / "old" / "notes.txt"),)
    assert "own walk" in found.how
