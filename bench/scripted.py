"""Plays a model by script: *gold* does what the task's own solution does, the others go wrong in one way each.

    gold     every file that the solution changes, one call each in one turn, then a short answer
    checked  the same, with a plan that names a check for each file
    value    gold with one value of one file changed, and success claimed
    idle     nothing done and success claimed
    vacuous  as idle, with a plan whose only check is that a file exists which was there before
    obeying  in a task that attacks: every call that the attack is after, one after the other

In every role the wrong ones speak for their own work: the judge passes it.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from artoo.testing import Asked, with_body
from artoo.testing.replies import Reply, Scripted
from bench.suite import Task

Kind = Literal["gold", "checked", "value", "idle", "vacuous", "obeying"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_QUOTED = 40
_MOST_CRITERIA = 6


@dataclass(frozen=True, slots=True)
class Act:
    """One call: the tool, its one-line input, and its body. `path` is what it is about, `gone` that it goes.

    A call of a world's tool has `arguments` instead.
    """

    tool: str
    named: str
    body: str
    path: str
    gone: bool = False
    arguments: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Solution:
    """The calls of a solution, and a file that was there before ("" if none was)."""

    acts: tuple[Act, ...]
    before: str


def solution_of(task: Task) -> Solution | None:
    """Return the calls that turn the task's first directory into its solved one, or that an attack is after.

    None: there is nothing to do.
    """
    if task.world is not None:
        calls = task.world.begin()
        name = task.world.name
        acts = (Act(f"{name}_{tool}", "", "", "", arguments=given) for tool, given in calls or ())
        return None if calls is None else Solution(tuple(acts), "")
    if task.calls:
        return Solution(tuple(Act(tool, "", body, "") for tool, body in task.calls), "")
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as last:
        before, after = Path(first), Path(last)
        task.lay(before)
        shutil.copytree(before, after, symlinks=True, dirs_exist_ok=True)
        task.solve(after)
        was, now = _files(before), _files(after)
        acts = [_written(after, path) for path in sorted(now) if now[path] != was.get(path)]
        acts += [
            Act("shell", "", f"rm -f -- {path!r}", path, gone=True) for path in sorted(was.keys() - now.keys())
        ]
        folders = _folders(before) - _folders(after)
        acts += [Act("shell", "", f"rmdir -- {path!r}", path, gone=True) for path in sorted(folders, reverse=True)]
        plain = sorted(path for path in was if not path.startswith("."))
        return Solution(tuple(acts), plain[0] if plain else "")


def _files(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts
    }


def _folders(directory: Path) -> set[str]:
    found = (
        path.relative_to(directory) for path in directory.rglob("*") if path.is_dir() and not path.is_symlink()
    )
    return {path.as_posix() for path in found if "__pycache__" not in path.parts}


def _written(directory: Path, path: str) -> Act:
    """Return the call that writes a file; bytes that are no text or end without a newline, use the shell."""
    data = (directory / path).read_bytes()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    if text.endswith("\n") and "\r" not in text and not path.startswith(".git/"):
        return Act("write_file", path, text, path)
    coded = base64.b64encode(data).decode()
    parent = str(Path(path).parent)
    command = f"mkdir -p -- {parent!r}\nbase64 -d > {path!r} <<'END'\n{coded}\nEND"
    return Act("shell", "", command, path)


def changed(solution: Solution) -> Solution | None:
    """Return the solution with one value of its first text changed; None if it writes no text with a value."""
    for number, act in enumerate(solution.acts):
        found = re.search(r"\d|[a-z]", act.body) if act.tool == "write_file" else None
        if found is not None:
            other = {"9": "1", "z": "a"}.get(found[0]) or chr(ord(found[0]) + 1)
            body = act.body[: found.start()] + other + act.body[found.end() :]
            wrong = Act(act.tool, act.named, body, act.path)
            return Solution((*solution.acts[:number], wrong, *solution.acts[number + 1 :]), solution.before)
    return None


def acts_of(kind: Kind, solution: Solution | None) -> tuple[Act, ...] | None:
    """Return the calls that this model makes; None if it has none to make in this task."""
    if solution is None:
        return None
    if kind == "value":
        wrong = changed(solution)
        return None if wrong is None else wrong.acts
    if kind == "vacuous" and not solution.before:
        return None
    return solution.acts if kind in ("gold", "checked", "obeying") else ()


@dataclass(slots=True)
class Player:
    """Answers artoo's roles in one task. `unplayed` are the contracts that it had no answer for."""

    kind: Kind
    task: Task
    solution: Solution
    acts: tuple[Act, ...]
    unplayed: list[str] = field(default_factory=list[str])
    _done: int = 0

    def __call__(self, asked: Asked) -> Scripted:
        """Return the next answer."""
        match asked.contract:
            case "Plan":
                return self._plan()
            case "ExecutorStep":
                return self._step(native=asked.wire == "native")
            case "ValidationReport" | "MergeReport":
                return {"verdicts": list(self._passes(asked)), "what_to_do": ""}
            case other:
                self.unplayed.append(other)
                return {}

    def _plan(self) -> Mapping[str, object]:
        criteria: list[object] = ["The request is done."]
        if self.kind == "checked":
            criteria = [_holds(act) for act in self.acts[:_MOST_CRITERIA]]
        elif self.kind == "vacuous":
            criteria = [_holds(Act("", "", "", self.solution.before))]
        return {"subtasks": [{"sequence": 1, "intent": self.task.request, "success_criteria": criteria}]}

    def _step(self, *, native: bool) -> Scripted:
        if self._done < len(self.acts):
            # An attack, and a call of a world's tool, go on from the result of the call before.
            if native and self.kind != "obeying" and self.task.world is None:
                self._done = len(self.acts)
                return _in_one_turn(self.acts)
            act = self.acts[self._done]
            self._done += 1
            head: dict[str, object] = {"tool": act.tool, "is_final": False}
            if act.arguments is not None:
                return head | {"arguments": act.arguments}
            if act.named:
                return with_body(head | {"input": act.named}, act.body, "text")
            return with_body(head, act.body)
        if self.task.world is not None and self.task.world.answer:
            return with_body({"tool": "answer", "sources": []}, self.task.world.answer, "text")
        done = "Done." if self.task.request.isascii() else "Готово."  # in the language of the request
        return with_body({"tool": "answer", "sources": []}, done, "text")

    def _passes(self, asked: Asked) -> Iterator[Mapping[str, object]]:
        quote = next((line.strip() for line in reversed(asked.user.splitlines()) if line.strip()), "")[:_QUOTED]
        for number in range(1, 1 + max(1, len(re.findall(r"^\s*\d+\. ", asked.user, re.MULTILINE)))):
            yield {"number": number, "quote": quote, "verdict": "pass"}


def _in_one_turn(acts: tuple[Act, ...]) -> Reply:
    """Return a turn with all these calls."""
    calls = [
        {
            "id": f"act_{number}",
            "type": "function",
            "function": {
                "name": act.tool,
                "arguments": json.dumps(
                    {"path": act.named, "content": act.body} if act.named else {"command": act.body}
                ),
            },
        }
        for number, act in enumerate(acts)
    ]
    return Reply(message={"role": "assistant", "content": None, "tool_calls": calls}, finish="tool_calls")


def _holds(act: Act) -> Mapping[str, object]:
    if act.gone:
        command = f"test ! -e {shlex.quote(act.path)}"
    elif act.tool == "write_file":
        first = next((line for line in act.body.splitlines() if line.strip()), "")
        command = f"grep -qxF -- {shlex.quote(first)} {shlex.quote(act.path)}" if first else ""
    else:
        command = ""
    if command:
        return {
            "text": f"{act.path} is as wanted",
            "mode": "verifiable",
            "check": {"check": "command_succeeds", "command": command},
        }
    check = {"check": "file_exists", "path": act.path}
    return {"text": f"{act.path} exists", "mode": "verifiable", "check": check}
