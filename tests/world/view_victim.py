"""A process to be killed while its view changes. Forks a child for each line of standard input.

    python view_victim.py HOME ACT        a line is NUMBER: 0 runs freely, N dies at its Nth change on disk

ACT is `command` (a command in a view is folded) or `join` (three forks are joined). Each child works on a copy of
the prepared home, `HOME-NUMBER`; prints `ended`.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from apply_victim import burn

from artoo.ports.sandbox import ActNote, Roots
from artoo.ports.world import Program, View
from artoo.world.choose import candidates
from artoo.world.opening import views_in

FIRST = "echo 1 > a; mkdir -p d/e; echo 1 > d/e/f; rm -r tree; echo 1 > swap; echo x >> log"
SECOND = (
    "echo 2 > a; rm -r d; mkdir -p d/g; echo 2 > d/g/h; mkdir tree; echo 2 > tree/t; rm swap; mkdir swap; "
    "echo 2 > swap/s; chmod 700 mode; rm gone; ln -s a link; echo y >> log; setfattr -n user.x -v 1 a || true"
)
FORKS = (
    "echo 1 > both; echo 1 > one; rm -r cut; echo n > keep/n",
    "echo 2 > both; echo 2 > two; echo 2 > cut/x; rm -r keep; rm -r again; mkdir again; echo 2 > again/2",
    "echo 3 > three; echo 3 > again/3; rm one2",
)


def fill(project: Path) -> None:
    """The tree before."""
    for name in ("mode", "log", "gone", "both", "one2"):
        (project / name).write_text(f"old {name}\n")
    for name in ("tree", "cut", "keep", "again"):
        (project / name).mkdir()
        (project / name / "old").write_text("old\n")


def a_view(home: Path) -> View:
    """The task's view in the home."""
    project = home / "project"
    candidate = next(one for one in candidates(home / ".artoo") if one.tier == "bubblewrap")
    sandbox = candidate.build(candidate.stage_homes)
    return views_in(sandbox, home / ".artoo")("victim", Roots(home, home / "artoo_workspace", project))


async def _bash(view: View, script: str, act: str) -> None:
    await view.run(Program(("bash", "-c", script), note=lambda run: ActNote(act, "", run.status)))


async def prepare(home: Path, act: str) -> None:
    """What is there before the act that may be cut."""
    view = a_view(home)
    if act == "command":
        await _bash(view, FIRST, "first")
    else:
        for number, script in enumerate(FORKS):
            await _bash(view.fork(str(number)), script, str(number))
    await view.close()


async def act_on(home: Path, act: str, fuse: int) -> None:
    """The act, cut at its Nth change."""
    view = a_view(home)
    await view.changes()
    if fuse:
        burn(fuse)
    if act == "command":
        await _bash(view, SECOND, "second")
    else:
        await view.join([str(number) for number in range(len(FORKS))])


def main() -> None:
    home, act = Path(sys.argv[1]), sys.argv[2]
    for line in sys.stdin:
        place = home.with_name(f"{home.name}-{int(line)}")
        subprocess.run(["cp", "-a", "-T", home, place], check=True)
        record = place / ".artoo" / "views" / "victim" / "view.json"
        record.write_text(record.read_text().replace(str(home), str(place)))
        child = os.fork()
        if child == 0:
            asyncio.run(act_on(place, act, int(line)))
            os._exit(7)
        _, status = os.waitpid(child, 0)
        os.write(1, b"free\n" if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 7 else b"cut\n")


if __name__ == "__main__":
    main()
