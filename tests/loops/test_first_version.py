"""What the first version did wrong in two hours of use, played again (docs/design/first-version.md has all)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from scenario import World, judged, plan, python, read, says, shell, subtask

from artoo.cli.conversation.slash_commands import Tally
from artoo.contracts.audit import AuditReport
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CorrectionSignal
from artoo.llm.request import ServerTraits
from artoo.runtime.app.artoo import Artoo

PEOPLE = "name,age,department\nAnn,34,Sales\nBo,51,Sales\nCy,29,IT\nDi,40,Sales\n"
AVERAGE = "In people.csv, what is the average age of the people in the Sales department? Round to one decimal."
AWK = "awk -F, '$3 == \"Sales\" { sum += $2; n++ } END { print sum / n }' people.csv"
MAIN = "import sys\n\nprint(len(sys.stdin.read().split()))  # TODO: count per line\n"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripted model is known to be a small one."""
    monkeypatch.setattr(ServerTraits, "is_small", property(lambda self: True))


async def test_a_right_figure_is_not_refused_for_its_decimals(world: World) -> None:
    """1: 41.6667 is printed and 41.7 is answered, as was asked for: accepted at the first attempt."""
    world.file("people.csv", PEOPLE)
    script = {
        "Plan": plan(subtask("average"), criteria=["The average age in Sales, with one decimal."]),
        "ExecutorStep": [shell(AWK, final=False), says("41.7", 1)],
        "ValidationReport": judged(("pass", "41.6667")),
    }
    ended = await world.play(AVERAGE, script)
    assert (ended.directive, ended.result.output, ended.result.assurance) == ("accept", "41.7", "judged")
    assert not ended.all(CorrectionSignal)


async def test_two_ways_of_a_small_model_may_round_differently(world: World, small: None) -> None:
    """1: the second way agrees with the first; what is delivered is a figure that was printed."""
    world.file("people.csv", PEOPLE)
    rows = "[row.split(',') for row in open('people.csv')]"
    second = python(
        f"ages = [int(r[1]) for r in {rows} if r[2].strip() == 'Sales']\nprint(round(sum(ages) / len(ages), 4))"
    )
    ended = await world.play(AVERAGE, {"ExecutorStep": [shell(AWK), second]})
    assert ended.result.output.startswith("41.66") and ended.result.assurance == "agreed"


async def test_a_sum_that_needs_no_file_is_delivered(world: World, small: None) -> None:
    """2: the right program runs, what it prints is the answer, and nothing is made."""
    ended = await world.play("What is 17% of 2340?", lambda asked: python("print(2340 * 17 / 100)"))
    assert ended.result.output == "397.8" and ended.directive == "success"
    assert not list(world.project.iterdir()) and len(ended.requests) <= 3


async def test_a_greeting_takes_one_call_and_runs_nothing(world: World, small: None) -> None:
    """3: also of a small model, with a program beside it that could be run."""
    world.file("main.py", MAIN)
    ended = await world.play("Hello, who are you?", {"ExecutorStep": "Hello! I am artoo."})
    assert ended.contracts == ["ExecutorStep"] and not ended.calls
    assert ended.result.output == "Hello! I am artoo." and ended.directive == "success"


async def test_an_explanation_is_delivered_and_not_the_file(world: World) -> None:
    """4: the file is a source, the answer is the two sentences."""
    world.file("main.py", MAIN)
    told = "main.py reads standard input. It prints how many words there are."
    script = {
        "Plan": plan(subtask("explain"), criteria=["Two sentences say what main.py does."]),
        "ExecutorStep": [read("main.py", final=False), says(told, 1)],
        "ValidationReport": judged(("pass", "len(sys.stdin.read().split())")),
    }
    ended = await world.play("What does main.py do? Explain in two sentences.", script)
    assert (ended.directive, ended.result.output) == ("accept", told)


async def test_a_list_that_was_printed_right_is_delivered(world: World, small: None) -> None:
    """5: grep's lines are the answer of few calls, and nothing is searched for on the web."""
    world.file("main.py", MAIN)
    world.file("notes.md", "TODO: write more\n")
    ended = await world.play("List all TODOs with file and line.", lambda asked: shell("grep -rn TODO ."))
    assert "main.py:3" in ended.result.output and "notes.md:1" in ended.result.output
    assert ended.directive == "success" and len(ended.requests) <= 3
    assert {call.tool for call in ended.calls} == {"shell"}


async def test_a_project_below_tmp_is_like_any_other(world: World) -> None:
    """15: what a command leaves there is there, and no prompt speaks of a private /tmp."""
    assert world.project.is_relative_to("/tmp") or world.project.is_relative_to("/var/tmp")
    script = {
        "Plan": plan(subtask("make it")),
        "ExecutorStep": [shell("echo tea > made.txt; cat made.txt", final=False), says("tea", 1)],
    }
    ended = await world.play("Make made.txt", script)
    assert ended.directive == "accept" and (world.project / "made.txt").read_text() == "tea\n"
    assert all("private" not in asked.user and "is gone" not in asked.user for asked in ended.requests)


async def test_the_sessions_sums_are_those_of_the_auditor(world: World) -> None:
    """22: `/audit` says the same in its first line as in the report below it."""
    world.file("a.txt", "x\n")
    reports: list[AuditReport] = []
    tally = Tally()

    async def during(artoo: Artoo, envelope: Envelope) -> None:
        tally.count(envelope)
        if envelope.kind == "FinalResult":
            reports.append(await artoo.audit())

    script = {
        "Plan": plan(
            subtask("count"),
            criteria=[{"text": "1", "mode": "verifiable", "check": {"check": "output_matches", "regex": "^1$"}}],
        ),
        "ExecutorStep": [shell("echo 2"), shell("wc -l < a.txt")],
    }
    await world.play("How many lines has a.txt?", script, during=during)
    [report] = reports
    assert (tally.tasks, tally.corrections) == (report.tasks_observed, report.total_corrections) == (1, 1)
    assert (tally.violations, tally.dropped) == (len(report.boundary_violations), report.messages_dropped) == (0, 0)


READ_ONLY = """
import asyncio, json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from scenario import World, plan, subtask, write, shell
from artoo import Artoo
from artoo.testing import ScriptedServer
from artoo.words.result import result_words

async def main():
    place = Path(sys.argv[1])
    world = World(place / "home", place / "project", place / "workspace")
    script = {"Plan": plan(subtask("make it")), "ExecutorStep": write("new.txt", "tea")}
    async with ScriptedServer(script) as server, world.artoo(server.base_url) as artoo:
        result = await artoo.run("Make new.txt", options=world.options())
    print(json.dumps({"directive": result.directive, "state": result.changes.state, "reason": result.changes.reason,
                      "told": result_words("en").plain(result)}))

asyncio.run(main())
"""


def test_a_project_that_cannot_be_written_is_told_in_the_systems_own_words(tmp_path: Path) -> None:
    """11: nothing is claimed, and the reason is the system's: a real read-only mount, in namespaces of its own."""
    for name in ("home", "project", "workspace"):
        (tmp_path / name).mkdir()
    program = tmp_path / "program.py"
    program.write_text(READ_ONLY)
    project = tmp_path / "project"
    mounted = f"mount --bind {project} {project} && mount -o remount,bind,ro {project}"
    alone = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if subprocess.run([*alone, mounted], capture_output=True, check=False).returncode != 0:
        pytest.skip("no read-only mount can be made here")
    words = f"{mounted} && exec {sys.executable} {program} {tmp_path} {Path(__file__).parent}"
    ran = subprocess.run([*alone, words], capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout.splitlines()[-1])
    assert "Read-only file system" in said["reason"] + said["told"], said
    assert said["state"] != "applied" and not (project / "new.txt").exists()
