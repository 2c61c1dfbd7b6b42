"""Binds the red-team runner to whole tasks: a scripted model issues each action, and the product does the rest.

python3 run_shell_cases.py adapter:run --mode deny|approve      somebody is asked, and says no or yes
python3 run_shell_cases.py adapter:alone                        nobody is there: what needs consent waits
python3 run_shell_cases.py --honesty adapter:judge              (with this folder on PYTHONPATH)
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from whole_task import Acted, Person, acted, command, found, read, searched, written

from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.ports.confirm import Confirm
from artoo.testing import Reply
from artoo.tools.mcp.tool import ask_about_mcp
from artoo.workspace.commit import undo

Ask = Callable[[str, list[str]], bool]
Answer = dict[str, Any]

_so_far: list[Reply] = []
"""The acts of this process, which is one case: all of them belong to one task."""
_last: list[str] = []
"""The task that did them."""


def run(action: Mapping[str, Any], cwd: str, confirm: Ask) -> Answer:
    """One more act of the case's task, at whose end `confirm` answers the review."""

    async def ask(request: ConfirmationRequest) -> Consent:
        return Consent.ONCE if confirm(request.title, list(request.details)) else Consent.NO

    return _run(action, cwd, ask, confirm)


def alone(action: Mapping[str, Any], cwd: str, confirm: Ask) -> Answer:
    """The same with nobody to ask."""
    return _run(action, cwd, None, lambda text, details: False)


def _run(action: Mapping[str, Any], cwd: str, ask: Confirm | None, confirm: Ask) -> Answer:
    if (step := _step(action)) is None:
        return _act_elsewhere(action, confirm)
    person = Person(Path.home(), Path(cwd))
    for task_id in _last:
        undo(person.artoo_home, task_id)
    _so_far.append(step)
    done = asyncio.run(acted(person, _so_far, confirm=ask))
    _last[:] = [done.result.task_id]
    return _told(done)


def _step(action: Mapping[str, Any]) -> Reply | None:
    """What a model says to do this; None for what is no tool on this system."""
    match action:
        case {"tool": "shell", "command": str(text)}:
            return command(text)
        case {"tool": "write_file", "path": str(path), "content": str(content)}:
            return written(path, content)
        case {"tool": "read_file", "path": str(path)}:
            return read(path)
        case {"tool": "glob", "pattern": str(pattern)}:
            return found(pattern)
        case {"tool": "file_search", "path": str(path), "query": str(query)}:
            return searched(query, path)
        case _:
            return None


def _told(done: Acted) -> Answer:
    call = done.calls[-2]  # the last one says that it was all
    changes = done.result.changes
    return {
        "status": call.status.value if changes.state in ("none", "applied") else changes.state,
        "exit_code": call.exit_code,
        "stdout": call.output[-500:],
        "stderr": call.error_output[-500:],
        "changes": [f"{one.change_class.value} {one.path}" for one in changes.changes],
        "conflicts": [f"{one.path}: {one.reason}" for one in changes.conflicts],
    }


def judge(evidence: Sequence[Mapping[str, object]], claim: str) -> bool:
    """Whether a claim may be shown on this evidence: the validator's own rules."""
    sys.path.insert(0, str(Path(__file__).parent))
    return bool(importlib.import_module("honesty_judge").judge(evidence, claim))


def _act_elsewhere(action: Mapping[str, Any], confirm: Ask) -> Answer:
    """AppleScript, Shortcuts and MCP: stand-in programs of the runner play the other side."""
    programs = Path(os.environ.get("RT", "/nonexistent")) / "bin"
    tool = action["tool"]
    if tool == "mcp":
        hints = action.get("annotations", {})
        reason = ask_about_mcp(
            action["server"], action["name"], trusted=False, reads=bool(hints.get("readOnlyHint"))
        )
        argv = [str(programs / "mcp"), action["server"], action["name"], json.dumps(action["arguments"])]
    elif tool == "applescript":
        reason = "AppleScript acts on other programs and cannot be staged"
        argv = [str(programs / "osascript"), "-e", action["script"]]
    elif tool == "shortcut":
        reason = "Shortcuts act on other programs and cannot be staged"
        argv = [str(programs / "shortcuts"), "run", action["name"]]
    else:
        return {"status": "refused", "error": f"no tool named {tool}"}
    if reason is not None and not confirm(reason, argv[1:]):
        return {"status": "refused"}
    if reason is not None:
        subprocess.run(argv, stdin=subprocess.DEVNULL, check=False, timeout=15)
    return {"status": "ok"}
