"""A home, a project and a scripted model for tests of protocols: the server is a real process of artoo."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from artoo.runtime.config.model import Config
from artoo.testing import Asked, Reply, ScriptedServer, slow, with_body
from artoo.testing.script import Scripted

EDIT = "sed -i s/old/new/ a.txt"
DELETE = "rm gone.txt"


def answer(asked: Asked) -> Scripted:
    """One subtask: the request's own words are the command, or after `use:` a tool and its input. `wait` as the
    command: the model takes its time.
    """
    if asked.contract == "TaskSpec":  # in a conversation the latest request stands last
        begins = max(asked.user.rfind("run: "), asked.user.rfind("use: "))
        return {"intent": asked.user[begins:].partition("\n")[0].rstrip('">')}
    if "use: " in asked.user:
        return _using(asked)
    if asked.contract == "Plan":
        request = asked.user.rpartition("Request:\n")[2]  # earlier requests of a conversation stand elsewhere
        intent = request.partition("run: ")[2].partition("\n")[0].strip('"<> ')
        check = {"check": "output_matches", "regex": r"\A(?![\s\S]*unfinished)[\s\S]*"}
        criteria = [{"text": "there is an answer", "mode": "verifiable", "check": check}]
        return {"subtasks": [{"intent": f"run: {intent}", "tool": "shell", "success_criteria": criteria}]}
    if asked.contract == "ExecutorStep":
        command = asked.user.rpartition("Your subtask:\n")[2].partition("run: ")[2].partition("\n")[0]
        if command.startswith("hear"):  # a short command; the answer says whether a message has come meanwhile
            if "[1]" not in asked.user:
                return with_body({"tool": "shell"}, "sleep 1")
            return {"tool": "answer", "input": "heard it" if "use the blue one" in asked.user else "heard nothing"}
        if command.startswith("wait"):
            return slow(with_body({"tool": "shell", "is_final": True}, "true"), 60.0)
        step: Reply = with_body({"tool": "shell", "is_final": True}, command)
        return step
    raise AssertionError(f"nobody should ask for {asked.contract}")


def _using(asked: Asked) -> Scripted:
    told = asked.user  # which also tells of earlier requests that are alike
    for heading in ("Request:\n", "Your subtask:\n"):
        told = told.rpartition(heading)[2]
    tool, _, given = told.partition("use: ")[2].partition("\n")[0].rstrip('">').partition(" ")
    if asked.contract == "Plan":
        criteria = [{"text": "it ran", "mode": "verifiable", "check": {"check": "tool_succeeded"}}]
        return {"subtasks": [{"intent": f"use: {tool} {given}", "tool": tool, "success_criteria": criteria}]}
    if asked.contract == "ExecutorStep":
        return {"tool": tool, "input": given, "is_final": True}
    return {"next_moves": []}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a test's tasks work. `home` is artoo's own."""

    root: Path
    base_url: str

    @property
    def home(self) -> Path:
        return self.root / ".artoo"

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def config(self) -> Config:
        return Config(workspace=self.root / "workspace").at_home(self.home)

    @property
    def environ(self) -> dict[str, str]:
        """Of the server's process."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "ARTOO_HOME": str(self.home),
            "OPENAI_BASE_URL": self.base_url,
            "OPENAI_MODEL": "scripted",
        }

    def command(self, *arguments: str) -> list[str]:
        """artoo with these arguments."""
        return [sys.executable, "-m", "artoo", *arguments]

    def text(self, name: str) -> str:
        return (self.project / name).read_text()


@asynccontextmanager
async def placed(root: Path) -> AsyncGenerator[Place]:
    """A project with two files, and the model that does what it is told."""
    async with ScriptedServer(answer) as server:
        place = Place(root / "person", server.base_url)
        place.project.mkdir(parents=True)
        (place.project / "a.txt").write_text("old\n")
        (place.project / "gone.txt").write_text("here\n")
        yield place
