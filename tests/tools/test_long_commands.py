"""Long work in a real sandbox, in a form that takes seconds: suites, servers, terminals, floods."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator

import pytest
from real_workspaces import real_workspace
from tool_doubles import StillClock, said

from artoo.contracts.execution import CallStatus
from artoo.contracts.plan import MustNot
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Workspace
from artoo.tools.approval.gate import Gate
from artoo.tools.core.default_tools import Shared, builtin_tools
from artoo.tools.core.registry import Registry, SubTaskToolbox
from artoo.workspace.changes.path_class import Places

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends of Linux")


@pytest.fixture
async def real(roots: Roots) -> AsyncGenerator[Workspace]:
    async with real_workspace(roots) as workspace:
        yield workspace


@pytest.fixture
def box(real: Workspace, places: Places) -> SubTaskToolbox:
    return Registry(builtin_tools(Shared.of(real, Gate(), places)), StillClock()).toolbox("s", MustNot())


async def test_a_suite_that_takes_longer_than_its_call_ends_with_its_result(
    box: SubTaskToolbox, roots: Roots
) -> None:
    """It is not killed, it is not run twice, and what it wrote meanwhile is in the records."""
    suite = "echo collected 3; sleep 1; echo one > report.txt; sleep 1; echo 3 passed"
    first = await box.call("shell", {"command": suite, "timeout": "0.5"})
    assert (first.status, first.output, first.changes) == (CallStatus.RUNNING, "collected 3\n", ())
    printed = ""
    while (call := await box.call("process", {"id": first.process, "timeout": "0.7"})).status is CallStatus.RUNNING:
        printed += call.output  # on a busy machine a wait may end between the last line and the end
    assert (call.status, call.exit_code, printed + call.output) == (CallStatus.OK, 0, "3 passed\n"), said(call)
    assert not (roots.project / "report.txt").exists()
    assert (await box.call("read_file", {"path": "report.txt"})).output == "one\n"


async def test_a_server_answers_over_ten_calls(box: SubTaskToolbox, roots: Roots) -> None:
    """What one call started in the background, the next ones query; the files that it serves are the task's."""
    (roots.project / "page.txt").write_text("hello\n")
    serve = f"{sys.executable} -m http.server 8123 --bind 127.0.0.1"
    started = await box.call("shell", {"command": serve, "background": "true"})
    assert started.status is CallStatus.OK, said(started)
    query = (
        "import urllib.request, time\n"
        "for _ in range(100):\n"
        "    try:\n"
        "        print(urllib.request.urlopen('http://127.0.0.1:8123/page.txt').read().decode())\n"
        "        break\n"
        "    except OSError:\n"
        "        time.sleep(0.1)\n"
    )
    for number in range(10):
        await box.call("write_file", {"path": "page.txt", "content": f"version {number}\n"})
        call = await box.call("python", {"code": query})
        assert f"version {number}" in call.output, said(call)
    stopped = await box.call("process", {"id": started.process, "action": "stop"})
    assert stopped.reason == f"process {started.process} was stopped"


async def test_a_session_at_a_terminal_is_driven_by_input(box: SubTaskToolbox) -> None:
    """A program that waits for input is shown as waiting, answers what is written, and keeps its state."""
    start = await box.call("shell", {"command": f"{sys.executable} -q", "pty": "true"})
    assert start.status is CallStatus.RUNNING and "it waits for input" in (start.reason or ""), said(start)
    assert ">>>" in start.output
    await box.call("process", {"id": start.process, "action": "write", "input": "x = 6 * 7\n"})
    answer = await box.call("process", {"id": start.process, "action": "write", "input": "print('is', x)\n"})
    assert "is 42" in answer.output
    ended = await box.call("process", {"id": start.process, "action": "write", "input": "exit()\n"})
    if ended.status is not CallStatus.OK or ended.process:
        ended = await box.call("process", {"id": start.process, "action": "wait"})
    assert (ended.exit_code, ended.process) == (0, "")


async def test_a_command_that_prints_more_than_32_mib_goes_on(box: SubTaskToolbox) -> None:
    """It ends by itself; head and tail are shown, and the middle is read on where the record says."""
    call = await box.call("shell", {"command": "seq 1 5000000; echo last line"})
    assert (call.status, call.exit_code, call.truncated) == (CallStatus.OK, 0, True), said(call)
    assert call.total_bytes > 32 << 20
    assert call.output.startswith("1\n2\n") and call.output.endswith("4999999\n5000000\nlast line\n")
    assert "read it with process: id p1, action read, offset N" in call.output
    middle = await box.call("process", {"id": "p1", "action": "read", "offset": 20_000_000})
    lines = middle.output.splitlines()[1:-1]
    assert len(lines) > 100 and int(lines[-1]) == int(lines[0]) + len(lines) - 1
