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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from artoo.contracts.changes import Change
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Roots, Sandbox, SandboxRequest, StagedChanges, TaskLedger
from artoo.tools.gate_rules import ask_about_mcp, ask_about_script
from artoo.tools.sandbox.choose import open_sandbox
from artoo.tools.sandbox.decide import Decision, decide
from artoo.tools.sandbox.secrets import existing, secret_paths

Confirm = Callable[[str, list[str]], bool]
Answer = dict[str, Any]

_LEDGER = TaskLedger()
_ARTOO_HOME = Path(os.environ.get("ARTOO_HOME") or f"{tempfile.gettempdir()}/artoo-redteam-{os.geteuid()}")


def run(action: Mapping[str, Any], cwd: str, confirm: Confirm) -> Answer:
    """Does one action under the gate. Actions of one process are one task."""
    return asyncio.run(_run(action, Path(cwd), confirm))


async def _run(action: Mapping[str, Any], cwd: Path, confirm: Confirm) -> Answer:
    tool = action["tool"]
    if tool in ("shell", "write_file"):
        return await _stage(action, cwd, confirm)
    if tool in ("read_file", "glob", "file_search"):
        return await asyncio.to_thread(_read, action, cwd)
    return await asyncio.to_thread(_act_elsewhere, action, confirm)


async def _stage(action: Mapping[str, Any], cwd: Path, confirm: Confirm) -> Answer:
    sandbox = await open_sandbox(_ARTOO_HOME)
    home = Path.home()
    roots = Roots(home=home, workspace=home / "artoo_workspace", project=cwd)
    request = SandboxRequest.bash(
        action.get("command", ""), cwd=cwd, roots=roots, task_id="redteam", ledger=_LEDGER
    )
    try:
        if action["tool"] == "write_file":
            staged = await sandbox.stage_write(request, Path(action["path"]), action["content"].encode())
            return await _settle(staged, confirm, {"status": "ok"})
        return await _shell(sandbox, request, confirm)
    except SandboxError as error:
        return {"status": "error", "error": str(error)}


async def _shell(sandbox: Sandbox, request: SandboxRequest, confirm: Confirm) -> Answer:
    result = await sandbox.run(request)
    if result.needs_confirmation:
        if not confirm(f"run without a sandbox: {request.argv[-1]}", list(result.notes)):
            return {"status": "refused"}
        result = await sandbox.run(_unconfined(request))
    answer: Answer = {
        "status": result.status,
        "exit_code": result.exit_code,
        "stdout": result.stdout.text[-500:],
        "stderr": result.stderr.text[-500:],
    }
    return await _settle(result.staged, confirm, answer)


def _unconfined(request: SandboxRequest) -> SandboxRequest:
    return SandboxRequest(
        argv=request.argv, cwd=request.cwd, roots=request.roots, task_id=request.task_id, unconfined=True
    )


async def _settle(staged: StagedChanges, confirm: Confirm, answer: Answer) -> Answer:
    async with staged:
        decision = decide(staged.changes)
        if not decision.silent and not confirm(*_question(decision, staged.changes)):
            return {**answer, "status": "refused", "dropped": [change.path for change in staged.changes]}
        report = await staged.apply(digest=staged.digest)
        if not report.applied:
            return {**answer, "status": "refused", "conflicts": [one.model_dump() for one in report.conflicts]}
        return {**answer, "applied": list(report.paths)}


def _question(decision: Decision, changes: tuple[Change, ...]) -> tuple[str, list[str]]:
    asked = [f"{_line(change)}: {reason}" for change, reason in decision.ask]
    if decision.flood:
        asked.append(decision.flood)
    return "apply these changes?", asked + [f"also: {_line(one)}" for one in changes]


def _line(change: Change) -> str:
    sizes = f"{change.size_before} -> {change.size_after} bytes"
    return f"{change.kind} {change.path} ({sizes}) {change.detail}".rstrip()


def _read(action: Mapping[str, Any], cwd: Path) -> Answer:
    hidden = existing(secret_paths(Path.home(), _ARTOO_HOME))
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
