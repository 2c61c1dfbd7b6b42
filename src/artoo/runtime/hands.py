"""What a task may do on this machine, put together for one project and one request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.changes import Conflict
from artoo.contracts.network import NetworkUsed
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.sandbox import Roots, Sandbox, unheard
from artoo.runtime.mcp import Pool, preparation
from artoo.runtime.stage import Hands
from artoo.tools.evidence_source import ReadOnlyEvidence
from artoo.tools.gate import Gate
from artoo.tools.gated import GatedCommands, GatedWriter
from artoo.tools.look import ProjectLook
from artoo.tools.mcp.servers import McpServer
from artoo.tools.network import Network
from artoo.tools.origins import Origins
from artoo.tools.past import Past
from artoo.tools.questions import AskNobody, AskOnStream
from artoo.tools.registry import Registry
from artoo.tools.resumed import Resumed
from artoo.tools.standard import builtin_tools, gated, reaching_tools
from artoo.tools.under_way import Durable, nothing_to_keep
from artoo.tools.user_tools import UserTool
from artoo.world.classify import Places


@dataclass(frozen=True, slots=True)
class McpTools:
    """The person's own servers, and what connects to them."""

    servers: tuple[McpServer, ...]
    pool: Pool


class OneView:
    """All subtasks work on the same files: there is nothing to join. Implements ports.joining.Joining."""

    async def join(self, subtask_ids: Sequence[str]) -> tuple[Conflict, ...]:
        """Nothing to do."""
        return ()


def _publish(port: Port, used: NetworkUsed) -> None:
    port.publish(used)


def open_hands(
    sandbox: Sandbox,
    roots: Roots,
    artoo_home: Path,
    task_id: str,
    request: str,
    clock: Clock,
    own_tools: Sequence[UserTool] = (),
    port: Port | None = None,
    environ: Mapping[str, str] | None = None,
    mcp: McpTools | None = None,
    durable: Durable = nothing_to_keep,
    past: Past | None = None,
) -> Hands:
    """Built-in tools and the user's own, over one sandbox; what they change passes the gate.

    `port` is the gate's place on the stream; without one nobody can be asked. `environ` holds the keys of search
    engines, `mcp` the servers of others. `durable` waits for the task log; `past` is that of a resumed task, whose
    answers, files and calls under way are taken up.
    """
    places = Places.of(roots, artoo_home)
    questions = AskOnStream(port) if port is not None else None
    before = past or Past()
    gate, ledger = Gate(questions or AskNobody(), Origins(request)), before.ledger
    gate.restore(before)
    network = Network(unheard if port is None else lambda used: _publish(port, used))
    network.restore(before.used)
    runner = GatedCommands(sandbox, roots, task_id, gate, ledger, notes=before.notes, network=network)
    writer = GatedWriter(sandbox, roots, task_id, gate, ledger, notes=before.notes)
    registry = Registry(
        (
            *builtin_tools(runner, writer, roots, artoo_home, request, places=places),
            *reaching_tools(gate, roots, environ or {}),
            *gated(own_tools, gate),
        ),
        clock,
        gate.origins.observe,
        gate,
        durable,
        Resumed(past, gate) if past is not None else None,
    )
    return Hands(
        tools=registry,
        evidence=ReadOnlyEvidence(sandbox, roots, places, task_id),
        surroundings=ProjectLook(roots, places),
        joining=OneView(),
        questions=questions,
        prepare=None if mcp is None else preparation(roots.project, mcp.servers, gate, mcp.pool, registry),
    )
