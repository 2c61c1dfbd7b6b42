"""Shared memory inside real tasks: corrections, rules, places, and endings that teach nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from scenario import Ended, Script, World, gives_up, judged, matches, plan, python, shell, subtask

from artoo import Artoo
from artoo.contracts.envelope import Envelope
from artoo.contracts.memory import Level, Megram, MegramState, MemoryRead, MemoryWritten, RuleContradicted
from artoo.contracts.plan import Plan
from artoo.contracts.request import Turn
from artoo.contracts.tags import Pair, micro_pair, placed, slug, thing_pair, tool_pair
from artoo.memory.service import SharedMemory
from artoo.runtime.app.system import SystemClock, UuidIds

COUNT = "How many lines has a.txt?"


async def remember(world: World, *megrams: Megram) -> None:
    """Puts megrams into the world's memory."""
    memory = SharedMemory.open(world.home / "memory", SystemClock(), UuidIds())
    for megram in megrams:
        memory.write(megram)
    await memory.close()


def megram(
    pair: Pair,
    sigma: float,
    *,
    level: Level = Level.MEGRAM,
    content: str = "",
    days: float = 0,
    intent: str | None = None,
) -> Megram:
    """An entry of some days ago; a rule when it is of level C."""
    rule = level is Level.COMMON_SENSE
    return Megram.model_validate(
        {
            "id": UuidIds().new(),
            "level": level,
            "created_at": SystemClock().now() - timedelta(days=days),
            "space": pair.space,
            "entity": pair.entity,
            "content": content,
            "state": MegramState.CONSOLIDATED if rule else MegramState.ACCEPT,
            "f": 1.0 if rule else 0.9,
            "sigma": sigma,
            "k": 0.0 if rule else 0.05,
            "origin": {"intent": intent},
        }
    )


async def count(world: World, **more: object) -> Ended:
    """Counts lines with the shell."""
    script = {"Plan": plan(subtask("count", tool="shell")), "ExecutorStep": shell("wc -l < a.txt")}
    return await world.play(COUNT, script, **more)  # pyright: ignore[reportArgumentType]


async def test_that_was_wrong_speaks_against_what_it_taught(world: World) -> None:
    """A correction opposes all good that the last task left of its kind, with equal weight, and says so. A tool on
    its target stays as good as it was: the right result may need it again.
    """
    world.file("a.txt", "x\ny\n")
    first = await count(world)
    taught = {(each.space, each.entity): each for each in first.all(MemoryWritten) if each.sigma > 0}
    good = {pair: each for pair, each in taught.items() if not pair[1].startswith("path:")}
    assert good and good != taught
    history = [Turn(input=COUNT, summary="2", task_id=first.result.task_id)]
    script = {
        "TaskSpec": {"intent": "Count the lines of a.txt again", "corrects": True},
        "Plan": plan(subtask("count", tool="python")),
        "ExecutorStep": python("print(len(open('a.txt').readlines()))"),
    }
    second = await world.play("That is wrong", script, history=history)
    against = [each for each in second.all(MemoryWritten) if each.state is MegramState.FEEDBACK]
    assert {(each.space, each.entity) for each in against} == good.keys()
    assert all(each.sigma == -good[each.space, each.entity].sigma for each in against)
    memory = SharedMemory.open(world.home / "memory", SystemClock(), UuidIds())
    shell_pair = next(pair for pair in good if pair[0].startswith("tool:shell"))
    assert abs((await memory.query_mk(*shell_pair)).decision) < 0.01
    await memory.close()


async def test_no_secret_is_remembered(world: World) -> None:
    """What memory keeps of a command and a request has no secret: it comes back in the prompts of other tasks."""
    key = "sk-" + "proj-9fK3jd82hDkq0Zx81LmQpT7aBcD4eFgH"
    command = f"printf 'TOKEN={key}' > cfg.env; wc -c cfg.env"
    script: Script = {"Plan": plan(subtask("store it", matches("cfg"))), "ExecutorStep": shell(command)}
    ended = await world.play(f"Store the key {key} in cfg.env", script)
    assert ended.directive == "accept" and any(key in each.entity for each in ended.all(MemoryWritten))
    kept = b"".join(path.read_bytes() for path in (world.home / "memory").iterdir())
    assert b"tool:shell:printf" in kept and key.encode() not in kept


async def test_a_rule_binds_the_plan(world: World) -> None:
    """A C rule that names a tool is in the prompt, in the plan's prohibitions, and not offered any more."""
    world.file("a.txt", "x\n")
    rule = megram(tool_pair("read_file"), -1.0, level=Level.COMMON_SENSE, content="never read it whole")
    await remember(world, rule)
    ended = await count(world)
    assert ended.all(Plan)[0].must_not.tools == ("read_file",)
    (asked,) = ended.asked("Plan")
    assert "Must not use:\n- read_file\n- never read it whole" in asked.user
    assert "read_file(" not in asked.user and "search_text(" in asked.user
    assert ended.all(MemoryRead)[0].sops == 1


async def test_fresh_evidence_overrules_a_rule(world: World) -> None:
    """A rule that live evidence contradicts does not bind this task, and dissonance is written against it."""
    world.file("a.txt", "x\n")
    rule = megram(tool_pair("read_file"), -1.0, level=Level.COMMON_SENSE, content="never read it whole", days=90)
    await remember(world, rule, *[megram(tool_pair("read_file"), 1.0) for _ in range(3)])
    ended = await count(world)
    assert ended.one(RuleContradicted).rule_id == rule.id
    (dissonance,) = [each for each in ended.all(MemoryWritten) if each.state is MegramState.DISSONANCE]
    assert (dissonance.f, dissonance.sigma, dissonance.k) == (0.9, 1.0, 0.05)
    assert ended.all(Plan)[0].must_not.tools == ()


async def test_what_was_learnt_of_a_file_stays_in_its_project(world: World, tmp_path: Path) -> None:
    """Files of one name in two projects are two files: only the one that failed is forbidden, under its own name;
    and files that the request does not name are not put forward.
    """
    world.file("a.txt", "x\n")
    bad = placed(micro_pair("read_file", "a.txt"), str(world.project))
    good = placed(micro_pair("read_file", "b.txt"), str(world.project))
    await remember(world, megram(bad, -1.0), megram(good, 1.0, content="read well", intent=slug(COUNT)))
    at_home = await count(world)
    assert at_home.all(Plan)[0].must_not.targets == (("read_file", "a.txt"),)
    assert "- a.txt (with read_file)" in at_home.asked("Plan")[0].user
    assert "b.txt" not in at_home.asked("Plan")[0].user
    other = replace(world, project=tmp_path / "other")
    other.project.mkdir()
    other.file("a.txt", "y\n")
    elsewhere = await count(other)
    assert elsewhere.all(Plan)[0].must_not.targets == ()
    assert "Must not use" not in elsewhere.asked("Plan")[0].user


async def test_where_a_thing_was_found_is_known_when_it_is_missing(world: World) -> None:
    """A named file that was found elsewhere is level K; a later request that misses it is told the place."""
    world.file("archive/data.csv", "1\n2\n")
    request = "How many lines has data.csv?"
    script = {"Plan": plan(subtask("count", tool="shell")), "ExecutorStep": shell("wc -l < archive/data.csv")}
    first = await world.play(request, script)
    (found,) = [each for each in first.all(MemoryWritten) if each.state is MegramState.FOUND]
    assert (found.space, found.entity) == thing_pair("data.csv", str(world.project)) and found.k == 0.2
    (world.project / "archive" / "data.csv").rename(world.project.parent / "data.csv")
    missing: Script = {
        "Plan": plan(subtask("count", matches(r"\d"), tool="shell")),
        "ExecutorStep": [shell("wc -l data.csv", final=False), gives_up("there is no data.csv")],
        "ValidationReport": judged(("pass", "No such file")),
    }
    second = await world.play(request, missing)
    assert second.result.stopped_by == "missing_input"
    place = f"data.csv was found at {world.project}/archive/data.csv (remembered; check it first)"
    assert place in second.asked("Plan")[0].user
    elsewhere = world.project.parent / "other"
    elsewhere.mkdir()
    third = await world.play(request, missing, options=replace(world.options(), project=elsewhere))
    assert "was found at" not in third.asked("Plan")[0].user


async def test_an_interrupted_task_teaches_nothing(world: World) -> None:
    """An ending that says nothing about the approach leaves memory as it was."""
    world.file("a.txt", "x\n")

    async def stop(artoo: Artoo, envelope: Envelope) -> None:
        if isinstance(envelope.payload, Plan):
            artoo.interrupt()

    script: Script = {"Plan": plan(subtask("count", tool="shell")), "ExecutorStep": lambda _: shell("sleep 5")}
    ended = await world.play(COUNT, script, during=stop)
    assert ended.result.stopped_by == "interrupted"
    assert not ended.all(MemoryWritten)
