"""Open the tools of a task, such as built-in, user's, MCP, skills and processes, with the gate."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.contracts.errors import SandboxError
from artoo.contracts.events import NetworkUsed
from artoo.contracts.execution import OUTPUT_KEPT
from artoo.contracts.settling import Ending, Settled
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.confirm import Questions
from artoo.ports.settling import Settling
from artoo.ports.workspace import Workspace, ignore_connection
from artoo.runtime.app.mcp import preparation
from artoo.runtime.app.skill_paths import any_skills
from artoo.runtime.task.kept_processes import LeftRunning
from artoo.runtime.task.role_context import Hands, Sight, SubTaskSight
from artoo.tools.approval.gate import Gate
from artoo.tools.approval.network_consent import Network
from artoo.tools.approval.policy import Policies
from artoo.tools.approval.prompts import AskNobody, AskOnStream
from artoo.tools.builtin.process import in_a_line
from artoo.tools.context.agents_md import GUIDE_CHARACTERS, Guide, guides
from artoo.tools.context.evidence_source import WorkspaceEvidence
from artoo.tools.context.project_snapshot import ProjectLook
from artoo.tools.core.default_tools import Machine, Shared, builtin_tools, gated, reaching_tools
from artoo.tools.core.function_tools import UserTool
from artoo.tools.core.live_output import Printing
from artoo.tools.core.middleware import Middleware
from artoo.tools.core.registry import Registry
from artoo.tools.core.turn_news import TurnNews
from artoo.tools.mcp.servers import McpServer
from artoo.tools.provenance.taint import Origins
from artoo.tools.resume.earlier_runs import Past
from artoo.tools.resume.in_flight import Durable, nothing_to_keep
from artoo.tools.resume.resume_calls import Resumed
from artoo.workspace.changes.path_class import Places

if TYPE_CHECKING:
    from artoo.runtime.extensions.hooks import TaskHooks
    from artoo.tools.mcp.tool import McpPool

SettleBy = Callable[[Callable[[], tuple[str, ...]]], Settling]
"""Makes the Settling of a task's workspace. The argument is a function that describes the data which was sent
out."""


@dataclass(frozen=True, slots=True)
class _WithProcesses:
    """Stops the task's commands, settles its changes, and then starts the commands to be kept again, outside of the
    workspace.

    Implements Settling.
    """

    shared: Shared
    inner: Settling
    left_running: LeftRunning

    async def settle(self, ending: Ending, questions: Questions | None) -> Settled:
        left = [each for one in self.shared.workspace.processes for each in await one.background()]
        stopped = await self.shared.workspace.stop_processes()
        commands = {one.id: one for one in self.shared.processes.all}
        unseen = self.shared.workspace.notes
        await self.shared.changes.discard_snapshots()
        settled = await self.inner.settle(ending, questions)
        tracked = [commands[each.id] for each in stopped if each.id in commands]
        kept = [one for one in tracked if one.command.keep]
        started = await self.left_running.started(kept, settled, ending, questions)
        ended = [one.command.text for one in tracked if one.id not in started]
        told = tuple(in_a_line(text) for text in (*ended, *left))
        facts = {"stopped": told, "running": tuple(started.values()), "unseen": unseen}
        return settled.model_copy(update=facts)

    async def settle_live(self) -> tuple[str, ...]:
        return await self.inner.settle_live()


def _publish(port: Port, used: NetworkUsed) -> None:
    port.publish(used)


@dataclass(frozen=True, slots=True)
class Outfit:
    """The objects from which the tools of one task are made.

    `environ` contains the keys of search engines. `pool` connects to the MCP servers in `servers`. `durable` waits
    until the task log is on disk. `past` is the past of a resumed task. Its consents, and its calls without a
    result, are restored. `settle` makes the Settling for the end of the task. `printing` shows the output of
    commands while they run. `whole_files`: true to show small files whole in listings. `read_kept`: number of
    characters of an output that a record keeps. `second_ways`: true if results may be checked by a second way, for
    which the state before each subtask is kept. `permitted`: standing permissions for changes that otherwise need
    approval. `middleware` wraps every call. `hooks` are the hooks of the task.
    """

    workspace: Workspace
    artoo_home: Path
    request: str
    clock: Clock
    own_tools: Sequence[UserTool] = ()
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    servers: tuple[McpServer, ...] = ()
    pool: McpPool | None = None
    durable: Durable = nothing_to_keep
    past: Past | None = None
    settle: SettleBy | None = None
    printing: Printing | None = None
    whole_files: bool = False
    read_kept: int = OUTPUT_KEPT
    second_ways: bool = False
    permitted: Policies = field(default_factory=Policies)
    middleware: tuple[Middleware, ...] = ()
    hooks: TaskHooks | None = None
    mcp_tokens: int | None = None


async def _kept_image(workspace: Workspace, kind: str, image: bytes) -> str:
    """Write an image from an MCP tool into the task's /tmp. Return a line that names the file, or the error."""
    name = f"mcp-{hashlib.sha256(image).hexdigest()[:12]}.{kind.rpartition('/')[2].partition('+')[0] or 'bin'}"
    try:
        await workspace.write(Path("/tmp") / name, image)
    except SandboxError as error:
        return f"[the image could not be put into /tmp: {error}]"
    return f"[the image is /tmp/{name}]"


def open_hands(outfit: Outfit, port: Port | None = None) -> Hands:
    """Return the built-in tools for the task's workspace, and the user's own tools, which ask the gate first.

    `port` is the port through which the gate publishes its questions. Without it, no user can be asked.
    """
    workspace, places = outfit.workspace, Places.of(outfit.workspace.roots, outfit.artoo_home)
    past = outfit.past or Past()
    network = Network(ignore_connection if port is None else lambda used: _publish(port, used))
    gate = Gate(AskNobody(), Origins(outfit.request))
    network.restore(past.used)
    shared = Shared.of(workspace, gate, places, network, outfit.printing, snapshots=outfit.second_ways)
    shared.changes.restore(past.changed)
    settling = None
    if outfit.settle is not None:
        settling = outfit.settle(lambda: (*network.went_out(), *gate.outside))
    questions = None if port is None else _questions(outfit, port, shared, settling)
    if questions is not None:
        gate.questions = questions
    gate.restore(past)
    news = TurnNews(workspace, shared.looked, shared.processes, dict(past.died))
    if settling is not None:
        news.settle_live = settling.settle_live
    sights = _Sights(outfit, shared, news)
    news.changes, news.guides_at = shared.changes, sights.guides_at
    if outfit.past is not None:
        news.listing = sights.listing
    registry = _registry(outfit, shared)
    skills = _skills(outfit, places, gate, registry)
    hooks = outfit.hooks
    registry.middleware = outfit.middleware
    if hooks is not None and hooks.around_tools:
        registry.middleware = (*outfit.middleware, hooks.around)
    project, pool = workspace.roots.project, outfit.pool
    given = (outfit.mcp_tokens, partial(_kept_image, workspace))
    servers = None if pool is None else preparation(project, outfit.servers, gate, pool, registry, *given)
    return Hands(
        tools=registry,
        whole=sights.whole(),
        sight=sights.of,
        processes=shared.processes,
        questions=questions,
        prepare=_in_turn(partial(hooks.equip, gate) if hooks is not None else None, skills, servers),
        ended=hooks.ended if hooks is not None else None,
    )


def _skills(outfit: Outfit, places: Places, gate: Gate, registry: Registry) -> Callable[[], Awaitable[None]] | None:
    """Return the step that prepares skills. Return None if there are no skills."""
    workspace = outfit.workspace
    if not any_skills(outfit.artoo_home, workspace.roots.project):
        return None
    from artoo.runtime.app.skill_selection import (
        equipment,
    )

    return equipment(outfit.artoo_home, workspace.roots, lambda: workspace.files, places, gate, registry)


def _in_turn(*steps: Callable[[], Awaitable[None]] | None) -> Callable[[], Awaitable[None]] | None:
    """Return a function that runs the given steps one after another. Return None if there are no steps."""
    given = [step for step in steps if step is not None]

    async def prepare() -> None:
        for step in given:
            await step()

    return prepare if given else None


def _questions(outfit: Outfit, port: Port, shared: Shared, settling: Settling | None) -> AskOnStream:
    if settling is None:
        return AskOnStream(port, None)
    left_running = LeftRunning(outfit.artoo_home, shared.workspace.roots.project)
    return AskOnStream(port, _WithProcesses(shared, settling, left_running))


def _registry(outfit: Outfit, shared: Shared) -> Registry:
    roots, gate = shared.workspace.roots, shared.gate
    machine = Machine.of(roots)
    return Registry(
        (
            *builtin_tools(shared, machine, outfit.read_kept),
            *reaching_tools(gate, roots, outfit.environ, machine),
            *gated(outfit.own_tools, gate),
        ),
        outfit.clock,
        gate.origins.observe,
        gate,
        outfit.durable,
        Resumed(outfit.past, gate) if outfit.past is not None else None,
        outfit.read_kept,
    )


@dataclass(frozen=True, slots=True)
class _Sights:
    """Makes the sources that show the workspace to code and prompts. They show the whole task or one subtask."""

    outfit: Outfit
    shared: Shared
    news: TurnNews

    def whole(self) -> Sight:
        workspace, places = self.shared.workspace, self.shared.places
        return Sight(WorkspaceEvidence(workspace, places, base=lambda: workspace), self._look())

    def guides_at(self, places: Iterable[Path]) -> tuple[Guide, ...]:
        """Return the guides in and above these directories. A guide that another author wrote is recorded as a
        foreign text."""
        workspace, observe = self.shared.workspace, self.shared.gate.origins.observe_text
        found = guides(workspace.files, workspace.roots, self.shared.places, places)
        for guide in found:
            if guide.foreign:
                observe(guide.path, guide.text)
        return found

    async def listing(self) -> str:
        """List the files on disk, for a subtask of a task that was resumed."""
        return (await self._look().look(self.outfit.request)).listing

    def of(self, subtask_id: str) -> SubTaskSight:
        shared, changes = self.shared, self.shared.changes

        def mine(path: str) -> bool:
            return not changes.of_others_alone(subtask_id, path)

        base = partial(changes.state_before, subtask_id)
        evidence = WorkspaceEvidence(shared.workspace, shared.places, mine, base=base)
        return SubTaskSight(evidence, replace(self._look(), mine=mine, turns=partial(self.news.of, subtask_id)))

    def _look(self) -> ProjectLook:
        workspace = self.shared.workspace
        return ProjectLook(
            *(workspace.roots, self.shared.places, lambda: workspace.files),
            guide_characters=min(self.outfit.read_kept, GUIDE_CHARACTERS),
            whole_files=self.outfit.whole_files,
            observe=self.shared.gate.origins.observe_text,
            looked=self.shared.looked,
            permitted=self.outfit.permitted,
            workspace=workspace,
        )
