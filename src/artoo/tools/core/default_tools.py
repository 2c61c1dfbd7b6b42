"""The list of built-in tools that exist on this machine, and the gate around the user's own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial

from artoo.contracts.execution import OUTPUT_KEPT
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Files, Workspace
from artoo.sandbox.reading.programs import find_program, worked_in
from artoo.tools.approval.ask_first import Asking, always, never
from artoo.tools.approval.gate import Gate
from artoo.tools.approval.network_consent import Network
from artoo.tools.builtin.edit_file import EditFile
from artoo.tools.builtin.find_files import FindFiles
from artoo.tools.builtin.macos import AppleScript, Mdfind, Real, Shortcuts
from artoo.tools.builtin.process import ProcessTool
from artoo.tools.builtin.python import Python
from artoo.tools.builtin.read_file import ReadFile
from artoo.tools.builtin.search_text import SearchText
from artoo.tools.builtin.shell import Shell
from artoo.tools.builtin.web_fetch import WebFetch
from artoo.tools.builtin.web_search import Search, engine_for
from artoo.tools.builtin.write_file import WriteFile
from artoo.tools.core.call_changes import CallChanges
from artoo.tools.core.function_tools import Function, UserTool, user_tool
from artoo.tools.core.live_output import Printing
from artoo.tools.core.processes import Processes
from artoo.tools.core.tool import Tool
from artoo.tools.core.workspace_commands import WorkspaceCommands
from artoo.tools.core.workspace_files import WorkspaceWriter
from artoo.tools.files.documents import Documents
from artoo.tools.files.search import FileSearch
from artoo.tools.provenance.read_tracking import LookedAt
from artoo.workspace.changes.path_class import Places
from artoo.workspace.files.visible import VisibleFiles


@dataclass(frozen=True, slots=True)
class Machine:
    """The properties of this machine on which the list of tools depends: its platform and its programs."""

    platform: str = sys.platform
    which: Callable[[str], str | None] = find_program

    @classmethod
    def of(cls, roots: Roots) -> Machine:
        """Return this machine for a task in these directories. Each program is searched for only once in a task."""
        return cls(which=cache(partial(find_program, apart=worked_in(roots))))


def reaching_tools(
    gate: Gate, roots: Roots, environ: Mapping[str, str], machine: Machine | None = None
) -> tuple[Tool, ...]:
    """Return the tools that reach beyond the task's files. These reach the web, and on macOS other programs. All of
    them ask the gate first."""
    here = machine or Machine.of(roots)
    tools: list[Tool] = [Asking(Search(engine_for(environ)), gate, never, reads_only=True, outward=True)]
    if here.platform == "darwin":
        for name, tool in (("osascript", AppleScript), ("shortcuts", Shortcuts)):
            program = here.which(name)
            if program is not None:
                made = tool(Real(roots), program)
                tools.append(Asking(made, gate, always(made.why)))
    return tuple(tools)


@dataclass(frozen=True, slots=True)
class Shared:
    """The objects that all tools of a task share.

    `gate` asks about hosts, and about commands that cannot be confined to the sandbox. `network` records to which
    hosts commands send data. `printing` shows the output of running commands. `looked` records the files that were
    shown to the task. `changes` attributes changes to calls. `processes` are the commands that continued after the
    call that started them.
    """

    workspace: Workspace
    gate: Gate
    places: Places
    looked: LookedAt
    changes: CallChanges
    processes: Processes
    network: Network
    printing: Printing | None = None

    @classmethod
    def of(
        cls,
        workspace: Workspace,
        gate: Gate,
        places: Places,
        network: Network | None = None,
        printing: Printing | None = None,
        *,
        snapshots: bool = False,
    ) -> Shared:
        """Create the shared objects. `snapshots` has the same meaning as in CallChanges."""
        looked, processes = LookedAt(), Processes()
        changes = CallChanges(workspace, looked, processes.others_run, processes.any_runs, snapshots)
        return cls(workspace, gate, places, looked, changes, processes, network or Network(), printing)


def builtin_tools(shared: Shared, machine: Machine | None = None, kept: int = OUTPUT_KEPT) -> tuple[Tool, ...]:
    """Return the tools that read and change a task's workspace.

    `kept`: number of characters of an output that one call shows.
    """
    # The shell tool is offered only if bash is installed.
    workspace, places, roots = shared.workspace, shared.places, shared.workspace.roots
    here = machine or Machine.of(roots)
    mdfind = here.which("mdfind") if here.platform == "darwin" else None
    search = FileSearch(mdfind)
    runner = WorkspaceCommands(
        workspace, shared.gate, shared.network, shared.processes, shared.changes, shared.printing, kept
    )
    writer = WorkspaceWriter(workspace, places, shared.looked, shared.changes)

    def files() -> Files:
        return VisibleFiles(workspace.files, places)

    tools: list[Tool] = [
        FindFiles(search, roots, files),
        SearchText(roots, files),
        ReadFile(roots, places, files, kept, shared.looked, Documents(runner)),
        WriteFile(writer, roots),
        EditFile(writer, roots, files),
        Python(runner),
        WebFetch(runner),
    ]
    if mdfind is not None:
        tools.append(Mdfind(mdfind, roots, files))
    if here.which("bash") is not None:
        tools.append(Shell(runner, roots, search, files))
        tools.append(ProcessTool(shared.processes, shared.changes, runner, shared.printing, kept))
    return tuple(tools)


def own_tools(functions: Iterable[Function], gate: Gate) -> tuple[Tool, ...]:
    """Return the user's functions as tools behind the gate."""
    return gated((user_tool(function) for function in functions), gate)


def gated(tools: Iterable[UserTool], gate: Gate) -> tuple[Tool, ...]:
    """Put the user's tools behind the gate. Some of them ask before each call, the others only about names that
    came from data."""
    # A call that a crash interrupted may have had effects, unless the tool promises that it changes nothing.
    return tuple(
        Asking(one, gate, always() if one.effects.asks else never, reads_only=one.effects.repeatable)
        for one in tools
    )
