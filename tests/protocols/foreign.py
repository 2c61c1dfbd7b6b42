"""A home with a team that foreign agents may ask, served by a real process of artoo, and the SDK's own client."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import yaml
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types import AgentCard, Message, Part, Role, SendMessageConfiguration, SendMessageRequest, Task, TaskState
from a2a.utils.constants import TransportProtocol
from hosting import Place

from artoo.agents.identity.folders import create_agent
from artoo.contracts.agents import OPERATOR, TrustLevel
from artoo.runtime.config.loader import load_config
from artoo.runtime.config.model import Config
from artoo.team.office import Office, open_office
from artoo.testing import Asked, Reply, ScriptedServer, slow, with_body
from artoo.testing.script import Scripted

PATIENCE = 60.0
"""Seconds after which a state that does not come is a failing test instead of a silent one."""
PEER = {"trust": "senior", "open": 20, "day": 500}
TEAM = {"ada": TrustLevel.SENIOR}


def work(asked: Asked) -> Scripted:
    """`make NAME` makes a file, one called slow slowly; `wait NAME` after a long thought. A reviewer approves."""
    match asked.contract:
        case "Plan":
            return {"subtasks": [_subtask(doing, name) for doing, name in _wanted(asked.user)]}
        case "ExecutorStep":
            doing, name = _wanted(asked.user.rpartition("Your subtask:\n")[2])[0]
            step: Reply = with_body({"tool": "write_file", "input": f"{name}.txt", "is_final": True}, name, "text")
            return slow(step, 60.0 if doing == "wait" else 2.0) if "wait" in doing or "slow" in name else step
        case "ReviewReport":
            return {"verdict": "approve", "reasons": []}
        case _:
            return {"next_moves": []}


def _wanted(text: str) -> list[tuple[str, str]]:
    """What is to be done, each thing once."""
    return list(dict.fromkeys(re.findall(r"(make|wait) (\w+)\.txt", text))) or [("make", "unasked")]


def _subtask(doing: str, name: str) -> dict[str, object]:
    check = {"check": "file_exists", "path": f"{name}.txt"}
    criteria = [{"text": f"{name}.txt exists", "mode": "verifiable", "check": check}]
    return {"intent": f"{doing} {name}.txt", "tool": "write_file", "success_criteria": criteria}


@dataclass(slots=True)
class Served:
    """A home, and where its foreign agents ask. `said` is what the process has told its operator."""

    place: Place
    process: asyncio.subprocess.Process
    url: str
    said: list[str] = field(default_factory=list[str])

    def token(self, name: str = "partner") -> str:
        return (self.place.home / f"a2a-{name}-token").read_text().strip()

    def http(self, name: str = "partner", timeout: float = PATIENCE) -> httpx.AsyncClient:
        """As that foreign agent."""
        return httpx.AsyncClient(headers={"authorization": f"Bearer {self.token(name)}"}, timeout=timeout)

    async def killed(self) -> None:
        """Without warning."""
        self.process.kill()
        await self.process.wait()


async def prepare(place: Place, policy: Mapping[str, object], team: Mapping[str, TrustLevel]) -> Config:
    """The configuration as a file, and agents that are accepted."""
    place.home.mkdir(parents=True, exist_ok=True)
    workspace = place.root / "workspace"
    workspace.mkdir(exist_ok=True)
    settings = {"workspace": str(workspace), "memory": {"enabled": False}, **policy}
    (place.home / "config.yaml").write_text(yaml.safe_dump(settings))
    config = load_config({**place.environ})
    async with open_office(config) as office:
        for name, trust in team.items():
            if not (place.home / "agents" / name).exists():
                identity = create_agent(place.home, name, role="clerk", persona="Exact.", skills=("files",))
                await office.registry.register(name, OPERATOR, sha256=identity.sha256, trust=trust)
    return config


@asynccontextmanager
async def started(place: Place, port: int = 0) -> AsyncGenerator[Served]:
    """`artoo a2a`, ended at the end unless somebody killed it."""
    process = await asyncio.create_subprocess_exec(
        *place.command("a2a", "--port", str(port)),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env=place.environ,
    )
    assert process.stderr is not None
    said = list[str]()
    try:
        async with asyncio.timeout(PATIENCE):
            while line := (await process.stderr.readline()).decode():
                said.append(line)
                if "A2A at" in line:
                    break
        assert said and "A2A at" in said[-1], said
        yield Served(place, process, said[-1].split("A2A at ")[1].split(";")[0], said)
    finally:
        if process.returncode is None:
            process.terminate()
            _, rest = await process.communicate()
            assert process.returncode == 0, rest.decode()


@asynccontextmanager
async def hosted(
    root: Path,
    peers: Mapping[str, object] | None = None,
    team: Mapping[str, TrustLevel] | None = None,
    **more: object,
) -> AsyncGenerator[Place]:
    """A place whose policy knows `peers` (one that is trusted, unless said otherwise)."""
    async with ScriptedServer(work) as server:
        place = Place(root / "person", server.base_url)
        place.project.mkdir(parents=True)
        policy = {"a2a": {"peers": peers or {"partner": PEER}, "expose": list(team or TEAM)}, **more}
        await prepare(place, policy, team or TEAM)
        yield place


@asynccontextmanager
async def books(place: Place) -> AsyncGenerator[Office]:
    """The board, beside the process that serves."""
    async with open_office(load_config({**place.environ})) as office:
        yield office


@asynccontextmanager
async def client_of(
    served: Served, binding: TransportProtocol = TransportProtocol.JSONRPC, agent: str = "", name: str = "partner"
) -> AsyncGenerator[Client]:
    """The SDK's client, from the card on."""
    async with served.http(name) as http:
        card = await card_of(served, http, agent)
        config = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding])
        yield ClientFactory(config).create(card)


async def card_of(served: Served, http: httpx.AsyncClient, agent: str = "") -> AgentCard:
    """The card of an agent, or of the team."""
    place = f"/agents/{agent}" if agent else ""
    return await A2ACardResolver(http, served.url + place).get_agent_card()


def message(text: str, name: str, **configuration: object) -> SendMessageRequest:
    """A request of this id."""
    made = Message(message_id=name, role=Role.ROLE_USER, parts=[Part(text=text)])
    return SendMessageRequest(message=made, configuration=SendMessageConfiguration(**configuration))  # type: ignore[arg-type]


async def first_task(client: Client, request: SendMessageRequest) -> Task:
    """The task that the stream begins with; the stream is left."""
    answers = client.send_message(request)
    try:
        async for answer in answers:
            return answer.task
    finally:
        await answers.aclose()  # type: ignore[attr-defined]
    raise AssertionError("nothing was answered")


def state(task: Task) -> str:
    return TaskState.Name(task.status.state).removeprefix("TASK_STATE_").lower()
