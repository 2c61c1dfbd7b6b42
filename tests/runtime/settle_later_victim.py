"""A process to be killed while it settles what waits, or a task's own end: a child for each line of standard input.

    python settle_later_victim.py HOME      a line is `MODE FUSE`: dies at the Nth change on disk, 0 lives

MODE is `part` (`artoo apply PATH`), `discard`, or `chosen` (the review at the task's end, answered with a part).
Prints the child's exit status: 0 when it came to its end.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from at_rest import settler_at_rest

sys.path.insert(0, str(Path(__file__).parents[1] / "workspace" / "commit"))
from victim import burn

from artoo.contracts.confirmation import PERSON, ConfirmationAnswer, ConfirmationRequest, Consent
from artoo.contracts.settling import Ending
from artoo.runtime.changes.find_pending import find_pending
from artoo.runtime.changes.startup_recovery import recover_earlier
from artoo.runtime.config.model import Config

TASK = "019f2b3c-aaaa"
PART = ("a.txt", "new.txt")


class Chooser:
    """A person who chooses a part in the review."""

    def __init__(self, home: Path) -> None:
        self.home = home

    async def ask(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        """Yes to the part alone."""
        return ConfirmationAnswer(
            digest=request.digest, consent=Consent.ONCE, by=PERSON, paths=tuple(part_in(self.home))
        )


def part_in(home: Path) -> list[str]:
    """The chosen paths."""
    return [str(home / "project" / name) for name in PART]


async def act(home: Path, mode: str) -> None:
    if mode == "chosen":
        await settler_at_rest(home).settle(Ending(task_id=TASK, directive="accept"), Chooser(home))
        return
    config = Config().at_home(home / ".artoo")
    recover_earlier(config)
    waiting = find_pending(config, TASK)
    await (waiting.discard() if mode == "discard" else waiting.apply(part_in(home)))


def main() -> None:
    home = Path(sys.argv[1])
    for line in sys.stdin:
        mode, fuse = line.split()
        child = os.fork()
        if child == 0:
            if int(fuse):
                burn(int(fuse))
            asyncio.run(act(home, mode))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        os.write(1, f"{status}\n".encode())


if __name__ == "__main__":
    main()
