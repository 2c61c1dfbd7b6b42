"""The shell and Python tools: what commands say, and what they changed."""

from __future__ import annotations

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
    ("command", "status", "code"),
    [
        ("grep foo a.txt", CallStatus.OK, 1),
        ("grep foo missing.txt", CallStatus.ERROR, 2),
        ("yes | head -n 2", CallStatus.OK, 0),
        ("false | cat", CallStatus.OK, 0),
        ("diff a.txt /dev/null", CallStatus.OK, 1),
        ("echo 12 passed; grep foo a.txt", CallStatus.OK, 1),
        ("false || git status", CallStatus.ERROR, 128),
        ("false", CallStatus.ERROR, 1),
        ("exit 3", CallStatus.ERROR, 3),
        ("nosuchprogram", CallStatus.ERROR, 127),
        ("((", CallStatus.ERROR, 2),
    ],
)
async def test_exit_codes_are_read_as_the_programs_mean_them(
    toolbox: SubTaskToolbox, roots: Roots, command: str, status: CallStatus, code: int
) -> None:
    """No match and a difference are answers, and any other exit code but 0 is a failure."""
    (roots.project / "a.txt").write_text("bar 1\nbar 2\n")
    call = await toolbox.call("shell", {"command": command})
    assert (call.status, call.exit_code) == (status, code), said(call)


async def test_what_a_command_changed_is_in_its_record(roots: Roots, make_toolbox: MakeToolbox) -> None:
    """Changes that somebody may have meant; a new time is none. A command that failed may have changed things."""
    made = (_created("/p/out.txt"), _created("/p/a.txt", Trait.TIMES_ONLY))
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
