"""AppleScript and Shortcuts, with stand-ins for the programs of macOS."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from gate_world import Person
from tool_doubles import StillClock

from artoo.contracts.confirmation import Consent
from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus
from artoo.contracts.plan import MustNot
from artoo.ports.sandbox import Roots
from artoo.testing.asking import AskPerson
from artoo.tools.approval.gate import Gate
from artoo.tools.builtin.macos import AppleScript, Mdfind, Real
from artoo.tools.core.default_tools import Machine, reaching_tools
from artoo.tools.core.registry import Registry, SubTaskToolbox


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
def box(tmp_path: Path, roots: Roots, person: Person, monkeypatch: pytest.MonkeyPatch) -> SubTaskToolbox:
    """A Mac with stand-ins that write down how they were called."""
    place = tmp_path / "bin"
    place.mkdir()
    log = tmp_path / "called"
    for name in ("osascript", "shortcuts"):
        program = place / name
        program.write_text(f'#!/bin/sh\necho "{name} $*: $(cat)" >> {log}\necho ok-{name}\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    gate = Gate(AskPerson(person))
    tools = reaching_tools(gate, roots, {}, Machine("darwin"))
    return Registry(tools, StillClock()).toolbox("s", MustNot())


async def test_both_ask_each_time_and_then_run(box: SubTaskToolbox, person: Person, tmp_path: Path) -> None:
    """The whole script is shown; a yes runs it with the real program, once."""
    script = 'tell application "Finder"\n  get name of disk 1\nend tell'
    person.answers = [Consent.ONCE, Consent.ONCE]
    call = await box.call("applescript", {"script": script})
    assert (call.status, call.output) == (CallStatus.OK, "ok-osascript\n")
    assert any("get name of disk 1" in line for line in person.asked[0].details)
    call = await box.call("shortcuts", {"name": "Morning", "input": "a.txt"})
    assert (call.status, call.output) == (CallStatus.OK, "ok-shortcuts\n")
    called = (tmp_path / "called").read_text()
    assert f"osascript -: {script}" in called
    assert "shortcuts run Morning --input-path a.txt" in called


async def test_a_script_that_hangs_is_stopped(
    roots: Roots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends at its limit, as a timeout."""
    program = tmp_path / "osascript"
    program.write_text("#!/bin/sh\nsleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    tool = AppleScript(Real(roots, seconds=0.3), str(program))
    call = await Registry([tool], StillClock()).toolbox("s", MustNot()).call("applescript", {"script": "x"})
    assert call.status is CallStatus.TIMEOUT


async def test_spotlight_is_asked_for_what_files_hold(tmp_path: Path, roots: Roots) -> None:
    """Query and folder reach mdfind; paths that are not there, or are closed to tools, are left out."""
    (roots.home / "a.txt").write_text("x")
    program, log = tmp_path / "mdfind", tmp_path / "called"
    program.write_text(f'#!/bin/sh\necho "$*" > {log}\nprintf "%s\\0" {roots.home}/a.txt {roots.home}/gone.txt\n')
    program.chmod(0o755)
    found = await Mdfind(str(program), roots).run({"query": "tax 2024", "folder": "~"})
    assert (found.output, found.result_count) == (f"1 found\n{roots.home}/a.txt", 1)
    assert log.read_text() == f"-0 -onlyin {roots.home} tax 2024\n"
    with pytest.raises(ToolError, match="did not answer"):
        await Mdfind(str(tmp_path / "nowhere"), roots).run({"query": "x"})
