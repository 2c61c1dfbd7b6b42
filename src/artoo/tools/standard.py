"""The built-in tools that work on this machine, put together."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from artoo.contracts.execution import OUTPUT_KEPT
from artoo.ports.sandbox import Roots
from artoo.ports.world import Files, View
from artoo.tools.asking import Asking, always, never
from artoo.tools.builtin.edit_file import EditFile
from artoo.tools.builtin.find_files import FindFiles
from artoo.tools.builtin.find_text import FindText
from artoo.tools.builtin.glob import Glob
from artoo.tools.builtin.macos import AppleScript, Real, Shortcuts
from artoo.tools.builtin.python import Python
from artoo.tools.builtin.read_file import ReadFile
from artoo.tools.builtin.search import Search, engine_for
from artoo.tools.builtin.shell import COMMAND_SECONDS, Shell
from artoo.tools.builtin.write_file import WriteFile
from artoo.tools.gate import Gate
from artoo.tools.in_view import CommandsInView, FilesInView
from artoo.tools.index import choose_index
from artoo.tools.looked_at import LookedAt
from artoo.tools.network import Network
from artoo.tools.printing import Printing
from artoo.tools.tool import Tool
from artoo.tools.user_tools import Function, UserTool, user_tool
from artoo.workspace.changes.path_class import Places
from artoo.sandbox.reading.programs import find_program, worked_in
from artoo.world.reachable import ReachableFiles


@dataclass(frozen=True, slots=True)
class Machine:
    """What of this machine decides which tools there are: the platform, and where programs are found."""

    platform: str = sys.platform
    which: Callable[[str], str | None] = find_program

    @classmethod
    def of(cls, roots: Roots) -> Machine:
        """This one, for a task that works there: each program is looked for once, and not by every subtask."""
        return cls(which=cache(partial(find_program, apart=worked_in(roots))))


def reaching_tools(
    gate: Gate, roots: Roots, environ: Mapping[str, str], machine: Machine | None = None
) -> tuple[Tool, ...]:
    """Tools that reach beyond the files: the web, and on macOS other programs. All behind the gate."""
    here = machine or Machine.of(roots)
    tools: list[Tool] = [Asking(Search(engine_for(environ)), gate, never, reads_only=True, outward=True)]
    if here.platform == "darwin":
        for name, tool in (("osascript", AppleScript), ("shortcuts", Shortcuts)):
            program = here.which(name)
            if program is not None:
                made = tool(Real(roots), program)
                tools.append(Asking(made, gate, made.why_ask))
    return tuple(tools)


def builtin_tools(
    view: View,
    gate: Gate,
    artoo_home: Path,
    network: Network | None = None,
    machine: Machine | None = None,
    places: Places | None = None,
    printing: Printing | None = None,
    command_seconds: float = COMMAND_SECONDS,
    read_kept: int = OUTPUT_KEPT,
    looked: LookedAt | None = None,
) -> tuple[Tool, ...]:
    """The tools that look and act in one view. The shell is offered where there is a bash.

    `command_seconds` bounds one command or program; it is stopped then, and what it printed is kept. `read_kept`:
    characters of a file that one call shows, `looked`: what the task was shown of files before. `gate` is asked
    about hosts, and about commands for which this machine has no view; `network` hears of what commands send,
    `printing` of what they print.
    """
    roots = view.roots
    here = machine or Machine.of(roots)
    places = places or Places.of(roots, artoo_home)
    looked = looked or LookedAt()
    index = choose_index(here.platform, {name: here.which(name) for name in ("mdfind", "plocate")})
    runner = CommandsInView(view, gate, network or Network(), printing=printing)
    writer = FilesInView(view, places, looked)

    def files() -> Files:
        return ReachableFiles(view.files, places)

    tools: list[Tool] = [
        FindFiles(index, roots, files),
        Glob(roots, files),
        FindText(roots, files),
        ReadFile(roots, places, files, read_kept, looked),
        WriteFile(writer, roots),
        EditFile(writer, roots, files),
        Python(runner, roots, files, command_seconds=command_seconds),
    ]
    if here.which("bash") is not None:
        tools.append(Shell(runner, roots, index, files, command_seconds))
    return tuple(tools)


def own_tools(functions: Iterable[Function], gate: Gate) -> tuple[Tool, ...]:
    """The user's functions as tools behind the gate."""
    return gated((user_tool(function) for function in functions), gate)


def gated(tools: Iterable[UserTool], gate: Gate) -> tuple[Tool, ...]:
    """The user's tools behind the gate: those that ask do so before each call, others only for what data named.

    Nobody knows what a crash cut off in them, unless they promise to change nothing.
    """
    return tuple(
        Asking(one, gate, always if one.effects.asks else never, reads_only=one.effects.repeatable) for one in tools
    )
