"""What a task may do on this machine, put together for one project and one request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.sandbox import Roots, Sandbox, TaskLedger
from artoo.runtime.mcp import Pool, preparation
from artoo.runtime.task import Hands
from artoo.tools.evidence_source import ReadOnlyEvidence
from artoo.tools.gate import Gate
from artoo.tools.gated import GatedCommands, GatedWriter
from artoo.tools.look import ProjectLook
from artoo.tools.mcp.servers import McpServer
from artoo.tools.origins import Origins
from artoo.tools.questions import AskNobody, AskOnStream
from artoo.tools.registry import Registry
from artoo.tools.sandbox.classify import Places
from artoo.tools.standard import builtin_tools, gated, reaching_tools
from artoo.tools.user_tools import UserTool


@dataclass(frozen=True, slots=True)
class McpTools:
    """The person's own servers, and what connects to them."""

    servers: tuple[McpServer, ...]
    pool: Pool


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
) -> Hands:
    """Built-in tools and the user's own, over one sandbox; what they change passes the gate.

    `port` is the gate's place on the stream; without one nobody can be asked. `environ` holds the keys of search
    engines, `mcp` the servers of others.
    """
    places = Places.of(roots, artoo_home)
    questions = AskOnStream(port) if port is not None else None
    gate, ledger = Gate(questions or AskNobody(), Origins(request)), TaskLedger()
    runner = GatedCommands(sandbox, roots, task_id, gate, ledger)
    writer = GatedWriter(sandbox, roots, task_id, gate, ledger)
    registry = Registry(
        (
            *builtin_tools(runner, writer, roots, artoo_home, request),
            *reaching_tools(gate, roots, environ or {}),
            *gated(own_tools, gate),
        ),
        clock,
        gate.origins.observe,
        gate,
    )
    return Hands(
        tools=registry,
        evidence=ReadOnlyEvidence(sandbox, roots, places, task_id),
        surroundings=ProjectLook(roots, places),
        questions=questions,
        prepare=None if mcp is None else preparation(roots.project, mcp.servers, gate, mcp.pool, registry),
    )
