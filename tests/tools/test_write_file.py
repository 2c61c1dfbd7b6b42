"""Writing and editing files in the task's view."""

from __future__ import annotations

import pytest
from tool_doubles import said

from artoo.contracts.execution import CallStatus, ToolCall
from artoo.ports.sandbox import Roots
from artoo.tools.core.registry import SubTaskToolbox

TEXT = "def total(rows):\n    return sum(rows)\n\n\ndef mean(rows):\n    return total(rows) / len(rows)\n"


async def write(toolbox: SubTaskToolbox, path: str, content: str) -> ToolCall:
    return await toolbox.call("write_file", {"path": path, "content": content})


async def edit(toolbox: SubTaskToolbox, path: str, old: str, new: str, **more: str) -> ToolCall:
    return await toolbox.call("edit_file", {"path": path, "old": old, "new": new, **more})


async def test_a_relative_path_is_where_the_person_stands(toolbox: SubTaskToolbox, roots: Roots) -> None:
    """Files are made in the project with their directories; the workspace is named for what has no place."""
    call = await write(toolbox, "figures/a.svg", "<svg/>")
    assert (call.status, call.changes) == (CallStatus.OK, (str(roots.project / "figures" / "a.svg"),))
    assert (roots.project / "figures" / "a.svg").read_text() == "<svg/>"
    spec = next(spec for spec in toolbox.specs if spec.name == "write_file")
    assert "~/artoo_workspace/NAME" in spec.parameters[0].description
    await write(toolbox, "~/artoo_workspace/notes.md", "x")
    assert (roots.workspace / "notes.md").read_text() == "x"


async def test_quotation_marks_around_a_path_are_not_in_the_name(toolbox: SubTaskToolbox, roots: Roots) -> None:
    """A file was made whose name had them, and the right one stayed as it was."""
    (roots.project / "a.txt").write_text("old")
    call = await write(toolbox, "`a.txt`", "new")
    assert (call.status, call.target) == (CallStatus.OK, "a.txt")
    assert (await edit(toolbox, '"a.txt"', "new", "newer")).status is CallStatus.OK
    assert [each.name for each in roots.project.iterdir()] == ["a.txt"]
    assert (await write(toolbox, "./'b'", "x")).target == "'b'"


async def test_what_is_there_is_replaced(toolbox: SubTaskToolbox, roots: Roots) -> None:
    """Nothing is asked in a view; a file that has this very content is left alone, and the record says so."""
    (roots.project / "a.txt").write_text("old")
    call = await write(toolbox, "a.txt", "new")
    assert "replaced a.txt" in call.output
    assert (roots.project / "a.txt").read_text() == "new"
    again = await write(toolbox, "a.txt", "new")
    assert (again.status, again.changes) == (CallStatus.OK, ())
    assert "already there" in again.output


@pytest.mark.parametrize("path", ["~/.ssh/config", "~/.artoo/x", "link"])
async def test_credentials_and_artoos_own_files_are_out_of_reach(
    toolbox: SubTaskToolbox, roots: Roots, path: str
) -> None:
    """Also through a link: neither written nor edited."""
    (roots.project / "link").symlink_to(roots.home / ".ssh" / "id_rsa")
    for call in (await write(toolbox, path, "x"), await edit(toolbox, path, "a", "b")):
        assert call.status in (CallStatus.REFUSED, CallStatus.ERROR)
        assert "closed to tools" in said(call)
    assert sorted(each.name for each in roots.home.iterdir()) == ["artoo_workspace", "project"]


async def test_an_edit_shows_what_it_changed(toolbox: SubTaskToolbox, roots: Roots) -> None:
    """One place, byte for byte; the output is a unified diff."""
    (roots.project / "m.py").write_text(TEXT)
    call = await edit(toolbox, "m.py", "    return sum(rows)\n", "    return sum(row for row in rows if row)\n")
    assert (call.status, call.changes) == (CallStatus.OK, (str(roots.project / "m.py"),))
    assert call.output.splitlines()[:2] == ["--- m.py before", "+++ m.py now"]
    assert "-    return sum(rows)\n+    return sum(row for row in rows if row)" in call.output
    assert (roots.project / "m.py").read_text() == TEXT.replace("sum(rows)", "sum(row for row in rows if row)")


async def test_an_edit_of_a_large_file_shows_the_changed_lines(toolbox: SubTaskToolbox, roots: Roots) -> None:
    """With their numbers in the file, however long it is."""
    (roots.project / "long.py").write_text("".join(f"x{number} = {number}\n" for number in range(30_000)))
    call = await edit(toolbox, "long.py", "x20000 = 20000\n", "x20000 = 1\n")
    assert call.output.splitlines()[2:] == [
        *("@@ -19999,5 +19999,5 @@", " x19998 = 19998", " x19999 = 19999"),
        *("-x20000 = 20000", "+x20000 = 1", " x20001 = 20001", " x20002 = 20002"),
    ]


async def test_text_in_several_places_needs_all_or_more_of_it(toolbox: SubTaskToolbox, roots: Roots) -> None:
    """What could mean another place is refused with the lines; `all` changes every one."""
    (roots.project / "m.py").write_text(TEXT)
    call = await edit(toolbox, "m.py", "total(rows)", "summed(rows)")
    assert call.status is CallStatus.REFUSED
    assert "2 times (line 1, 6)" in said(call)
    assert (roots.project / "m.py").read_text() == TEXT
    done = await edit(toolbox, "m.py", "total(rows)", "summed(rows)", all="yes")
    assert (done.status, (roots.project / "m.py").read_text()) == (
        CallStatus.OK,
        TEXT.replace("total(rows)", "summed(rows)"),
    )


async def test_text_that_is_not_there_is_answered_with_the_nearest_lines(
    toolbox: SubTaskToolbox, roots: Roots
) -> None:
    """Wrong indentation or a misremembered line: the record shows what stands there instead."""
    (roots.project / "m.py").write_text(TEXT)
    call = await edit(toolbox, "m.py", "def means(rows):\n  return 1\n", "x")
    assert call.status is CallStatus.REFUSED
    assert "5: def mean(rows):\n6:     return total(rows) / len(rows)" in said(call)
    (roots.project / "empty").write_text("")
    assert "The file is empty" in said(await edit(toolbox, "empty", "a", "b"))
