"""What a task may do on this machine, put together for one project and one request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from artoo.contracts.changes import Clash
from artoo.contracts.execution import OUTPUT_KEPT
from artoo.contracts.network import NetworkUsed
from artoo.contracts.settling import Ending, Settled
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.confirm import Questions
from artoo.ports.sandbox import unheard
from artoo.ports.settling import Settling
from artoo.ports.world import View
from artoo.runtime.mcp import Pool, preparation
from artoo.runtime.skill_places import any_skills
from artoo.runtime.stage import Hands, Sight
from artoo.tools.builtin.shell import COMMAND_SECONDS
from artoo.tools.evidence_source import EvidenceInView
from artoo.tools.gate import Gate
from artoo.tools.look import ProjectLook
from artoo.tools.looked_at import LookedAt
from artoo.tools.mcp.servers import McpServer
from artoo.tools.network import Network
from artoo.tools.origins import Origins
from artoo.tools.past import Past
from artoo.tools.printing import Printing
from artoo.tools.questions import AskNobody, AskOnStream
from artoo.tools.registry import Registry
from artoo.tools.resumed import Resumed
from artoo.tools.seeing import Look
from artoo.tools.standard import Machine, builtin_tools, gated, reaching_tools
from artoo.tools.tool import Tool
from artoo.tools.under_way import Durable, nothing_to_keep
from artoo.tools.user_tools import UserTool
from artoo.world.classify import Places
from artoo.world.union import RealFiles
from artoo.world.view_place import TRIAL


@dataclass(frozen=True, slots=True)
class McpTools:
    """The person's own servers, and what connects to them."""

    servers: tuple[McpServer, ...]
    pool: Pool

    def with_servers(self, others: Sequence[McpServer]) -> McpTools:
        """With others besides, but for those whose names are taken."""
        names = {server.name for server in self.servers}
        fresh = tuple(server for server in others if server.name not in names)
        return replace(self, servers=(*self.servers, *fresh)) if fresh else self


SettleBy = Callable[[Callable[[], tuple[str, ...]]], Settling]
"""Makes what settles a task's view, given what tells what went out."""


@dataclass(slots=True)
class Forks:
    """The forks of one task's view, by subtask. Implements ports.joining.Joining.

    `goes_on`: the task has begun in another process, which may have died in a trial. Trials are forks too
    (tools.evidence_source.Forkable). `joined`: subtasks that such a process has joined.
    """

    view: View
    goes_on: bool = False
    joined: frozenset[str] = frozenset()
    _trials: set[str] = field(default_factory=set[str])
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _ended: bool = False

    def of(self, subtask_id: str) -> View:
        """Where a subtask works; free until it changes something. One that was joined before has no fork any more:
        to open it again would close the view below it, and nobody would join it.
        """
        return self.view if subtask_id in self.joined else self.view.fork(subtask_id)

    def fork(self, name: str) -> View:
        """Where a trial runs, until it is dropped."""
        self._trials.add(name)
        return self.view.fork(name)

    async def drop(self, name: str) -> None:
        """Forgets a trial."""
        await self.view.drop(name)
        self._trials.discard(name)

    async def join(self, subtask_ids: Sequence[str]) -> tuple[Clash, ...]:
        """See Joining. What is left of a trial goes first: nothing is joined while a fork is open."""
        async with self._turn:
            if self._ended:
                await asyncio.Event().wait()  # the task is being settled, and ends: nobody waits for the answer
            for trial in map(_trial_of, subtask_ids):
                if self.goes_on or trial in self._trials:
                    await self.drop(trial)
            return await self.view.join(subtask_ids)

    async def end(self) -> None:
        """From now on nothing is joined; a join that is under way is waited for."""
        async with self._turn:
            self._ended = True


@dataclass(frozen=True, slots=True)
class _AfterJoins:
    """Settles when nothing is joined any more. Implements ports.settling.Settling."""

    forks: Forks
    inner: Settling

    async def settle(self, ending: Ending, questions: Questions | None) -> Settled:
        """See Settling."""
        await self.forks.end()
        return await self.inner.settle(ending, questions)


def _publish(port: Port, used: NetworkUsed) -> None:
    port.publish(used)


@dataclass(frozen=True, slots=True)
class Outfit:
    """What one task's tools are made of.

    `environ` holds the keys of search engines, `mcp` the servers of others. `durable` waits for the task log;
    `past` is that of a resumed task, whose answers and calls under way are taken up. `settle` makes what settles
    the view at the end. `printing` shows what commands print while they run. `whole_files`: listings show small
    files whole. `command_seconds` bounds one command or program, `read_kept` the characters that a look at a file
    shows.
    """

    view: View
    artoo_home: Path
    request: str
    clock: Clock
    own_tools: Sequence[UserTool] = ()
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    mcp: McpTools | None = None
    durable: Durable = nothing_to_keep
    past: Past | None = None
    settle: SettleBy | None = None
    printing: Printing | None = None
    whole_files: bool = False
    command_seconds: float = COMMAND_SECONDS
    read_kept: int = OUTPUT_KEPT


def open_hands(outfit: Outfit, port: Port | None = None) -> Hands:
    """Built-in tools over the task's view, and the user's own behind the gate.

    `port` is the gate's place on the stream; without one nobody can be asked.
    """
    view, places = outfit.view, Places.of(outfit.view.roots, outfit.artoo_home)
    past = outfit.past or Past()
    forks = Forks(view, goes_on=outfit.past is not None, joined=past.joined)
    network = Network(unheard if port is None else lambda used: _publish(port, used))
    gate = Gate(AskNobody(), Origins(outfit.request))
    network.restore(past.used)
    questions = None if port is None else _questions(outfit, port, forks, network, gate)
    if questions is not None:
        gate.questions = questions
    gate.restore(past)
    looked = LookedAt()
    sights = _Sights(outfit, places, forks, gate, looked)
    registry = _registry(outfit, places, forks, network, gate, looked)
    mcp = outfit.mcp
    skills = _skills(outfit, places, gate, registry)
    servers = None if mcp is None else preparation(view.roots.project, mcp.servers, gate, mcp.pool, registry)
    return Hands(
        tools=registry,
        whole=sights.whole(),
        sight=sights.of,
        joining=forks,
        questions=questions,
        prepare=_in_turn(skills, servers),
    )


def _skills(outfit: Outfit, places: Places, gate: Gate, registry: Registry) -> Callable[[], Awaitable[None]] | None:
    """What is done about skills, None where there are none."""
    view = outfit.view
    if not any_skills(outfit.artoo_home, view.roots.project):
        return None
    from artoo.runtime.skills import equipment  # YAML, and models of its own: most projects have no skills

    return equipment(outfit.artoo_home, view.roots, lambda: view.files, places, gate, registry)


def _in_turn(*steps: Callable[[], Awaitable[None]] | None) -> Callable[[], Awaitable[None]] | None:
    """One after the other; None when there is nothing to do."""
    given = [step for step in steps if step is not None]

    async def prepare() -> None:
        for step in given:
            await step()

    return prepare if given else None


def _questions(outfit: Outfit, port: Port, forks: Forks, network: Network, gate: Gate) -> AskOnStream:
    if outfit.settle is None:
        return AskOnStream(port, None)
    return AskOnStream(port, _AfterJoins(forks, outfit.settle(lambda: (*network.went_out(), *gate.outside))))


def _registry(
    outfit: Outfit, places: Places, forks: Forks, network: Network, gate: Gate, looked: LookedAt
) -> Registry:
    machine = Machine.of(outfit.view.roots)
    make = partial(
        builtin_tools,
        machine=machine,
        places=places,
        printing=outfit.printing,
        command_seconds=outfit.command_seconds,
        read_kept=outfit.read_kept,
        looked=looked,
    )

    def working_in(view: View) -> tuple[Tool, ...]:
        return make(view, gate, outfit.artoo_home, network)

    reaching = reaching_tools(gate, outfit.view.roots, outfit.environ, machine)
    return Registry(
        (*working_in(outfit.view), *reaching, *gated(outfit.own_tools, gate)),
        outfit.clock,
        gate.origins.observe,
        gate,
        outfit.durable,
        Resumed(outfit.past, gate) if outfit.past is not None else None,
        lambda subtask_id: working_in(forks.of(subtask_id)),
    )


@dataclass(frozen=True, slots=True)
class _Sights:
    """What code and prompts see of the files: of the whole task, or of one subtask's fork."""

    outfit: Outfit
    places: Places
    forks: Forks
    gate: Gate
    looked: LookedAt

    def whole(self) -> Sight:
        view = self.outfit.view
        return Sight(EvidenceInView(view, self.places, self.forks), self._look(lambda: view.files, view, RealFiles))

    def of(self, subtask_id: str) -> Sight:
        view, fork = self.outfit.view, self.forks.of(subtask_id)
        looked_at = EvidenceInView(fork, self.places, self.forks, lambda: view.files, _trial_of(subtask_id))
        return Sight(looked_at, self._look(lambda: fork.files, fork, lambda: view.files, view))

    def _look(self, files: Look, view: View, before: Look, task: View | None = None) -> ProjectLook:
        """`view`: whose changes are told, of the files `before`; `task`: what it is a fork of."""
        observe = self.gate.origins.observe_text
        return ProjectLook(
            *(self.outfit.view.roots, self.places, files),
            whole_files=self.outfit.whole_files,
            observe=observe,
            looked=self.looked,
            view=view,
            before=before,
            task=task,
        )


def _trial_of(subtask_id: str) -> str:
    return f"{subtask_id} {TRIAL}"
