"""What a task may do on this machine, put together for one project and one request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from artoo.ports.clock import Clock
from artoo.ports.sandbox import Roots, Sandbox
from artoo.runtime.task import Hands
from artoo.tools.commands import ReadOnlyCommands
from artoo.tools.evidence_source import ReadOnlyEvidence
from artoo.tools.look import ProjectLook
from artoo.tools.registry import Registry
from artoo.tools.sandbox.classify import Places
from artoo.tools.standard import builtin_tools
from artoo.tools.tool import Tool
from artoo.tools.writing import CreateOnly


def open_hands(
    sandbox: Sandbox,
    roots: Roots,
    artoo_home: Path,
    task_id: str,
    request: str,
    clock: Clock,
    own_tools: Sequence[Tool] = (),
) -> Hands:
    """Built-in tools and the user's own, over one sandbox; commands and checks are read-only here."""
    places = Places.of(roots, artoo_home)
    runner = ReadOnlyCommands(sandbox, roots, task_id)
    writer = CreateOnly(roots, places)
    tools = (*builtin_tools(runner, writer, roots, artoo_home, request), *own_tools)
    return Hands(
        tools=Registry(tools, clock),
        evidence=ReadOnlyEvidence(sandbox, roots, places, task_id),
        surroundings=ProjectLook(roots, places),
    )
