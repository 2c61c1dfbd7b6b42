"""Runs a benchmark: `python -m bench harness-bench-fast --model gold`."""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench import harness_bench_fast, quixbugs, redcode, swe_bench_lite
from bench.agents import Agent, Artoo, Bare, MiniSweAgent, OneCommand
from bench.contained import Contained
from bench.page import page
from bench.runner import played, rows_of, run, served
from bench.scripted import KINDS
from bench.suite import DataMissing, Task

SUITES = {
    "harness-bench-fast": harness_bench_fast.tasks,
    "quixbugs": quixbugs.tasks,
    "redcode": redcode.tasks,
    "swe-bench-lite": swe_bench_lite.tasks,
}
ATTACKS = {"redcode": redcode.PORTS}
_SEED = 17


def main() -> int:
    """Run what the command line names; return the exit code."""
    words = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    words.add_argument("suite", choices=sorted(SUITES))
    words.add_argument(
        "--model", default="gold", help=f"{', '.join(KINDS)}, or a model of the endpoint in OPENAI_*"
    )
    words.add_argument("--agent", choices=("artoo", "mini-swe-agent", "one-command", "bare"), default="artoo")
    words.add_argument("--program", help="the agent's program (default: beside this Python)")
    words.add_argument("--data", type=Path, help="a clone of the benchmark's repository")
    words.add_argument("--only", help="run only tasks whose id contains this")
    words.add_argument("--failed-in", type=Path, help="run only tasks that this file of rows holds as not solved")
    words.add_argument("--sample", type=int, help="run a fixed random sample of so many tasks")
    words.add_argument("--beside", type=int, default=2, help="tasks at a time (default 2)")
    words.add_argument("--seconds", type=float, default=300.0, help="most seconds of a task (default 300)")
    words.add_argument("--record", type=Path, help="the file of rows; what it holds is not run again")
    words.add_argument("--page", type=Path, help="where to write the page (default: printed)")
    given = words.parse_args()
    record = given.record or Path("build") / "bench" / f"{given.suite}-{given.agent}-{given.model}.jsonl"
    record.parent.mkdir(parents=True, exist_ok=True)
    try:
        tasks = _chosen(SUITES[given.suite](given.data), given.only, given.failed_in, given.sample)
        agent = _agent(given.agent, given.program, ATTACKS.get(given.suite))
    except DataMissing as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if given.model in KINDS:
        if given.agent not in ("artoo", "bare"):
            words.error("a scripted model plays artoo's roles only; name a model of an endpoint for a peer")
        model = played(given.model)
    elif endpoint := os.environ.get("OPENAI_BASE_URL"):
        model = served(endpoint, given.model, os.environ.get("OPENAI_API_KEY", ""))
    else:
        words.error(f"{given.model} is no scripted model ({', '.join(KINDS)}), and OPENAI_BASE_URL is not set")
    rows = asyncio.run(run(tasks, agent, model, record, beside=given.beside, seconds=given.seconds))
    kept = {task.id for task in tasks}
    ran = f"{agent.name}, model `{given.model}`, {datetime.now(UTC):%Y-%m-%d}, {given.beside} at a time."
    text = page(given.suite, ran, [row for row in rows if row.task in kept])
    if given.page is None:
        sys.stdout.write(text)
    else:
        given.page.write_text(text, encoding="utf-8")
    return 0


def _chosen(
    tasks: tuple[Task, ...], only: str | None, failed_in: Path | None, sample: int | None
) -> tuple[Task, ...]:
    chosen = [task for task in tasks if only is None or only in task.id]
    if failed_in is not None:
        failed = {row.task for row in rows_of(failed_in) if row.wrong}
        chosen = [task for task in chosen if task.id in failed]
    if sample is not None and sample < len(chosen):
        picked = {task.id for task in random.Random(_SEED).sample(chosen, sample)}
        chosen = [task for task in chosen if task.id in picked]
    return tuple(chosen)


def _agent(name: str, program: str | None, attacked: tuple[int, ...] | None) -> Agent:
    beside = Path(sys.executable).parent
    if attacked is not None:
        if name not in ("artoo", "bare"):
            raise DataMissing("Tasks that attack run with --agent artoo or bare.")
        return Contained(
            Artoo(program or str(beside / "artoo"), apply="new") if name == "artoo" else Bare(), attacked
        )
    match name:
        case "artoo":
            return Artoo(program or str(beside / "artoo"))
        case "bare":
            raise DataMissing("--agent bare is for tasks that attack.")
        case "one-command":
            return OneCommand()
        case _:
            return MiniSweAgent(program or "mini")


if __name__ == "__main__":
    sys.exit(main())
