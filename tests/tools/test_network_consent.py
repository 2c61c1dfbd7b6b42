"""A command reaches what was agreed to, says what to allow when nothing was, and all that it sends is known."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from gate_world import Person
from http_git import git_server
from real_workspaces import real_workspace
from tool_doubles import StillClock

from artoo.contracts.confirmation import Consent
from artoo.contracts.errors import ToolError
from artoo.contracts.events import NetworkUsed
from artoo.contracts.execution import CallStatus, ToolCall
from artoo.contracts.plan import MustNot
from artoo.ports.confirm import Questions
from artoo.ports.sandbox import Roots
from artoo.ports.tools import Departure, Ticket
from artoo.ports.workspace import Workspace
from artoo.runtime.approvals.consent import Answers
from artoo.testing.asking import AskPerson
from artoo.tools.approval.gate import Gate
from artoo.tools.approval.network_consent import Network
from artoo.tools.approval.policy import Policies
from artoo.tools.approval.prompts import AskNobody
from artoo.tools.core.default_tools import Shared, builtin_tools
from artoo.tools.core.registry import Registry
from artoo.tools.provenance.taint import Origins
from artoo.tools.shell.network_header import wanted_by
from artoo.workspace.changes.path_class import Places
from overlay_here import overlay_backend


class _Policies:
    """Answers by policy lines, and no where they say nothing."""

    def __init__(self, *lines: str) -> None:
        self._answers = Answers(Policies.parse(lines, Path("/"), Path("/")))
        self.ask = self._answers.answer


class Net:
    """One task's shell and python in its workspace, and what is heard of their network."""

    def __init__(self, workspace: Workspace, questions: Questions, request: str = "") -> None:
        self.published: list[NetworkUsed] = []
        self.announced: list[Departure] = []
        self.network = Network(self.published.append)
        self.gate = Gate(questions, Origins(request))
        places = Places.of(workspace.roots, workspace.roots.home / ".artoo")
        tools = builtin_tools(Shared.of(workspace, self.gate, places, self.network))
        self.box = Registry(tools, StillClock(), self.gate.origins.observe, self.gate).toolbox("s", MustNot())

    async def shell(self, command: str) -> ToolCall:
        return await self.box.call("shell", {"command": command}, Ticket("s/1", self.announced.append))

    async def python(self, code: str) -> ToolCall:
        return await self.box.call("python", {"code": code}, Ticket("s/2", self.announced.append))


@pytest.fixture
async def real(roots: Roots) -> AsyncGenerator[Workspace]:
    """A real workspace whose commands have a network of their own."""
    await overlay_backend(roots.home / ".artoo")
    async with real_workspace(roots) as workspace:
        yield workspace


@pytest.mark.parametrize(
    ("script", "hosts", "credentials"),
    [
        (
            "# artoo hosts: pypi.org files.pythonhosted.org:8443\npip",
            ("pypi.org:443", "files.pythonhosted.org:8443"),
            (),
        ),
        ("\n#artoo hosts: PyPI.org., pypi.org:443", ("pypi.org:443",), ()),
        ("# artoo hosts: git.example.org $PATH\ngit push", ("git.example.org:443",), ("PATH",)),
        ("echo # artoo hosts: pypi.org", (), ()),
        ("true\n# artoo hosts: pypi.org", (), ()),
        ("# hosts: pypi.org", (), ()),
        ("# artoo hosts:", (), ()),
    ],
)
def test_the_first_line_asks(script: str, hosts: tuple[str, ...], credentials: tuple[str, ...]) -> None:
    """Only the first line of a script names hosts, each once, in its plain form; https without a port."""
    asked = wanted_by(script)
    assert (asked.listed, asked.credentials) == (hosts, credentials)


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ("http://pypi.org/", "has no valid port"),
        ("*.org", "is not the name of a host"),
        ("0x7f.1", "is not written as four numbers"),
        ("a.org $NO_SUCH_VARIABLE_HERE", "is not set here"),
        ("a.org $ARTOO_HOME", "may have"),
        ("$PATH", "a credential without a host"),
        (" ".join(f"h{n}.org" for n in range(40)), "more than 32 hosts"),
    ],
)
def test_what_cannot_be_asked_for(wanted: str, problem: str) -> None:
    """A line that names no host says why."""
    with pytest.raises(ToolError, match=problem):
        wanted_by(f"# artoo hosts: {wanted}")


async def test_without_consent_nothing_runs(real: Workspace) -> None:
    """Where nobody can be asked, nothing is run, and the record says what to allow."""
    net = Net(real, AskNobody())
    call = await net.shell("# artoo hosts: pypi.org git.example.org:9418\ntouch made; curl https://pypi.org")
    assert (call.status, call.withheld_by) == (CallStatus.REFUSED, "nobody")
    assert call.dropped == ("network pypi.org:443", "network git.example.org:9418")
    assert "asked here: network pypi.org:443, network git.example.org:9418" in (call.reason or "")
    assert not (real.roots.project / "made").exists()
    assert (net.announced, net.published, net.network.went_out()) == ([], [], ())


async def test_the_question_names_command_hosts_and_what_is_known(real: Workspace) -> None:
    """A person sees the whole command, every host and credential, and that nothing of it can be taken back."""
    person = Person([Consent.NO])
    net = Net(real, AskPerson(person))
    command = "# artoo hosts: git.example.org $PATH\ngit push\n"
    call = await net.shell(command)
    (asked,) = person.asked
    assert asked.title == "shell: network git.example.org:443 $PATH"
    assert [(act.verb, act.target) for act in asked.acts] == [
        ("network", "git.example.org:443"),
        ("credential", "PATH"),
    ]
    assert "git push" in " ".join(asked.details) and "nor taken back" in asked.details[-1]
    assert call.withheld_by == "person"
    await net.shell(command)
    assert len(person.asked) == 1


async def test_what_is_sent_is_on_record(real: Workspace) -> None:
    """Each connection is reported with call, host and bytes, refused ones too; the task knows what went out."""
    with git_server(real.roots.home) as port:
        net = Net(real, _Policies(f"network 127.0.0.1:{port}"))
        call = await net.python(
            f"# artoo hosts: 127.0.0.1:{port}\n"
            "import urllib.request, urllib.error\n"
            f"for url in ('http://127.0.0.1:{port}/none', 'http://127.0.0.1:{port + 1}/', 'http://evil.test/'):\n"
            "    try:\n        urllib.request.urlopen(url)\n"
            "    except urllib.error.HTTPError as error:\n        print(error.code)\n"
        )
    assert call.output == "404\n403\n403\n"
    assert [(one.act, one.host, one.port, one.refused) for one in net.published] == [
        ("s/2", "127.0.0.1", port, None),
        ("s/2", "127.0.0.1", port + 1, f"127.0.0.1:{port + 1} is not permitted"),
        ("s/2", "evil.test", 80, "evil.test:80 is not permitted"),
    ]
    line = f"# artoo hosts: 127.0.0.1:{port} 127.0.0.1:{port + 1} evil.test:80"
    assert f"to ask for it too, let the first line be: {line}" in (call.reason or "")
    (line,) = net.network.went_out()
    assert line.startswith(f"127.0.0.1:{port}: ") and " sent, " in line
    later = Network()
    later.restore(net.published)
    assert later.went_out() == net.network.went_out()
    assert [one.effects for one in net.announced] == ["outside"]


async def test_a_credential_passes_only_when_named(real: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that looks like a key reaches a command only by consent, and only that command."""
    monkeypatch.setenv("FORGE_TOKEN", "s3cret")
    net = Net(real, _Policies("network a.org", "credential FORGE_TOKEN"))
    assert (await net.shell("# artoo hosts: a.org $FORGE_TOKEN\necho $FORGE_TOKEN")).output == "s3cret\n"
    assert (await net.shell("# artoo hosts: a.org\necho $FORGE_TOKEN")).output == "\n"
    refused = await Net(real, _Policies("network a.org")).shell("# artoo hosts: a.org $FORGE_TOKEN\ntrue")
    assert refused.status is CallStatus.REFUSED and "credential FORGE_TOKEN" in (refused.reason or "")


# --- the real thing ---------------------------------------------------------------------------------------------


def run(*argv: str | Path) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


async def test_git_pushes_by_consent(real: Workspace, tmp_path: Path) -> None:
    """git pushes over http: not without consent, with it, and on record."""
    work = tmp_path / "served" / "work.git"
    await asyncio.to_thread(run, "git", "init", "-q", "--bare", work)
    await asyncio.to_thread(run, "git", "-C", work, "config", "http.receivepack", "true")
    with git_server(work.parent) as port:
        net = Net(real, AskNobody())
        commit = "git -c user.name=me -c user.email=me@example.org commit -q --allow-empty -m first"
        assert (await net.shell(f"git init -q -b main . && {commit}")).status is CallStatus.OK
        push = f"git push -q http://127.0.0.1:{port}/work.git main"
        call = await net.shell(push)
        assert call.status is CallStatus.ERROR and "# artoo hosts:" in (call.reason or ""), call
        call = await net.shell(f"# artoo hosts: 127.0.0.1:{port}\n{push}")
        assert f"asked here: network 127.0.0.1:{port}" in (call.reason or "")
        net = Net(real, _Policies(f"network 127.0.0.1:{port}"))
        call = await net.shell(f"# artoo hosts: 127.0.0.1:{port}\n{push}")
        assert call.status is CallStatus.OK, call
    assert await asyncio.to_thread(run, "git", "-C", work, "log", "--format=%s", "main") == "first\n"
    assert {one.host for one in net.published} == {"127.0.0.1"} and net.network.went_out()
