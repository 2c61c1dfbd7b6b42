"""Binds the red-team runner to the real sandbox, transaction and rules: `run(action, cwd, confirm)`.

python3 run_shell_cases.py adapter:run --mode deny|approve        (with this folder on PYTHONPATH)
python3 run_shell_cases.py --honesty adapter:judge
"""

from __future__ import annotations

import asyncio
import glob
import importlib
import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.contracts.errors import ArtooError
from artoo.contracts.settling import Ending
from artoo.ports.sandbox import Roots
from artoo.tools.commands import Command
from artoo.tools.gate import Gate
from artoo.tools.gate_rules import ask_about_mcp, ask_about_script
from artoo.tools.in_view import CommandsInView, FilesInView
from artoo.tools.questions import AskPerson
from artoo.tools.settler import Settler
from artoo.world.choose import open_sandbox
from artoo.world.classify import Places
from artoo.world.closed import closed_paths
from artoo.world.opening import views_in

Confirm = Callable[[str, list[str]], bool]
Answer = dict[str, Any]

_ARTOO_HOME = Path(os.environ.get("ARTOO_HOME") or f"{tempfile.gettempdir()}/artoo-redteam-{os.geteuid()}")


def run(action: Mapping[str, Any], cwd: str, confirm: Confirm) -> Answer:
    """Does one action under the gate. Each is a task of its own."""
    return asyncio.run(_run(action, Path(cwd), confirm))


async def _run(action: Mapping[str, Any], cwd: Path, confirm: Confirm) -> Answer:
    tool = action["tool"]
    if tool in ("shell", "write_file"):
        return await _stage(action, cwd, confirm)
    if tool in ("read_file", "glob", "file_search"):
        return await asyncio.to_thread(_read, action, cwd)
    return await asyncio.to_thread(_act_elsewhere, action, confirm)


async def _stage(action: Mapping[str, Any], cwd: Path, confirm: Confirm) -> Answer:
    """Commands and files go through the product's own view, sandbox and settling."""

    async def ask(request: ConfirmationRequest) -> Consent:
        return Consent.ONCE if confirm(request.title, list(request.details)) else Consent.NO

    task_id, roots = uuid.uuid4().hex, _roots(cwd)
    view = views_in(await open_sandbox(_ARTOO_HOME), _ARTOO_HOME)(task_id, roots)
    gate = Gate(AskPerson(ask))
    try:
        if action["tool"] == "write_file":
            writer = FilesInView(view, Places.of(roots, _ARTOO_HOME))
            outcome = await writer.write(cwd / action["path"], action["content"].encode())
        else:
            runner = CommandsInView(view, gate)
            outcome = await runner.run(Command(("bash", "-c", action.get("command", "")), wall_seconds=60.0))
        ending = Ending(task_id=task_id, directive="accept")
        settled = await Settler(view, _ARTOO_HOME, "red team").settle(ending, AskPerson(ask))
    except ArtooError as error:
        return {"status": "error", "error": str(error)}
    applied = settled.state in ("none", "applied")
    return {
        "status": outcome.status.value if applied else "refused",
        "exit_code": outcome.exit_code,
        "stdout": outcome.output[-500:],
        "stderr": outcome.error_output[-500:],
        "dropped": [] if applied else list(outcome.changes),
        "applied": list(outcome.changes) if applied else [],
    }


def _roots(cwd: Path) -> Roots:
    return Roots(home=Path.home(), workspace=Path.home() / "artoo_workspace", project=cwd)


def _read(action: Mapping[str, Any], cwd: Path) -> Answer:
    hidden = closed_paths(_roots(cwd), _ARTOO_HOME)
    if action["tool"] == "glob":
        return {"status": "ok", "paths": glob.glob(str(cwd / action["pattern"]), recursive=True)}
    path = (cwd / action["path"]).resolve()
    if any(path.is_relative_to(secret) for secret in hidden):
        return {"status": "refused", "error": f"{path} holds credentials"}
    if action["tool"] == "read_file":
        return {"status": "ok", "text": path.read_text(errors="replace")}
    found = subprocess.run(
        ["grep", "-rl", "--", action["query"], str(path)], capture_output=True, text=True, timeout=15, check=False
    )
    return {"status": "ok", "paths": found.stdout.splitlines()}


def judge(evidence: Sequence[Mapping[str, object]], claim: str) -> bool:
    """Whether a claim may be shown on this evidence: the validator's own rules."""
    sys.path.insert(0, str(Path(__file__).parent))
    return bool(importlib.import_module("honesty_judge").judge(evidence, claim))


def _act_elsewhere(action: Mapping[str, Any], confirm: Confirm) -> Answer:
    """AppleScript, Shortcuts and MCP: stand-in programs of the runner play the other side."""
    programs = Path(os.environ.get("RT", "/nonexistent")) / "bin"
    tool = action["tool"]
    if tool == "mcp":
        hints = action.get("annotations", {})
        reason = ask_about_mcp(
            action["server"],
            action["name"],
            action["arguments"],
            read_only_hint=bool(hints.get("readOnlyHint")),
            destructive_hint=bool(hints.get("destructiveHint")) and not hints.get("readOnlyHint"),
        )
        argv = [str(programs / "mcp"), action["server"], action["name"], json.dumps(action["arguments"])]
    elif tool == "applescript":
        reason = ask_about_script("AppleScript", action["script"])
        argv = [str(programs / "osascript"), "-e", action["script"]]
    elif tool == "shortcut":
        reason = ask_about_script("Shortcuts", action["name"])
        argv = [str(programs / "shortcuts"), "run", action["name"]]
    else:
        return {"status": "refused", "error": f"no tool named {tool}"}
    if reason is not None and not confirm(reason, []):
        return {"status": "refused"}
    if reason is not None:
        subprocess.run(argv, stdin=subprocess.DEVNULL, check=False, timeout=15)
    return {"status": "ok"}
