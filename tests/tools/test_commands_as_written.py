"""Commands reach bash exactly as the model wrote them, in the shell tool and in checks."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
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
from artoo.tools.files.filename_index import FileIndex
from artoo.workspace.changes.path_class import Places

_SIMPLE = st.sampled_from(
    [
        "true",
        "false",
        "(exit 3)",
        "exit 4",
        "echo a",
        "ls none.txt",
        'echo "$X$Y$?"',
        'echo "${PIPESTATUS[*]}"',
        "cd sub",
        "cd deep",
        'cd "$TOP"',
        "X=1",
        'X="$X+"',
        "X=2 true",
        "export Y=3",
        "unset X",
        "touch made",
        "rm one.txt",
        "ls",
        "grep -q foo one.txt",
        "seq 1 3",
        "yes | head -n 1",
        "set -e",
        "set +e",
        "set -o pipefail",
    ]
)
"""No command goes to a parent directory, so none can leave the example's project. None gives up its standard output
before it ends, because the reader of a pipeline must not go on before its writer has ended."""

_READERS = st.sampled_from(
    ["cat", "cat 2>&1", "sort -r", "wc -l", "grep a", "tail -n 1", "while read L; do X=$L; done"]
)
"""Each of them reads to the end: with a reader that stops early the result of the writer would depend on timing."""

_REDIRECTIONS = st.sampled_from(["", "", " 2>&1", " 2>/dev/null"])


def _written(template: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Fill a template with examples of its parts."""
    return st.tuples(*parts).map(lambda texts: template.format(*texts))


def _compound(lists: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Build longer command lists from shorter ones."""
    subshell, group = _written("( {} )", lists), _written("{{ {}; }}", lists)
    branch = _written("if {}; then {}; fi", lists, lists)
    units = _written("{}{}", st.one_of(_SIMPLE, subshell, group, branch), _REDIRECTIONS)
    draining = st.one_of(_written("( cat; {} )", lists), _written("{{ cat; {}; }}", lists))
    readers = _written("{}{}{}", st.sampled_from([" | ", " |& "]), st.one_of(_READERS, draining), _REDIRECTIONS)
    pipelines = _written("{}{}{}", st.sampled_from(["", "", "! "]), units, _joined(readers, 2))
    parts = st.one_of(pipelines, pipelines, _written("X=$( {} )", lists))
    following = _written("{}{}", st.sampled_from([" && ", " || ", "; ", "\n"]), parts)
    return _written("{}{}", parts, _joined(following, 3))


def _joined(texts: st.SearchStrategy[str], most: int) -> st.SearchStrategy[str]:
    return st.lists(texts, max_size=most).map("".join)


_LISTS = st.recursive(_SIMPLE, _compound, max_leaves=8)

_SETTINGS = settings(deadline=None, suppress_health_check=(HealthCheck.too_slow,))
_REPORT = 'TOP=$PWD; trap \'echo "$? [${PWD#"$TOP"}] [$X] [$Y] ${PIPESTATUS[*]} $SHELLOPTS"\' EXIT\n'
"""Print at the end how the list left the shell: the exit code, the directory, the variables, the options."""


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
    shell = Shell(WorkspaceCommands(PlainWorkspace(roots)), roots, FileIndex())
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


async def _compare_with_bash(written: str) -> None:
    """Run a command list in three identical projects: by plain bash, by the shell tool and as a check."""
    script = _REPORT + written
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        expected = _by_bash(script, _project(place / "bash"))
        assert await _by_shell_tool(script, _project(place / "tool")) == expected
        roots = _project(place / "check")
        workspace = PlainWorkspace(roots)
        check = await WorkspaceEvidence(workspace, Places.of(roots, roots.home / ".artoo")).command(script)
        output = "\n".join(filter(None, (expected.output, expected.error_output)))
        assert (check.exit_code, check.output, _files(roots)) == (expected.exit_code, output, expected.files)


@settings(_SETTINGS, max_examples=30)
@given(_LISTS)
async def test_a_command_list_does_what_plain_bash_does(written: str) -> None:
    """The exit code, both streams, the directory, the variables, the shell options and the files are the same."""
    await _compare_with_bash(written)


@pytest.mark.torture
@settings(_SETTINGS, max_examples=3_000)
@given(_LISTS)
async def test_many_command_lists_do_what_plain_bash_does(written: str) -> None:
    """The same property, with many more examples."""
    await _compare_with_bash(written)


@pytest.mark.parametrize(
    "written",
    [
        "cd sub && ls 2>/dev/null | head -n 3; pwd",
        "true && X=7 2>&1 | cat; echo $X",
        "false && true 2>&1 | cat; echo ${PIPESTATUS[*]}",
        "! true && false 2>&1 | cat",
        "! false | cat 2>&1",
        "cat one.txt missing.txt 2>/dev/null | grep -q foo",
        "grep -q foo one.txt && cat missing.txt 2>&1 | grep -q 'No such'",
        "set -e; n=$(grep none one.txt | wc -l); echo $n",
        "yes | head -n 1 && echo rest",
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
