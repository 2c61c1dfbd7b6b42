"""What the first version did wrong in two hours of use, played again (docs/design/first-version.md has all)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from scenario import World, judged, plan, read, says, shell, subtask

MAIN = "import sys\n\nprint(len(sys.stdin.read().split()))  # TODO: count per line\n"


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
