"""Load ai-forever/harness-bench-fast: 391 tasks with files, each checked by code (MIT; requests in Russian)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Protocol, cast

from bench.suite import Task, checkout

REPOSITORY = "ai-forever/harness-bench-fast"
COMMIT = "e637121"


class _Checked(Protocol):
    passed: bool
    message: str


class _Theirs(Protocol):
    """The part of `harness_bench.core.Task` that is used here."""

    id: str
    prompt: str

    def setup(self, workspace: Path) -> None: ...
    def apply_gold(self, workspace: Path) -> None: ...
    def verify(self, workspace: Path) -> _Checked: ...


def tasks(data: Path | None) -> tuple[Task, ...]:
    """Return all tasks. Raises DataMissing."""
    place = checkout(data, REPOSITORY, COMMIT)
    # Their package's __init__ imports agent frameworks that only their own runner needs.
    package = ModuleType("harness_bench")
    package.__path__ = [str(place / "harness_bench")]
    sys.modules["harness_bench"] = package
    theirs = cast("list[_Theirs]", importlib.import_module("harness_bench.tasks").ALL_TASKS)
    return tuple(_ours(theirs))


def _ours(theirs: list[_Theirs]) -> Iterator[Task]:
    for one in theirs:
        yield Task(one.id, one.prompt, one.setup, _solved(one), _checked(one))


def _solved(task: _Theirs) -> Callable[[Path], None]:
    def solve(directory: Path) -> None:
        task.apply_gold(directory)

    return solve


def _checked(task: _Theirs) -> Callable[[Path], str]:
    def check(directory: Path) -> str:
        found = task.verify(directory)
        return "" if found.passed else found.message or "their check says no"

    return check
