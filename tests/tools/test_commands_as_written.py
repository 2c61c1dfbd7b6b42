"""Commands reach bash exactly as the model wrote them, in the shell tool and in checks."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from real_workspaces import real_workspace
from tool_doubles import PlainWorkspace, StillClock, roots_in, said

from artoo.contracts.execution import CallStatus
from artoo.contracts.plan import MustNot
from artoo.ports.sandbox import Roots
from artoo.tools.approval.gate import Gate
from artoo.tools.builtin.shell import Shell
from artoo.tools.context.evidence_source import WorkspaceEvidence
from artoo.tools.core.default_tools import Shared, builtin_tools
from artoo.tools.core.registry import Registry, SubTaskToolbox
from artoo.tools.core.workspace_commands import WorkspaceCommands
from artoo.tools.files.search import FileSearch
from artoo.workspace.changes.path_class import Places


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and which files it left."""

    exit_code: int | None
    output: str
    error_output: str
    files: tuple[str, ...]


def _project(place: Path) -> Roots:
    """Make the same small project in every place."""
    place.mkdir()
    roots = roots_in(place)
    (roots.project / "sub" / "deep").mkdir(parents=True)
    for folder in (roots.project, roots.project / "sub"):
        (folder / "one.txt").write_text("foo\nbar\n")
    return roots


def _files(roots: Roots) -> tuple[str, ...]:
    return tuple(sorted(str(path.relative_to(roots.home)) for path in roots.home.rglob("*")))


def _toolbox(roots: Roots) -> SubTaskToolbox:
    shell = Shell(WorkspaceCommands(PlainWorkspace(roots)), roots, FileSearch())
    return Registry((shell,), StillClock()).toolbox("subtask", MustNot())


def _by_bash(script: str, roots: Roots) -> Ended:
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=roots.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr, _files(roots))


async def _by_shell_tool(script: str, roots: Roots) -> Ended:
    call = await _toolbox(roots).call("shell", {"command": script})
    return Ended(call.exit_code, call.output, call.error_output, _files(roots))


@pytest.mark.parametrize(
    "written",
    [
        "cd sub && ls 2>/dev/null | head -n 3; pwd",
        "grep -q foo one.txt && cat missing.txt 2>&1 | grep -q 'No such'",
        "set -e; n=$(grep none one.txt | wc -l); echo $n",
        "set -o pipefail; yes | head -n 1; echo $?",
        "trap 'echo mine' EXIT; false | cat",
        "cat > b.txt <<'END'\na | b\nEND\nfalse | cat; cat b.txt",
        '# artoo hosts:\nfalse | cat; printf %s "$BASH_EXECUTION_STRING"',
        '  printf \'%s\\n\' "$0" $# "$-" "$SHELLOPTS" "$BASH_EXECUTION_STRING" | cat  \n\n',
    ],
)
async def test_what_was_rewritten_before_does_what_plain_bash_does(tmp_path: Path, written: str) -> None:
    """No part of a list moves into a pipeline, no option is set, and bash is given each byte as it was written."""
    expected, told = _project(tmp_path / "a"), _project(tmp_path / "b")
    plain, ours = _by_bash(written, expected), await _by_shell_tool(written, told)
    assert ours.exit_code == plain.exit_code
    assert ours.output.replace(str(told.project), str(expected.project)) == plain.output
    assert (ours.error_output, ours.files) == (plain.error_output, plain.files)


@pytest.mark.skipif(sys.platform != "linux", reason="the tiers of Linux")
async def test_a_removal_after_a_list_with_a_pipeline_stays_in_its_directory(roots: Roots) -> None:
    """`cd` holds for the commands after the pipeline, in the sandbox too. Previously the removal ran in the
    project's root."""
    (roots.project / "sub").mkdir()
    for folder in (roots.project, roots.project / "sub"):
        (folder / "old.txt").write_text("x\n")
    places = Places.of(roots, roots.home / ".artoo")
    async with real_workspace(roots) as workspace:
        tools = builtin_tools(Shared.of(workspace, Gate(), places))
        box = Registry(tools, StillClock()).toolbox("subtask", MustNot())
        call = await box.call("shell", {"command": "cd sub && ls 2>/dev/null | head -3\nrm old.txt"})
    assert (call.status, call.output, call.ran) == (CallStatus.OK, "old.txt\n", None), said(call)
    assert call.changes == (str(roots.project / "sub" / "old.txt"),)


async def test_a_right_check_succeeds_when_an_early_part_of_its_pipeline_fails(
    roots: Roots, places: Places
) -> None:
    """The exit code of a check is that of plain bash, so the last part of a pipeline decides."""
    (roots.project / "a.txt").write_text("done\n")
    evidence = WorkspaceEvidence(PlainWorkspace(roots), places)
    check = await evidence.command("cat a.txt b.txt 2>/dev/null | grep -q done")
    assert (check.exit_code, check.problem) == (0, None)
    turned = await evidence.command("test -f a.txt && ! grep -c error a.txt 2>&1 | grep 1")
    assert (turned.exit_code, turned.problem) == (0, None)
