"""What a task may do on this machine, put together for one project and one request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from artoo.contracts.changes import Conflict
from artoo.contracts.network import NetworkUsed
from artoo.contracts.settling import Ending, Settled
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.confirm import Questions
from artoo.ports.sandbox import unheard
from artoo.ports.settling import Settling
from artoo.ports.world import View
from artoo.runtime.mcp import Pool, preparation
from artoo.runtime.stage import Hands, Sight
from artoo.tools.builtin.shell import COMMAND_SECONDS
from artoo.tools.evidence_source import EvidenceInView
from artoo.tools.gate import Gate
from artoo.tools.look import ProjectLook
from artoo.tools.mcp.servers import McpServer
from artoo.tools.network import Network
from artoo.tools.origins import Origins
from artoo.tools.past import Past
from artoo.tools.printing import Printing
from artoo.tools.questions import AskNobody, AskOnStream
from artoo.tools.registry import Registry
from artoo.tools.resumed import Resumed
from artoo.tools.standard import builtin_tools, gated, reaching_tools
from artoo.tools.tool import Tool
from artoo.tools.under_way import Durable, nothing_to_keep
from artoo.tools.user_tools import UserTool
from artoo.world.classify import Places


@dataclass(frozen=True, slots=True)
class McpTools:
    """The person's own servers, and what connects to them."""

    servers: tuple[McpServer, ...]
    pool: Pool


SettleBy = Callable[[Callable[[], tuple[str, ...]]], Settling]
"""Makes what settles a task's view, given what tells what went out."""


@dataclass(slots=True)
class Forks:
    """The forks of one task's view, by subtask. Implements ports.joining.Joining."""

    view: View
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _ended: bool = False

    def of(self, subtask_id: str) -> View:
        """Where a subtask works; free until it changes something."""
        return self.view.fork(subtask_id)

    async def join(self, subtask_ids: Sequence[str]) -> tuple[Conflict, ...]:
        """See Joining. What a crash left of a trial goes first: nothing is joined while a fork is open."""
        async with self._turn:
            if self._ended:
                await asyncio.Event().wait()  # the task is being settled, and ends: nobody waits for the answer
            for subtask_id in subtask_ids:
                await self.view.drop(_trial_of(subtask_id))
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


def open_hands(
    view: View,
    artoo_home: Path,
    request: str,
    clock: Clock,
    own_tools: Sequence[UserTool] = (),
    port: Port | None = None,
    environ: Mapping[str, str] | None = None,
    mcp: McpTools | None = None,
    durable: Durable = nothing_to_keep,
    past: Past | None = None,
    settle: SettleBy | None = None,
    printing: Printing | None = None,
    *,
    whole_files: bool = False,
    command_seconds: float = COMMAND_SECONDS,
) -> Hands:
    """Built-in tools over the task's view, and the user's own behind the gate.

    `port` is the gate's place on the stream; without one nobody can be asked. `environ` holds the keys of search
    engines, `mcp` the servers of others. `durable` waits for the task log; `past` is that of a resumed task, whose
    answers and calls under way are taken up. `settle` makes what settles the view at the end. `printing` shows what
    commands print while they run. `whole_files`: listings show small files whole. `command_seconds` bounds one
    command or program.
    """
    roots = view.roots
    places, forks = Places.of(roots, artoo_home), Forks(view)
    before = past or Past()
    network = Network(unheard if port is None else lambda used: _publish(port, used))
    network.restore(before.used)
    gate = Gate(AskNobody(), Origins(request))
    questions = None
    if port is not None:
        settling = None if settle is None else settle(lambda: (*network.went_out(), *gate.outside))
        questions = AskOnStream(port, None if settling is None else _AfterJoins(forks, settling))
        gate.questions = questions
    gate.restore(before)

    def in_view(one: View) -> tuple[Tool, ...]:
        return builtin_tools(
            *(one, gate, artoo_home, network), places=places, printing=printing, command_seconds=command_seconds
        )

    def working_in(subtask_id: str) -> Iterable[Tool]:
        return in_view(forks.of(subtask_id))

    look = partial(ProjectLook, roots, places, whole_files=whole_files, observe=gate.origins.observe_text)

    def sight(subtask_id: str) -> Sight:
        fork = forks.of(subtask_id)
        looked_at = EvidenceInView(fork, places, view, lambda: view.files, _trial_of(subtask_id))
        return Sight(looked_at, look(lambda: fork.files, changes=fork.changes))

    registry = Registry(
        (
            *in_view(view),
            *reaching_tools(gate, roots, environ or {}),
            *gated(own_tools, gate),
        ),
        clock,
        gate.origins.observe,
        gate,
        durable,
        Resumed(past, gate) if past is not None else None,
        working_in,
    )
    return Hands(
        tools=registry,
        whole=Sight(EvidenceInView(view, places, view), look(lambda: view.files)),
        sight=sight,
        joining=forks,
        questions=questions,
        prepare=None if mcp is None else preparation(roots.project, mcp.servers, gate, mcp.pool, registry),
    )


def _trial_of(subtask_id: str) -> str:
    return f"{subtask_id} trial"
