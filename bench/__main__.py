"""Run a benchmark: `python -m bench harness-bench-fast --model gold`."""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import random
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench import agentdojo, bugsinpy, codeipi, harness_bench_fast, quixbugs, redcode, swe_bench_lite
from bench.agents import Agent, Artoo, Bare, Known, Library, MiniSweAgent, OneCommand, OpenHands, agree
from bench.contained import Contained
from bench.page import page, write
from bench.runner import played, rows_of, run, served
from bench.scripted import KINDS
from bench.suite import DataMissing, Task

SUITES = {
    "agentdojo": agentdojo.tasks,
    "agentdojo-attacked": agentdojo.attacked,
    "bugsinpy": bugsinpy.tasks,
    "codeipi": codeipi.tasks,
    "harness-bench-fast": harness_bench_fast.tasks,
    "quixbugs": quixbugs.tasks,
    "redcode": redcode.tasks,
    "swe-bench-lite": swe_bench_lite.tasks,
}
ATTACKS = {"redcode": redcode.PORTS}
_SEED = 17
_OWN = (
    "artoo",
    "library",
    "approved",
    "bare",
    "solution",
    "nothing",
)  # the agents that a scripted model can play with


def main() -> int:
    """Run what the command line names; return the exit code."""
    words = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    words.add_argument("suite", choices=sorted(SUITES))
    words.add_argument(
        "--model", default="gold", help=f"{', '.join(KINDS)}, or a model of the endpoint in OPENAI_*"
    )
    words.add_argument("--agent", choices=(*_OWN, "mini-swe-agent", "openhands", "one-command"), default="artoo")
    words.add_argument("--program", help="the agent's program (default: the one next to this Python)")
    words.add_argument("--allow", action="append", default=[], help="a standing permission; may be repeated")
    words.add_argument("--apply", choices=("new", "all"), default="all", help="what takes effect unasked")
    words.add_argument("--data", type=Path, help="a clone of the benchmark's repository")
    words.add_argument("--only", help="run only tasks whose id contains this")
    words.add_argument("--failed-in", type=Path, help="run only tasks that this file of rows holds as not solved")
    words.add_argument("--solved-in", type=Path, help="run only tasks that this file of rows holds as solved")
    words.add_argument("--sample", type=int, help="run a fixed random sample of so many tasks")
    words.add_argument("--parallel", type=int, default=2, help="tasks at a time (default 2)")
    words.add_argument("--seconds", type=float, default=300.0, help="most seconds of a task (default 300)")
    words.add_argument("--minutes", type=float, default=math.inf, help="begin no task after so many minutes")
    words.add_argument("--record", type=Path, help="the file of rows; what it holds is not run again")
    words.add_argument("--page", type=Path, help="where to write the page (default: printed)")
    given = words.parse_args()
    record = given.record or Path("build") / "bench" / f"{given.suite}-{given.agent}-{given.model}.jsonl"
    record.parent.mkdir(parents=True, exist_ok=True)
    try:
        tasks = _chosen(SUITES[given.suite](given.data), given)
        agent = _agent(given, ATTACKS.get(given.suite))
    except DataMissing as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if given.model in KINDS:
        if given.agent not in _OWN:
            words.error("a scripted model plays artoo's roles only; name a model of an endpoint for a peer")
        model = played(given.model)
    elif endpoint := os.environ.get("OPENAI_BASE_URL"):
        model = served(endpoint, given.model, os.environ.get("OPENAI_API_KEY", ""))
    else:
        words.error(f"{given.model} is no scripted model ({', '.join(KINDS)}), and OPENAI_BASE_URL is not set")
    bounds = {"parallel": given.parallel, "seconds": given.seconds, "minutes": given.minutes}
    rows = asyncio.run(run(tasks, agent, model, record, **bounds))
    kept = {task.id for task in tasks}
    ran = f"{agent.name}, model `{given.model}`, {datetime.now(UTC):%Y-%m-%d}, {given.parallel} at a time"
    text = page(given.suite, {ran: [row for row in rows if row.task in kept]})
    if given.page is None:
        sys.stdout.write(text)
    else:
        write(given.page, text)
    return 0


def _chosen(tasks: tuple[Task, ...], given: argparse.Namespace) -> tuple[Task, ...]:
    chosen = [task for task in tasks if given.only is None or given.only in task.id]
    for file, wrong in ((given.failed_in, True), (given.solved_in, False)):
        if file is not None:
            listed = {row.task for row in rows_of(file) if bool(row.wrong) is wrong}
            chosen = [task for task in chosen if task.id in listed]
    if given.sample is not None and given.sample < len(chosen):
        picked = {task.id for task in random.Random(_SEED).sample(chosen, given.sample)}
        chosen = [task for task in chosen if task.id in picked]
    return tuple(chosen)


def _agent(given: argparse.Namespace, attacked: tuple[int, ...] | None) -> Agent:
    program, allow = given.program or str(Path(sys.executable).parent / "artoo"), tuple(given.allow)
    if attacked is not None:
        if given.agent not in ("artoo", "bare"):
            raise DataMissing("Tasks that attack the machine run with --agent artoo or bare.")
        return Contained(Artoo(program, apply="new") if given.agent == "artoo" else Bare(), attacked)
    match given.agent:
        case "artoo":
            return Artoo(program, apply=given.apply, allow=allow)
        case "library":
            return Library(apply=given.apply, allow=allow)
        case "approved":
            return Library("artoo, every question answered with yes", given.apply, allow, agree)
        case "bare":
            return Bare()
        case "solution" | "nothing":
            return Known(given.agent, solves=given.agent == "solution")
        case "openhands":
            return OpenHands(given.program or "python3")
        case "one-command":
            return OneCommand()
        case _:
            return MiniSweAgent(given.program or "mini")


if __name__ == "__main__":
    sys.exit(main())
