"""The shell and Python tools: what commands say, and what they changed."""

from __future__ import annotations

import asyncio

import pytest
from tool_doubles import MakeToolbox, PlainWorkspace, said

from artoo.contracts.changes import Change, ChangeKind, Node, PathClass, Trait
from artoo.contracts.execution import CallStatus
from artoo.ports.sandbox import Roots
from artoo.tools.core.registry import SubTaskToolbox


def _created(path: str, *traits: Trait) -> Change:
    return Change(kind=ChangeKind.CREATED, path=path, node=Node.FILE, path_class=PathClass.PROJECT, traits=traits)


async def test_a_command_runs_in_the_project(
    toolbox: SubTaskToolbox, roots: Roots, workspace: PlainWorkspace
) -> None:
    """The project root is the current directory, and nothing is held back."""
    call = await toolbox.call("shell", {"command": "pwd; false"})
    assert call.output.strip() == str(roots.project)
    assert (call.status, call.exit_code, call.identity) == (CallStatus.ERROR, 1, ("shell:pwd", "shell:false"))
    assert [command.unconfined for command in workspace.commands] == [False]


@pytest.mark.parametrize(
    ("command", "status", "code", "count"),
    [
        ("grep foo a.txt", CallStatus.OK, 1, 0),
        ("grep bar a.txt", CallStatus.OK, 0, 2),
        ("grep -c bar a.txt", CallStatus.OK, 0, None),
        ("grep foo a.txt | wc -l", CallStatus.OK, 0, None),
        ("grep foo a.txt | sort", CallStatus.OK, 0, None),
        ("grep foo missing.txt", CallStatus.ERROR, 2, None),
        ("yes | head -n 2", CallStatus.OK, 0, None),
        ("false | cat", CallStatus.OK, 0, None),
        ("find . -name '*.txt'", CallStatus.OK, 0, 1),
        ("find . -name '*.zip'", CallStatus.OK, 0, 0),
        ("diff a.txt /dev/null", CallStatus.OK, 1, None),
        ("echo 12 passed; git status", CallStatus.OK, 128, None),
        ("echo 12 passed >&2; grep foo a.txt", CallStatus.OK, 1, None),
        ("set -e; echo 12 passed; git status", CallStatus.ERROR, 128, None),
        ("echo 12 passed; git push", CallStatus.ERROR, 128, None),
        ("false || git status", CallStatus.ERROR, 128, None),
        ("false", CallStatus.ERROR, 1, None),
        ("exit 3", CallStatus.ERROR, 3, None),
        ("nosuchprogram", CallStatus.ERROR, 127, None),
        ("((", CallStatus.ERROR, 2, None),
    ],
)
async def test_exit_codes_are_read_as_the_programs_mean_them(
    toolbox: SubTaskToolbox, roots: Roots, command: str, status: CallStatus, code: int, count: int | None
) -> None:
    """No match and a difference are answers, the last program of a pipeline decides, and all else is a failure. The
    exit code of a last statement that only shows something says nothing of those before it.
    """
    (roots.project / "a.txt").write_text("bar 1\nbar 2\n")
    call = await toolbox.call("shell", {"command": command})
    assert (call.status, call.exit_code, call.result_count) == (status, code, count), said(call)


async def test_what_a_command_changed_is_in_its_record(roots: Roots, make_toolbox: MakeToolbox) -> None:
    """Changes that somebody may have meant; a cache is none, and a command that failed may have changed things."""
    made = (_created("/p/out.txt"), _created("/p/__pycache__/a.pyc", Trait.DERIVED))
    box = make_toolbox(other=PlainWorkspace(roots, reported=made))
    for command, status in (("echo hi", CallStatus.OK), ("false", CallStatus.ERROR)):
        call = await box.call("shell", {"command": command})
        assert (call.status, call.changes, call.dropped) == (status, ("/p/out.txt",), ())


async def test_find_on_personal_files_is_answered_by_the_index(toolbox: SubTaskToolbox, roots: Roots) -> None:
    """The record says what really ran; the identity stays `shell:find`, and nothing reached the sandbox."""
    deep = roots.home / "Documents" / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "Taxes 2024.pdf").write_text("x")
    call = await toolbox.call("shell", {"command": "find ~ -maxdepth 1 -name 'Taxes*.pdf' 2>/dev/null"})
    assert (call.status, call.result_count, call.identity) == (CallStatus.OK, 1, ("shell:find",))
    assert str(deep / "Taxes 2024.pdf") in call.output
    assert call.ran is not None
    assert call.ran.startswith(f"find {roots.home} -name 'Taxes*.pdf'  # answered by ")
    none = await toolbox.call("shell", {"command": "find ~ -name 'Taxes 1999*'"})
    assert (none.status, none.result_count) == (CallStatus.OK, 0)


async def test_a_fence_around_code_is_taken_off(toolbox: SubTaskToolbox) -> None:
    """Models leave the fence in the argument now and then."""
    assert (await toolbox.call("shell", {"command": "```bash\necho hi\n```"})).output == "hi\n"
    assert (await toolbox.call("python", {"code": "```python\nprint('hi')\n```"})).output == "hi\n"


async def test_python_runs_isolated_in_the_project(
    toolbox: SubTaskToolbox, roots: Roots, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script sees the project's files, not the user's Python settings."""
    (roots.project / "json.py").write_text("raise SystemExit('the wrong module')")
    (roots.project / "n.txt").write_text("数据\n")
    monkeypatch.setenv("PYTHONPATH", str(roots.project))
    call = await toolbox.call(
        "python", {"code": "import json\nprint(json.dumps([open('n.txt').read()], ensure_ascii=False))"}
    )
    assert (call.status, call.output, call.identity) == (CallStatus.OK, '["数据\\n"]\n', ("python",))


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("print(1", "line 1 is not valid Python"),
        ("x = 1\nif x\n  y", "line 2 is not valid Python"),
        ("a\0b", "not"),
        ("(" * 5_000 + ")" * 5_000, "nothing was run"),
    ],
)
async def test_what_is_not_python_does_not_run(
    toolbox: SubTaskToolbox, workspace: PlainWorkspace, code: str, says: str
) -> None:
    """A script with an error in its syntax comes back with the line, without having run."""
    call = await toolbox.call("python", {"code": code})
    assert call.status is CallStatus.ERROR
    assert says in (call.reason or "")
    assert workspace.commands == []


async def test_cancelling_a_command_leaves_an_interrupted_record(
    toolbox: SubTaskToolbox, workspace: PlainWorkspace
) -> None:
    """A command that was cut off is known to have been cut off."""
    task = asyncio.ensure_future(toolbox.call("shell", {"command": "sleep 60"}))
    await asyncio.wait_for(workspace.begun.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [call.status for call in toolbox.interrupted] == [CallStatus.INTERRUPTED]


@pytest.mark.parametrize(
    ("complaint", "user", "told"),
    [
        ("bash: line 1: team.txt: Value too large for defined data type", 1_000, True),
        ("chgrp: changing group of 'mine': Invalid argument", 1_000, True),
        ("dd: failed to open 'x': Invalid argument", 1_000, False),
        ("bash: line 1: team.txt: Value too large for defined data type", 0, False),
    ],
)
async def test_a_file_of_another_group_says_how_it_can_be_written(
    toolbox: SubTaskToolbox, monkeypatch: pytest.MonkeyPatch, complaint: str, user: int, told: bool
) -> None:
    """A plain user's sandbox knows one group. What the kernel says of others does not tell that, also in a script
    that goes on."""
    monkeypatch.setattr("artoo.tools.core.workspace_commands.os.geteuid", lambda: user)
    for end in ("false", "true"):
        call = await toolbox.call("shell", {"command": f'echo "{complaint}" >&2; {end}'})
        assert ("write_file writes it" in (call.reason or "")) is told, said(call)
