"""A process to be killed while it settles: a child for each line of standard input.

    python settle_victim.py HOME        a line is MODE FUSE; FUSE 0 runs freely, N dies at its Nth change on disk

MODE is all, part, keep, discard or undo. Prints the child's exit status: 0 when it came to its end.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from apply_victim import burn

from artoo.world.closing import ClosingView, opened
from artoo.world.pending import PendingRecord
from artoo.world.undo import undo
from artoo.world.view_place import Views

TASK = "victim"
PART = ("over", "new", "tree", "again/a", "again/deep/a")


def settle(home: Path, mode: str, fuse: int) -> None:
    if mode == "undo":
        burn(fuse or sys.maxsize)
        undo(home / ".artoo", TASK)
        return
    place = Views(home / ".artoo").find(TASK)
    assert place is not None
    if fuse:
        burn(fuse)
    with opened(place, home / ".artoo") as view:
        act(view, home, mode)


def act(view: ClosingView, home: Path, mode: str) -> None:
    if mode == "keep":
        view.keep(PendingRecord(task_id=TASK, since=1.0, expires_at=2.0))
        return
    if mode == "discard":
        view.forget()
        return
    found = view.difference()
    paths = None if mode == "all" else [str(home / "project" / name) for name in PART]
    view.apply(found, digest=found.digest, paths=paths, note="done")


def main() -> None:
    home = Path(sys.argv[1])
    for line in sys.stdin:
        mode, fuse = line.split()
        child = os.fork()
        if child == 0:
            settle(home, mode, int(fuse))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        os.write(1, f"{status}\n".encode())


if __name__ == "__main__":
    main()
