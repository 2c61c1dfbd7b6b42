"""The built-in tools that work on this machine, put together."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from artoo.ports.sandbox import Roots
from artoo.tools.asking import Asking, always, never
from artoo.tools.builtin.find_files import FindFiles
from artoo.tools.builtin.find_text import FindText
from artoo.tools.builtin.glob import Glob
from artoo.tools.builtin.macos import AppleScript, Real, Shortcuts
from artoo.tools.builtin.python import Python
from artoo.tools.builtin.read_file import ReadFile
from artoo.tools.builtin.search import Search, engine_for
from artoo.tools.builtin.shell import Shell
from artoo.tools.builtin.write_file import WriteFile
from artoo.tools.commands import CommandRunner
from artoo.tools.gate import Gate
from artoo.tools.index import choose_index
from artoo.tools.mentions import is_about_project, names_place
from artoo.tools.tool import Tool
from artoo.tools.user_tools import Function, UserTool, user_tool
from artoo.tools.writing import FileWriter
from artoo.world.classify import Places


@cache
def _found(program: str, path: str | None) -> str | None:
    """Where a program is, looked up once a process: every task asks for the same three, over all of PATH."""
    return shutil.which(program, path=path)


@dataclass(frozen=True, slots=True)
class Machine:
    """What of this machine decides which tools there are: the platform, and where programs are found."""

    platform: str = sys.platform
    which: Callable[[str], str | None] = lambda name: _found(name, os.environ.get("PATH"))


def reaching_tools(
    gate: Gate, roots: Roots, environ: Mapping[str, str], machine: Machine | None = None
) -> tuple[Tool, ...]:
    """Tools that reach beyond the files: the web, and on macOS other programs. All behind the gate."""
    here = machine or Machine()
    tools: list[Tool] = [Asking(Search(engine_for(environ)), gate, never, reads_only=True)]
    if here.platform == "darwin":
        for program, made in (("osascript", AppleScript(Real(roots))), ("shortcuts", Shortcuts(Real(roots)))):
            if here.which(program) is not None:
                tools.append(Asking(made, gate, made.why_ask))
    return tuple(tools)


def builtin_tools(
    runner: CommandRunner,
    writer: FileWriter,
    roots: Roots,
    artoo_home: Path,
    request: str,
    machine: Machine | None = None,
    places: Places | None = None,
) -> tuple[Tool, ...]:
    """The tools for one task. `request` tells which files belong in the project (see `WriteFile`).

    The index of personal files does not apply, and is not offered, when the request is about the project: a
    small model would look for the project's files all over the home directory. The shell is offered where there
    is a bash. `runner` and `writer` settle what commands and files change.
    """
    here = machine or Machine()
    places = places or Places.of(roots, artoo_home)
    index = choose_index(here.platform, {name: here.which(name) for name in ("mdfind", "plocate")})

    def in_request(path: str) -> bool:
        return names_place(request, path)

    tools: list[Tool] = [
        *(() if is_about_project(request, roots.project) else (FindFiles(index, roots),)),
        Glob(roots),
        FindText(roots),
        ReadFile(roots, places),
        WriteFile(writer, roots, in_request),
        Python(runner, roots),
    ]
    if here.which("bash") is not None:
        tools.append(Shell(runner, roots, index))
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
