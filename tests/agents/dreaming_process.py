"""Dream cycles in processes that kill themselves at any line of the code: `dreaming_process.py DIR N…`.

For each N a cycle runs and is killed (SIGKILL) before its N-th line inside the code of the cycle; another process
then does what a restart does. One line of JSON tells what is on disk afterwards. N = 0: nothing is killed, and the
number of lines is told.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from artoo.agents.cognition import consolidate as dream_cycle
from artoo.agents.cognition import consolidation_plan as dream_plan
from artoo.agents.cognition import knowledge_file as knowledge
from artoo.agents.cognition import store as cognition_store
from artoo.agents.cognition.consolidate import DreamCycle
from artoo.agents.cognition.consolidation_plan import Promotion
from artoo.agents.cognition.observations import Noted
from artoo.agents.cognition.store import CognitionStore, Session
from artoo.agents.storage import database, transaction
from artoo.agents.storage.database import open_file
from artoo.disk import whole
from artoo.testing.clock import FakeClock
from artoo.testing.ids import SequentialIds

if TYPE_CHECKING:
    from _typeshed import TraceFunction

WATCHED = {
    str(module.__file__)
    for module in (cognition_store, database, dream_cycle, dream_plan, knowledge, transaction, whole)
}


class Killer:
    """Counts lines of the watched modules in all threads; at the `at`-th the process dies."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.lines = 0

    def trace(self, frame: FrameType, event: str, argument: object) -> TraceFunction | None:
        if frame.f_code.co_filename not in WATCHED:
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self.at:
                os.kill(os.getpid(), signal.SIGKILL)
        return self.trace


async def fill(place: Path) -> None:
    """Fifty observations: one pattern often, one three times, one twice, the rest once."""
    asked = ["convert", *["sum up"] * 3, "greet", "greet"]
    async with await open_file(place / "activity.db", FakeClock()) as opened:
        store = CognitionStore(opened, "ada", 90)
        for number in range(50):
            text = asked[number] if number < len(asked) else f"single {number * 'x'}" if number % 2 else "convert"
            session = Session(f"s{number}", "task", text, detail='{"output": "…"}')
            await store.keep(session, Noted(f'"{text}": done', f"done|{text}|"))
    (place / "knowledge.md").write_text("The operator's own words.\n")


async def dream(place: Path, killer: Killer | None) -> None:
    """What a start does: cycles until none is due."""
    clock = FakeClock()

    async def promote(promotion: Promotion) -> None:
        with (place / "promoted").open("a") as file:
            file.write(f"{promotion.id} {promotion.about}\n")

    async with await open_file(place / "activity.db", clock) as opened:
        store = CognitionStore(opened, "ada", 90)
        cycle = DreamCycle("ada", store, place / "knowledge.md", clock, SequentialIds(), promote=promote)
        if killer is not None:
            sys.settrace(killer.trace)
        while await cycle.due() is not None:
            await cycle.run()


def forked(work: Callable[[], None]) -> bool:
    """Runs `work` in a process of its own. True when it ended by itself, False when it was killed."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return False
    if os.WEXITSTATUS(status):
        raise SystemExit(f"a process ended with {os.WEXITSTATUS(status)}")
    return True


def found(place: Path) -> dict[str, object]:
    """What is on disk."""
    connection = sqlite3.connect(place / "activity.db")

    def rows(sql: str) -> list[list[object]]:
        return [list(row) for row in connection.execute(sql).fetchall()]

    promoted = (place / "promoted").read_text().splitlines() if (place / "promoted").exists() else []
    (reports,) = rows("SELECT count(*) FROM events WHERE kind = 'DreamCycleReport'")
    return {
        "knowledge": (place / "knowledge.md").read_text(),
        "observations": rows("SELECT id, counted FROM observations ORDER BY position"),
        "patterns": rows("SELECT id, seen, promoted FROM patterns ORDER BY id"),
        "consolidated": rows("SELECT count(*) FROM activity WHERE consolidated = 1 AND detail = '{}'"),
        "pending": rows("SELECT count(*) FROM dreams WHERE pending IS NOT NULL"),
        "promoted": sorted(set(promoted)),
        "reports": reports[0],
        "sound": rows("PRAGMA integrity_check"),
    }


def main(place: Path, points: list[int]) -> None:
    template = place / "template"
    template.mkdir()
    forked(lambda: asyncio.run(fill(template)))
    for point in points:
        work = place / f"at{point}"
        shutil.copytree(template, work)
        killer = Killer(point)

        def first(work: Path = work, killer: Killer = killer) -> None:
            threading.settrace(killer.trace)
            asyncio.run(dream(work, killer))
            (work / "lines").write_text(str(killer.lines))

        ended = forked(first)
        forked(lambda work=work: asyncio.run(dream(work, None)))
        lines = int((work / "lines").read_text()) if ended else 0
        print(json.dumps({"point": point, "ended": ended, "lines": lines, **found(work)}), flush=True)
        shutil.rmtree(work)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(argument) for argument in sys.argv[2:]])
