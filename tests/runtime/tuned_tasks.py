"""Real tasks of one type with a scripted model: three criteria of four are met at once, the last one on request."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from artoo import Artoo, Config, RunOptions, tool
from artoo.contracts.solution import FinalResult
from artoo.runtime.config.model import Control
from artoo.testing import ScriptedModel
from artoo.testing.script import Asked

REQUEST = "Count the stones, please"
TYPE = "count_the_stones"


@tool
def heap(what: str) -> str:
    """stones that lie on a heap"""
    return "grey red white"


@tool
def pond(what: str) -> str:
    """stones that lie in a pond"""
    return "nothing to be seen"


@tool
def diver(what: str) -> str:
    """stones that somebody dives for"""
    return "black"


def empty(place: str) -> Callable[..., str]:
    """A tool that finds nothing."""

    def look(what: str) -> str:
        return "nothing to be seen"

    look.__name__, look.__doc__ = place, f"stones at the {place}"
    return tool(look)


PLACES = ("lake", "river", "shore", "well")
NOTHING = [empty(place) for place in PLACES]


def check(word: str) -> dict[str, object]:
    """A criterion that code checks."""
    return {"text": f"a {word} stone", "check": {"check": "output_matches", "regex": word}}


def step(tool_: str, *words: str) -> dict[str, object]:
    """A subtask of a plan."""
    return {"intent": f"look with {tool_}", "tool": tool_, "success_criteria": [check(word) for word in words]}


def script(*, hopeless: bool = False) -> dict[str, object]:
    """`hopeless`: no later plan finds the black stone."""

    def plan(asked: Asked) -> dict[str, object]:
        left = [name for name in (PLACES if hopeless else ("diver",)) if f"\n- {name}: " in asked.user]
        again = "Done already" in asked.user
        steps = [step(left[0], "black")] if again else [step("heap", "grey", "red", "white"), step("pond", "black")]
        return {"subtasks": steps, "task_criteria": [check("grey")]}

    def act(asked: Asked) -> dict[str, object]:
        known = ("heap", "pond", "diver", *PLACES)
        name = next(name for name in known if f"subtask:\nlook with {name}" in asked.user)
        return {"tool": name, "input": "all", "is_final": True}

    def merge(asked: Asked) -> dict[str, object]:
        return {"answer": "grey", "sources": [1]}

    def despair(asked: Asked) -> dict[str, object]:
        return {"next_moves": ["ask somebody else"]}

    return {"Plan": plan, "ExecutorStep": act, "MergeReport": merge, "FailureReport": despair}


async def run_tasks(
    home: Path, control: Control, count: int = 1, *, hopeless: bool = False, request: str = REQUEST
) -> list[FinalResult]:
    """Runs the request `count` times under these numbers; the logs are in the home."""
    config = Config(control=control, workspace=home / "workspace").at_home(home)
    (home / "project").mkdir(parents=True, exist_ok=True)
    options = RunOptions(project=home / "project", memory=False)
    with ScriptedModel(script(hopeless=hopeless)) as model:  # pyright: ignore[reportArgumentType]
        async with Artoo(config, environ={}, model=model, tools=[heap, pond, diver, *NOTHING]) as artoo:
            return [await artoo.run(request, options=options) for _ in range(count)]
