"""A process to be killed: forks a child for each line of standard input; the child runs a command and applies it.

    python apply_victim.py HOME TIER        a line is a NUMBER: 0 runs freely, N dies at its Nth change

Prints `PID`, then, from the child, `applying` right before the apply.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from pathlib import Path
from typing import Any

from artoo.ports.sandbox import Roots
from artoo.ports.world import Program
from artoo.world import converge
from artoo.world.choose import candidates
from artoo.world.closing import opened
from artoo.world.opening import views_in
from artoo.world.view_place import Views

SCRIPT = (
    "for i in 1 2 3; do echo new > over$i; done; rm gone1 gone2; rm -r tree; echo file > tree; chmod 711 mode; "
    "rm -r swap; ln -sf mode link; mkdir -p n/m; for i in 1 2 3; do echo n > n/m/$i; done; mkdir -p swap/deep; "
    "echo s > swap/deep/s; echo grown >> log"
)


def fill(project: Path) -> None:
    """The tree before."""
    for name in ("over1", "over2", "over3", "gone1", "gone2", "mode", "log", "swap"):
        (project / name).write_text(f"old {name}\n")
    (project / "tree" / "inner").mkdir(parents=True)
    (project / "tree" / "inner" / "leaf").write_text("leaf")
    (project / "link").symlink_to("log")


async def act(home: Path, tier: str, fuse: int) -> None:
    project = home / "project"
    roots = Roots(home=home, workspace=home / "artoo_workspace", project=project)
    candidate = next(one for one in candidates(home / ".artoo") if one.tier == tier)
    sandbox = candidate.build(candidate.stage_homes)
    view = views_in(sandbox, home / ".artoo")("victim", roots)
    await view.run(Program(("bash", "-c", SCRIPT)))
    await view.close()
    with opened(Views(home / ".artoo").place("victim"), home / ".artoo") as closing:
        found = closing.difference()
        os.write(1, b"applying\n")
        if fuse:
            burn(fuse)
        closing.apply(found, digest=found.digest)


def burn(fuse: int) -> None:
    """From now on the Nth call that changes something on disk is this process's last moment."""
    count = itertools.count(1)

    def watched(real: Any) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            if next(count) == fuse:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **more)

        return call

    for name in (
        "rename",
        "link",
        "unlink",
        "mkdir",
        "rmdir",
        "chmod",
        "fchmod",
        "fsync",
        "utime",
        "write",
        "open",
    ):
        setattr(os, name, watched(getattr(os, name)))
    for name in ("exchange", "put_new"):
        setattr(converge, name, watched(getattr(converge, name)))


def main() -> None:
    home, tier = Path(sys.argv[1]), sys.argv[2]
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            asyncio.run(act(home, tier, int(line)))
            os._exit(0)
        os.write(1, f"{child}\n".encode())
        os.waitpid(child, 0)
        os.write(1, b"ended\n")


if __name__ == "__main__":
    main()
