"""No tool reaches the Auditor's files: in no backend, not with an approval, not through artoo's file tools."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from trails import only_part, proved, write_chain

from artoo.auditor.layout import ANCHORS, audit_directory
from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.contracts.errors import SandboxError
from artoo.contracts.execution import CallStatus
from artoo.contracts.plan import MustNot
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Command
from artoo.runtime.app.system import SystemClock
from artoo.sandbox.backends.select import candidates
from artoo.sandbox.backends.selftest import prove
from artoo.sandbox.protocols import Backend
from artoo.testing.asking import AskPerson
from artoo.tools.approval.gate import Gate
from artoo.tools.core.default_tools import Shared, builtin_tools
from artoo.tools.core.registry import Registry
from artoo.tools.provenance.taint import Origins
from artoo.workspace.changes.path_class import Places
from artoo.workspace.directory import Workspaces
from artoo.workspace.settlement.service import opened
from artoo.workspace.workspace import workspaces_in

ATTEMPTS = """
cat ~/.artoo/audit/*.jsonl; head -c 99 ~/.artoo/audit/anchors.jsonl; cp -r ~/.artoo/audit stolen
echo forged >> ~/.artoo/audit/anchors.jsonl; rm -rf ~/.artoo/audit; mv ~/.artoo elsewhere
ln -s ~/.artoo/audit link; cat link/anchors.jsonl; true
"""


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    home = tmp_path.resolve() / "home"
    for folder in ("project", "workspace"):
        (home / folder).mkdir(parents=True)
    write_chain(home / ".artoo", 12)
    return Roots(home=home, workspace=home / "workspace", project=home / "project")


async def backend_of(name: str, artoo_home: Path) -> Backend:
    """The backend, or a skipped test that says why it does not work here."""
    problem = "not offered on this system"
    for candidate in candidates():
        if candidate.backend.name == name:
            problem = await prove(candidate.backend, artoo_home)
            if not problem:
                return candidate.backend
    pytest.skip(f"backend {name} does not work here: {problem}")


def contents(home: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in audit_directory(home).iterdir()}


@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
async def test_no_command_reads_or_writes_the_audit_log(name: str, roots: Roots) -> None:
    """Its records are not in the output, and whatever is agreed to of the changes, it stands as it was."""
    artoo_home = roots.home / ".artoo"
    before, backend = contents(artoo_home), await backend_of(name, artoo_home)
    workspace = workspaces_in(backend, artoo_home)("task", roots)
    run = await workspace.run(Command(("bash", "-c", ATTEMPTS)), 60.0)
    await workspace.close()
    with opened(Workspaces(artoo_home).directory("task"), artoo_home) as settlement, suppress(SandboxError):
        if settlement is not None:
            settlement.apply(settlement.review())
    assert '"prev"' not in run.stdout.text + run.stderr.text
    assert contents(artoo_home) == before
    assert not any(path.name == ANCHORS for path in roots.project.rglob("*") if path.exists())
    assert proved(artoo_home).sound


async def test_no_tool_reads_or_writes_the_audit_log(roots: Roots) -> None:
    """Through the real gate, with a person who says yes to everything: shell, read_file, write_file."""

    async def yes(_: ConfirmationRequest) -> Consent:
        return Consent.ONCE

    artoo_home = roots.home / ".artoo"
    before, backend = contents(artoo_home), await backend_of("bubblewrap", artoo_home)
    gate = Gate(AskPerson(yes), Origins("here"))
    workspace = workspaces_in(backend, artoo_home)("task", roots)
    tools = builtin_tools(Shared.of(workspace, gate, Places.of(roots, artoo_home)))
    box = Registry(tools, SystemClock(), gate=gate).toolbox("subtask", MustNot())
    chain, anchors = str(only_part(artoo_home)), str(audit_directory(artoo_home) / ANCHORS)
    calls = [
        await box.call("shell", {"command": ATTEMPTS}),
        await box.call("read_file", {"path": chain}),
        await box.call("write_file", {"path": anchors, "content": "forged"}),
    ]
    assert all('"prev"' not in f"{call.output}{call.error_output}" for call in calls)
    await workspace.close()
    assert [call.status is CallStatus.OK for call in calls[1:]] == [False, False]
    assert contents(artoo_home) == before
