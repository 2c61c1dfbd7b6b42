"""Writing files: new ones only, whole or not at all."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tool_doubles import MakeToolbox, said

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus, ToolCall
from artoo.ports.sandbox import Roots
from artoo.tools.registry import SubTaskToolbox
from artoo.tools.writing import CreateOnly
from artoo.world.classify import Places


async def write(toolbox: SubTaskToolbox, path: str, content: str) -> ToolCall:
    return await toolbox.call("write_file", {"path": path, "content": content})


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_a_file_that_the_request_names_goes_to_the_project(make_toolbox: MakeToolbox, roots: Roots) -> None:
    """A name or folder of the request is in the project; other generated output is in the workspace."""
    box = make_toolbox(request="Create shopping.txt, and put charts into the folder figures.")
    first = await write(box, "shopping.txt", "milk\n")
    second = await write(box, "figures/a.svg", "<svg/>")
    third = await write(box, "notes/extra.md", "x")
    assert first.changes == (str(roots.project / "shopping.txt"),)
    assert second.changes == (str(roots.project / "figures"), str(roots.project / "figures" / "a.svg"))
    assert third.changes[-1] == str(roots.workspace / "notes" / "extra.md")
    assert (roots.project / "shopping.txt").read_text() == "milk\n"


async def test_here_means_the_project(make_toolbox: MakeToolbox, roots: Roots) -> None:
    """A request that says "this folder" names a place."""
    call = await write(make_toolbox(request="把结果按部门拆分,放在当前目录"), "Sales.csv", "a")
    assert call.changes == (str(roots.project / "Sales.csv"),)


async def test_what_is_there_is_not_replaced(make_toolbox: MakeToolbox, roots: Roots) -> None:
    """A file, a directory and a broken link at the name are refused, untouched; equal content needs nothing."""
    box = make_toolbox(request="write a.txt, b and c.txt here")
    (roots.project / "a.txt").write_text("old")
    (roots.project / "b").mkdir()
    (roots.project / "c.txt").symlink_to("nowhere")
    for name in ("a.txt", "b", "c.txt"):
        call = await write(box, name, "new")
        assert call.status is CallStatus.REFUSED
        assert call.dropped == (str(roots.project / name),)
        assert "not replaced" in said(call)
    assert (roots.project / "a.txt").read_text() == "old"
    assert os.readlink(roots.project / "c.txt") == "nowhere"  # noqa: PTH115
    assert names_in(roots.project) == ["a.txt", "b", "c.txt"]
    same = await write(box, "a.txt", "old")
    assert (same.status, same.changes) == (CallStatus.OK, ())


async def test_what_the_task_itself_made_may_be_replaced_until_somebody_touches_it(
    make_toolbox: MakeToolbox, roots: Roots
) -> None:
    """A correction may write its own file again; the user's edit in between is kept."""
    box = make_toolbox(request="write a.txt")
    await write(box, "a.txt", "one")
    again = await write(box, "a.txt", "two")
    assert (again.status, (roots.project / "a.txt").read_text()) == (CallStatus.OK, "two")
    assert "replaced" in again.output
    (roots.project / "a.txt").write_text("the user's")
    assert (await write(box, "a.txt", "three")).status is CallStatus.REFUSED
    assert (roots.project / "a.txt").read_text() == "the user's"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/new.conf",
        "~/elsewhere.txt",
        "../up.txt",
        "~/.ssh/config",
        "~/.bashrc",
        ".git/hooks/pre-commit",
        "~/.artoo/x",
    ],
)
async def test_other_places_are_refused(make_toolbox: MakeToolbox, roots: Roots, path: str) -> None:
    """Outside project and workspace, and at start-up and secret paths, nothing is made."""
    call = await write(make_toolbox(request=f"write {path} here"), path, "x")
    assert call.status is CallStatus.REFUSED, said(call)
    assert names_in(roots.project) == []
    assert names_in(roots.home) == ["artoo_workspace", "project"]


async def test_a_linked_directory_does_not_lead_out(
    make_toolbox: MakeToolbox, roots: Roots, tmp_path: Path
) -> None:
    """A directory that is a link to elsewhere is where it leads, and that is not the project."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (roots.project / "d").symlink_to(outside)
    assert (await write(make_toolbox(request="write d/x.txt"), "d/x.txt", "x")).status is CallStatus.REFUSED
    assert names_in(outside) == []


async def test_a_path_through_a_file_is_an_error(make_toolbox: MakeToolbox, roots: Roots) -> None:
    """Directories cannot be made in a file, and a directory is no file."""
    (roots.project / "f").write_text("x")
    box = make_toolbox(request="here")
    assert "cannot write" in said(await write(box, "f/x.txt", "x"))
    assert "is a directory" in said(await write(box, "g/", "x"))


async def test_a_failure_in_the_middle_leaves_nothing(
    roots: Roots, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk while writing leaves neither a file nor a temporary one."""

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolError, match="No space left"):
        await CreateOnly(roots, places).write(roots.project / "a.txt", b"x")
    assert names_in(roots.project) == []


async def test_a_file_system_without_links_still_never_replaces(
    roots: Roots, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a name cannot be given by a link, it is taken by an exclusive create."""

    def unsupported(self: Path, target: Path) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(Path, "hardlink_to", unsupported)
    done = await CreateOnly(roots, places).write(roots.project / "a.txt", b"x")
    assert done.status is CallStatus.OK
    assert names_in(roots.project) == ["a.txt"]
    again = await CreateOnly(roots, places).write(roots.project / "a.txt", b"y")
    assert again.status is CallStatus.REFUSED
    assert (roots.project / "a.txt").read_text() == "x"


async def test_of_many_at_once_one_makes_the_file(roots: Roots, places: Places) -> None:
    """Writers that race for one name: one creates it, the others are refused, and it is one of their contents."""
    writers = [CreateOnly(roots, places) for _ in range(12)]
    done = await asyncio.gather(
        *(
            one.write(roots.project / "r" / "a.txt", bytes([65 + number]) * 50_000)
            for number, one in enumerate(writers)
        )
    )
    assert sum(one.status is CallStatus.OK for one in done) == 1
    content = (roots.project / "r" / "a.txt").read_bytes()
    assert len(content) == 50_000
    assert len(set(content)) == 1
    assert names_in(roots.project / "r") == ["a.txt"]
