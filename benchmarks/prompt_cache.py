"""How much of the prompts the embedded server has cached, over a working day of a team of three.

    python benchmarks/prompt_cache.py --model MODEL.gguf [--json] [--rounds N] [--minutes M]

The day is a sequence of pulses: in each round every agent finds one thing to do (a task, a letter, a review).
Pulses that find nothing ask no model and are left out. The share is that of prompt tokens which the server reports
as cached, after the first call of all. It is a ratio of counts: the load of the machine does not change it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from artoo import Artoo, Config
from artoo.agents.identity.folders import create_agent
from artoo.contracts.agents import OPERATOR, BoardState, Complexity, TrustLevel
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import ModelCalled
from artoo.team.office import Office, open_office
from artoo.team.team import open_team

TEAM = {"ada": TrustLevel.PROBATION, "bob": TrustLevel.STANDARD, "cyd": TrustLevel.SENIOR}
WORK = ("write {name}.txt that holds the word {name}", "count the lines of poem.txt", "list the files here")
LETTER = "how many lines has {poem}?"
OVER = frozenset({BoardState.COMPLETED, BoardState.FAILED, BoardState.CANCELLED})


@dataclass(slots=True)
class Tally:
    """Prompt tokens and those of them that were cached, by role and contract; the first call is left out."""

    prompt: defaultdict[str, int] = field(default_factory=lambda: defaultdict[str, int](int))
    cached: defaultdict[str, int] = field(default_factory=lambda: defaultdict[str, int](int))
    calls: int = 0

    def __call__(self, envelope: Envelope) -> None:
        """A tap."""
        called = envelope.payload
        if not isinstance(called, ModelCalled):
            return
        self.calls += 1
        if self.calls > 1:
            self.prompt[called.contract] += called.usage.prompt_tokens
            self.cached[called.contract] += called.usage.cached_tokens

    def report(self) -> dict[str, object]:
        """Shares from 0 to 1."""
        total = sum(self.prompt.values())
        return {
            "calls": self.calls,
            "prompt_tokens": total,
            "cached_share": sum(self.cached.values()) / total if total else 0.0,
            "by_contract": {name: self.cached[name] / self.prompt[name] for name in sorted(self.prompt)},
        }


async def day(config: Config, project: Path, rounds: int, seconds: float) -> dict[str, object]:
    """Plays the day, or as much of it as fits into `seconds`, and returns what was counted."""
    done = 0
    tally = Tally()
    async with open_office(config) as office:
        for name, trust in TEAM.items():
            identity = create_agent(office.home, name, role="clerk", persona=f"You are {name}, brief and exact.")
            await office.registry.register(name, OPERATOR, sha256=identity.sha256, trust=trust)
        async with (
            Artoo(config, environ=_without_endpoints()) as artoo,
            open_team(office, artoo, small_model=True) as team,
        ):
            artoo.bus.attach(tally)
            async with asyncio.TaskGroup() as group:
                group.create_task(team.run())
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        for number in range(rounds):
                            await _round(office, project, number)
                            done += 1
                team.stop()
    return {"rounds_done": done, **tally.report()}


async def _round(office: Office, project: Path, number: int) -> None:
    """One thing for each agent to do, and a letter now and then; returns when all of it is over."""
    for index, name in enumerate(TEAM):
        text = WORK[(number + index) % len(WORK)].format(name=f"{name}{number}")
        await office.board.add(text, OPERATOR, assignee=name, complexity=Complexity.SIMPLE, project=str(project))
    sent = await office.mailbox.send(OPERATOR, "bob", LETTER.format(poem=project / "poem.txt"))
    while not await _over(office, sent.id):
        await office.wake.wait(OPERATOR, await office.wake.mark(OPERATOR), 1.0)


async def _over(office: Office, letter: str) -> bool:
    tasks = await office.board.list()
    read = (await office.mailbox.get(letter)).partition == "archive"
    waiting = [task for task in tasks if task.state not in OVER and task.reviewer != OPERATOR]
    return read and not waiting


def _without_endpoints() -> dict[str, str]:
    """The environment without other servers: the embedded model is what is measured."""
    return {name: value for name, value in os.environ.items() if not name.endswith(("_BASE_URL", "_API_KEY"))}


def main() -> None:
    """Runs the day and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, help="a GGUF file (default: the installed model)")
    parser.add_argument("--rounds", type=int, default=4, help="pulses with work for everybody (default: 4)")
    parser.add_argument("--minutes", type=float, default=60.0, help="the longest day (default: 60)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="artoo-day-") as place:
        root = Path(place).resolve()
        (root / "project").mkdir()
        (root / "project" / "poem.txt").write_text("one\ntwo\nthree\n")
        settings: dict[str, object] = {"workspace": root / "out"}
        if given.model is not None:
            settings["embedded"] = {"model": str(given.model.resolve())}
        config = Config.model_validate(settings).at_home(root / "home")
        found = asyncio.run(day(config, root / "project", given.rounds, given.minutes * 60))
    if given.json:
        json.dump(found, sys.stdout, indent=2)
        print()
        return
    for name, value in found.items():
        print(f"{name}: {value:.1%}" if isinstance(value, float) else f"{name}: {value}")


if __name__ == "__main__":
    main()
