"""A file of the person's that they save after the task saw it is not written over unread."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import nullcontext

import pytest
from real_workspaces import real_workspace
from tool_doubles import MakeToolbox, said

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus, ToolCall
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Workspace
from artoo.tools.approval.gate import Gate
from artoo.tools.context.project_snapshot import ProjectLook
from artoo.tools.core.default_tools import Shared, builtin_tools
from artoo.tools.core.registry import SubTaskToolbox
from artoo.workspace.changes.path_class import Places


@pytest.fixture
async def staged(roots: Roots) -> AsyncGenerator[Workspace]:
    """A real workspace: what the task writes is not in the user's files."""
    async with real_workspace(roots) as workspace:
        yield workspace


@pytest.fixture
def box(staged: Workspace, make_toolbox: MakeToolbox) -> SubTaskToolbox:
    return make_toolbox(other=staged)


async def read(box: SubTaskToolbox) -> ToolCall:
    return await box.call("read_file", {"path": "notes"})


async def write(box: SubTaskToolbox, content: str) -> ToolCall:
    return await box.call("write_file", {"path": "notes", "content": content})


async def test_a_save_after_it_was_read_is_seen(box: SubTaskToolbox, roots: Roots) -> None:
    """The model is told, reads again, and then its text stands."""
    notes = roots.project / "notes"
    notes.write_text("one\n")
    await read(box)
    notes.write_text("one\ntwo, by the person\n")
    refused = await write(box, "ONE\n")
    assert refused.status is CallStatus.ERROR
    assert "saved by somebody else after you saw it" in said(refused)
    assert (await read(box)).output == "one\ntwo, by the person\n"
    assert (await write(box, "ONE\ntwo, by the person\n")).status is CallStatus.OK


async def test_a_file_is_not_replaced_by_a_text_made_of_its_beginning(box: SubTaskToolbox, roots: Roots) -> None:
    """What was cut out of the output would be lost. Lines that were asked for are what was wanted."""
    notes = roots.project / "notes"
    notes.write_text("".join(f"line {number}\n" for number in range(2_000)))
    assert (await read(box)).truncated
    refused = await write(box, "line 0\nshort\n")
    assert refused.status is CallStatus.ERROR
    assert "longer than what was shown of it" in said(refused)
    await box.call("read_file", {"path": "notes", "offset": 2})
    assert (await write(box, "line 0\nshort\n")).output == "replaced notes (13 bytes, lines: 2; 18890 bytes before)"


@pytest.mark.parametrize(("lines", "saved", "refused"), [(3, True, True), (3, False, False), (500, False, True)])
async def test_a_file_that_a_prompt_shows_was_shown(
    staged: Workspace, roots: Roots, places: Places, lines: int, saved: bool, refused: bool
) -> None:
    """Whole, or its first lines only."""
    notes = roots.project / "notes"
    notes.write_text("a line\n" * lines)
    shared = Shared.of(staged, Gate(), places)
    tools = {each.spec.name: each for each in builtin_tools(shared)}
    look = ProjectLook(roots, places, lambda: staged.files, whole_files=True, looked=shared.looked)
    await look.look("shorten notes")
    if saved:
        notes.write_text("saved\n")
    expected = pytest.raises(ToolError, match="you saw it" if saved else "longer") if refused else nullcontext()
    with expected:
        await tools["write_file"].run({"path": "notes", "content": "short\n"})
