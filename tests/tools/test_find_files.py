"""Search by name over personal files, through each kind of index."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from tool_doubles import MakeToolbox, said

from artoo.contracts.execution import CallStatus
from artoo.ports.sandbox import Roots
from artoo.tools.builtin.find_files import FindFiles
from artoo.tools.index import (
    MAX_FOUND,
    FileIndex,
    FileKind,
    IndexQuery,
    Plocate,
    Spotlight,
    WalkIndex,
    choose_index,
)
from artoo.tools.registry import SubTaskToolbox
from artoo.tools.walk import WalkLimits
from artoo.workspace.files.rooted import real_files


@pytest.fixture
def documents(roots: Roots) -> Path:
    place = roots.home / "Documents"
    for path in ("Report 2024.pdf", "old/report-2023.PDF", "old/notes.txt", "Reports/x.md", ".hidden/report.pdf"):
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text("x")
    return place


def program(folder: Path, script: str) -> str:
    """A stand-in program that a test runs instead of the real one."""
    folder.mkdir(exist_ok=True)
    path = folder / "program"
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


async def test_a_part_of_a_name_finds_files_and_folders(toolbox: SubTaskToolbox, documents: Path) -> None:
    """Without wildcards any name that contains the text fits, whatever its case; shallow and visible ones first."""
    call = await toolbox.call("find_files", {"name": "report"})
    assert (call.status, call.result_count, call.target) == (CallStatus.OK, 4, "report")
    assert call.output.splitlines()[1:3] == [str(documents / "Report 2024.pdf"), str(documents / "Reports")]
    assert "own walk" in (call.ran or "")


async def test_a_pattern_and_a_folder_narrow_the_search(toolbox: SubTaskToolbox, documents: Path) -> None:
    """A pattern is for the whole name; the folder may start with `~`."""
    call = await toolbox.call("find_files", {"name": "*.pdf", "folder": "~/Documents/old"})
    assert call.output.splitlines()[1:] == [str(documents / "old" / "report-2023.PDF")]
    assert call.target == "*.pdf in ~/Documents/old"


async def test_what_cannot_be_searched_is_explained(toolbox: SubTaskToolbox, documents: Path) -> None:
    """Paths for names and folders that are not there are errors with a way out."""
    assert "give the name only" in said(await toolbox.call("find_files", {"name": "a/b.pdf"}))
    assert "there is no" in said(await toolbox.call("find_files", {"name": "a", "folder": "~/Nowhere"}))
    none = await toolbox.call("find_files", {"name": "qqq"})
    assert (none.status, none.result_count) == (CallStatus.OK, 0)


async def test_a_search_that_had_to_stop_is_no_answer_when_it_found_nothing(
    make_toolbox: MakeToolbox, roots: Roots, documents: Path
) -> None:
    """A bound that was hit is told; "nothing" is then not known."""
    index = WalkIndex(WalkLimits(entries=2))
    box = make_toolbox(tools=(FindFiles(index, roots),))
    call = await box.call("find_files", {"name": "zzz"})
    assert (call.status, call.truncated) == (CallStatus.TIMEOUT, True)
    assert "stopped at its limit" in said(call)


async def test_the_walk_honours_ignore_files_and_bounds_its_results(roots: Roots) -> None:
    """Ignored places are not searched, and no more than the limit comes back."""
    (roots.home / "repo" / "build").mkdir(parents=True)
    (roots.home / "repo" / ".gitignore").write_text("build/\n")
    (roots.home / "repo" / "build" / "made.txt").write_text("x")
    for number in range(MAX_FOUND + 20):
        (roots.home / "repo" / f"n{number}.txt").write_text("x")
    found = await WalkIndex().search(IndexQuery("*.txt", (roots.home,)), real_files())
    assert len(found.paths) == MAX_FOUND
    assert not found.complete
    assert not any("build" in path for path in found.paths)


async def test_spotlight_is_asked_and_its_answer_checked(documents: Path, tmp_path: Path) -> None:
    """mdfind gets the folder and a condition; names that do not fit, or are gone, are left out."""
    log = tmp_path / "arguments"
    script = f"""printf '%s\\n' "$@" > {log}
printf '%s\\0' {documents}/gone.pdf "{documents}/Report 2024.pdf" {documents}/old/notes.txt /etc/report.pdf"""
    index = Spotlight(program(tmp_path / "bin", script), WalkIndex())
    found = await index.search(IndexQuery("*.pdf", (documents,), FileKind.FILE), real_files())
    assert found.paths == (str(documents / "Report 2024.pdf"),)
    assert found.how == "Spotlight"
    assert log.read_text().splitlines() == ["-0", "-onlyin", str(documents), 'kMDItemFSName == "*.pdf"c']


async def test_a_name_cannot_leave_its_place_in_the_condition(documents: Path, tmp_path: Path) -> None:
    """Quotes in a pattern are escaped for Spotlight."""
    log = tmp_path / "arguments"
    index = Spotlight(program(tmp_path / "bin", f"""printf '%s\\n' "$@" > {log}"""), WalkIndex())
    await index.search(IndexQuery('a" || kMDItemFSName == "*', (documents,), whole_name=True), real_files())
    assert log.read_text().splitlines()[-1] == 'kMDItemFSName == "a\\" || kMDItemFSName == \\"*"c'


@pytest.mark.parametrize("script", ["exit 2", "exit 0", "sleep 0; kill -9 $$"])
async def test_plocate_falls_back_to_a_walk(documents: Path, tmp_path: Path, script: str) -> None:
    """No database, no answer and a crash end in a walk: a daily database does not prove absence."""
    index = Plocate(program(tmp_path / "bin", script), WalkIndex())
    found = await index.search(IndexQuery("notes.txt", (documents,), whole_name=True), real_files())
    assert found.paths == (str(documents / "old" / "notes.txt"),)
    assert "own walk" in found.how


async def test_plocate_is_asked_for_the_whole_name(documents: Path, tmp_path: Path) -> None:
    """A name without wildcards is made a pattern, since plocate would match a part; a dash starts no option."""
    log = tmp_path / "arguments"
    script = f"""printf '%s\\n' "$@" > {log}; printf '%s\\0' {documents}/old/notes.txt"""
    index = Plocate(program(tmp_path / "bin", script), WalkIndex())
    found = await index.search(IndexQuery("notes.txt", (documents,), whole_name=True), real_files())
    assert (found.how, len(found.paths)) == ("plocate", 1)
    assert log.read_text().splitlines()[-2:] == ["--", "[n]otes.txt"]


async def test_an_index_program_that_is_gone_or_never_stops_is_no_obstacle(documents: Path, tmp_path: Path) -> None:
    """A program that cannot start, or answers without end, is left for the walk or cut off."""
    query = IndexQuery("notes.txt", (documents,), whole_name=True)
    assert (await Plocate(str(tmp_path / "nowhere"), WalkIndex()).search(query, real_files())).paths
    endless = Plocate(program(tmp_path / "bin", "yes /x/notes.txt | tr '\\n' '\\0'"), WalkIndex())
    assert (await endless.search(query, real_files())).paths == (str(documents / "old" / "notes.txt"),)


@pytest.mark.parametrize(
    ("platform", "which", "kind"),
    [
        ("darwin", {"mdfind": "/usr/bin/mdfind"}, Spotlight),
        ("darwin", {"mdfind": None, "plocate": "/x"}, WalkIndex),
        ("linux", {"plocate": "/usr/bin/plocate"}, Plocate),
        ("linux", {"mdfind": "/x", "plocate": None}, WalkIndex),
        ("freebsd14", {"plocate": "/x"}, WalkIndex),
    ],
)
def test_the_index_is_the_best_that_the_machine_has(
    platform: str, which: dict[str, str | None], kind: type[FileIndex]
) -> None:
    """Spotlight on macOS, plocate on Linux, else an own walk."""
    assert isinstance(choose_index(platform, which), kind)  # pyright: ignore[reportGeneralTypeIssues]
