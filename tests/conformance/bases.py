"""Good runs: whole tasks on the real runtime with a scripted model, into which faults are planted.

Each entry of `CLEAN` is a run in which nothing is wrong, with everything that may happen in one: corrections,
replans, refused plans, questions to a person, failures that are told honestly.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from artoo import Artoo, Budgets
from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import ToolCalled
from artoo.contracts.request import Turn
from artoo.testing import Reply
from artoo.testing.replies import Scripted

sys.path.insert(0, str(Path(__file__).parents[1] / "loops"))
from scenario import (
    Answering,
    Each,
    Ended,
    Json,
    Script,
    World,
    exists,
    gives_up,
    judged,
    matches,
    merged,
    plan,
    python,
    read,
    says,
    shell,
    subtask,
    write,
)

FILES = {
    "a.txt": "one\ntwo\n",
    "b.txt": "one\ntwo\nthree\n",
    "numbers.txt": "10\n20\n12\n",
    "staff.csv": "name,age\nAnn,30\nBob,40\n",
    "app.log": "INFO start\nERROR disk full\nERROR no route\nINFO end\n",
    "src/one.py": "x = 1\n",
    "src/two.py": "y = 2\n",
}


async def once(request: ConfirmationRequest) -> Consent:
    """A person who agrees."""
    return Consent.ONCE


async def no(request: ConfirmationRequest) -> Consent:
    """A person who does not."""
    return Consent.NO


async def interrupt_after_a_call(artoo: Artoo, envelope: Envelope) -> None:
    """A person who stops the task when its first tool has been called."""
    if isinstance(envelope.payload, ToolCalled):
        artoo.interrupt()


@dataclass(frozen=True, slots=True)
class Base:
    """A request, the model's script, and what else `World.play` takes."""

    request: str
    script: Script
    more: Mapping[str, object] = field(default_factory=dict[str, object])
    options: Mapping[str, object] = field(default_factory=dict[str, object])


async def play(base: Base, world: World) -> Ended:
    """Runs it in an empty world of its own."""
    for name, text in FILES.items():
        world.file(name, text)
    options = world.options(**base.options)
    return await world.play(base.request, base.script, options=options, **base.more)  # pyright: ignore[reportArgumentType]


def world_in(directory: Path) -> World:
    """A home, a project and a workspace below `directory`."""
    world = World(directory / "home", directory / "project", directory / "workspace")
    world.home.mkdir(mode=0o700, parents=True)
    world.project.mkdir()
    return world


SUM = "print(sum(map(int, open('numbers.txt'))))"
AVERAGE = """import csv
ages = [int(row["age"]) for row in csv.DictReader(open("staff.csv"))]
print(sum(ages) / len(ages))"""
COUNT_A = "count the lines of the file a.txt"
COUNT_B = "count the lines of the file b.txt"
BOTH = "How many lines have a.txt and b.txt?"
TALL = "Which words stand in a.txt? Answer with a short sentence."


def by_intent(**steps: Scripted) -> Answering:
    """A fresh set of steps for each play: `a` for the subtask about a.txt, and so on."""
    return Each.of(**{f"file_{key}": step for key, step in steps.items()})


def count(name: str) -> Reply:
    return shell(f"wc -l < {name}")


def parallel(first: int = 1, second: int = 1) -> Script:
    """Two subtasks, in parallel or one after the other."""
    return cast(
        "Script",
        {
            "Plan": plan(
                subtask(COUNT_A, matches(r"\d"), tool="shell", sequence=first),
                subtask(COUNT_B, matches(r"\d"), tool="shell", sequence=second),
            ),
            "ExecutorStep": by_intent(a=count("a.txt"), b=count("b.txt")),
            **({"MergeReport": merged("a.txt has 2 lines, b.txt has 3.")} if first == second else {}),
        },
    )


def single(*steps: Json | Reply, criteria: Sequence[Json | str] = (), **more: object) -> Script:
    """One subtask and the steps that it takes."""
    return cast("Script", {"Plan": plan(subtask("do it", *criteria)), "ExecutorStep": list(steps), **more})


def replanned() -> Script:
    """The first plan leads nowhere, the second one to the result."""
    return cast(
        "Script",
        {
            "Plan": [
                plan(subtask(TALL, matches("two"))),
                plan(subtask("read it another way", matches("two"), tool="read_file")),
            ],
            "ExecutorStep": [
                shell("head -1 a.txt"),
                python("print(open('a.txt').readline())"),
                shell("sed -n 1p a.txt"),
                read("a.txt"),
            ],
        },
    )


CLEAN: dict[str, Callable[[], Base]] = {
    "one count": lambda: Base("How many lines has a.txt?", single(count("a.txt"))),
    "one count by a script": lambda: Base("What is the sum of the numbers in numbers.txt?", single(python(SUM))),
    "a file read out": lambda: Base("Show me the text of a.txt", single(read("a.txt"))),
    "a search with no result": lambda: Base(
        "How many lines of a.txt contain the text zebra?", single(shell("grep -c zebra a.txt || true"))
    ),
    "a list of files": lambda: Base(
        "List the Python files below src", single({"tool": "find_files", "input": "src/*.py", "is_final": True})
    ),
    "a file made": lambda: Base("Write the word hi to out.txt", single(write("out.txt", "hi\n"))),
    "a file made, then looked at": lambda: Base(
        "Write the word hi to out.txt",
        single(write("out.txt", "hi\n", final=False), says("out.txt holds the word hi.")),
    ),
    "two at once": lambda: Base(BOTH, parallel()),
    "one after the other": lambda: Base(BOTH, parallel(1, 2)),
    "looking before answering": lambda: Base(
        "How many lines has a.txt?", single(shell("wc -l < a.txt", final=False), says("a.txt has 2 lines."))
    ),
    "a criterion that a model judges": lambda: Base(
        TALL,
        single(
            read("a.txt", final=False),
            says("The words are one and two."),
            criteria=["the sentence names the words"],
            ValidationReport=judged(("pass", "one")),
        ),
    ),
    "a correction": lambda: Base(
        "How many lines has a.txt?", single(shell("echo none"), shell("wc -l < a.txt"), criteria=[matches(r"\d")])
    ),
    "two corrections": lambda: Base(
        "How many lines has a.txt?",
        single(shell("echo none"), python("print('few')"), shell("wc -l < a.txt"), criteria=[matches(r"\d")]),
    ),
    "a second plan": lambda: Base(TALL, replanned()),
    "a plan that was refused and mended": lambda: Base(
        BOTH,
        {
            **parallel(),
            "Plan": [
                plan(subtask(COUNT_A, tool="teleport"), subtask(COUNT_B, tool="teleport")),
                cast("Json", parallel()["Plan"]),
            ],
        },
    ),
    "every role asks its model": lambda: Base(
        TALL,
        {
            "TaskSpec": {"task_id": "words", "intent": TALL, "raw_input": TALL},
            **single(read("a.txt", final=False), says("one and two"), criteria=["it names the words"]),
            "ValidationReport": judged(("pass", "one"), ("pass", "one"), ("pass", "one")),
            "MergeReport": merged("one and two", ("pass", "one"), ("pass", "one"), sources=[1]),
        },
        options={"strict_roles": True},
    ),
    "a deletion that was agreed to": lambda: Base(
        "Delete the file a.txt", single(shell("rm a.txt && echo deleted a.txt")), {"confirm": once}
    ),
    "a host that was refused": lambda: Base(
        "Fetch the page", single(shell("# artoo hosts: example.org\ncurl -s https://example.org/")), {"confirm": no}
    ),
    "a deletion with nobody to ask": lambda: Base(
        "Delete the file a.txt", single(shell("rm a.txt")), options={"budgets": Budgets(calls=2)}
    ),
    "giving up honestly": lambda: Base(
        "What does a.txt mean?", single(gives_up("it cannot be known")), options={"budgets": Budgets(calls=2)}
    ),
    "a named file that is not there": lambda: Base(
        "How many lines has nothere.txt?",
        single(shell("wc -l < nothere.txt"), gives_up("it is not there")),
        options={"budgets": Budgets(calls=3)},
    ),
    "calls used up": lambda: Base(
        "How many lines has a.txt?", single(shell("cat missing.txt")), options={"budgets": Budgets(calls=2)}
    ),
    "interrupted": lambda: Base(
        "How many lines has a.txt?",
        single(shell("wc -l < a.txt", final=False)),
        {"during": interrupt_after_a_call},
        {"budgets": Budgets(calls=2)},
    ),
    "no usable plan": lambda: Base(
        "How many lines has a.txt?", {"Plan": [Reply("nonsense")] * 2}, options={"budgets": Budgets(calls=2)}
    ),
    "a request in Chinese": lambda: Base("a.txt 有多少行？", single(count("a.txt"))),
    "a request with a history": lambda: Base(
        "And how many has b.txt?",
        {
            "TaskSpec": {
                "task_id": "lines",
                "intent": "How many lines has b.txt?",
                "raw_input": "And how many has b.txt?",
            },
            **single(count("b.txt")),
        },
        {"history": (Turn(input="How many lines has a.txt?", summary="2"),)},
    ),
    "without memory": lambda: Base("How many lines has a.txt?", single(count("a.txt")), options={"memory": False}),
    "strict": lambda: Base("How many lines has b.txt?", single(count("b.txt")), options={"strict": True}),
    "a criterion on a file": lambda: Base(
        "Write the word hi to out.txt", single(write("out.txt", "hi\n"), criteria=[exists("out.txt")])
    ),
    "a pipeline": lambda: Base("How many errors does app.log have?", single(shell("grep ERROR app.log | wc -l"))),
    "a table counted": lambda: Base("What is the average age in staff.csv?", single(python(AVERAGE))),
    "a standing permission": lambda: Base(
        "Write the word hi to a.txt", single(write("a.txt", "hi\n")), options={"allow": ("overwrite a.txt",)}
    ),
}
"""Runs in which nothing is wrong."""
