"""What the page costs the runtime, and how it bears a long task.

    .venv/bin/python benchmarks/web.py [--json] [--rounds N] [--events N] [--minutes M]

    chain_with_page_vs_without  wall of a task of four scripted model calls (20 ms each) while a page in another
                                process watches it, over the same without; median of interleaved pairs;
                                target <= 1.05
    first_paint_s               from navigation to the first contentful paint of a task of N events, in the tests'
                                headless browser, the server having just been started; target <= 1.5
    scroll_frames_per_second    while that timeline scrolls from top to bottom for two seconds; target >= 30
    server_mb_growth            the server's resident memory after M minutes of 200 events a second with ten pages
                                open, less that after the first tenth of the time

The figures about the browser are null where there is none (`make browser`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import aiohttp

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "web"))
from fetch_browser import chromium
from web_scenes import TASK, Writer, crowd

from artoo import Artoo, Config, RunOptions, tool
from artoo.tasklog.layout import tasks_directory
from artoo.tasklog.lock import TaskLock
from artoo.testing import ScriptedModel, slow
from artoo.web.entry import Entry

PAGES = 10
PER_SECOND = 200
LATENCY = 0.02
ANSWERED = {"text": "there is an answer", "check": {"check": "output_matches", "regex": r"\S"}}
INTENTS = ("double it", "double it again", "and once more")


@tool
def double(number: int) -> int:
    """double a number"""
    return 2 * number


@contextmanager
def server(home: Path) -> Generator[tuple[str, int]]:
    """`artoo web` in a process of its own; its address and its process id."""
    command = [sys.executable, "-m", "artoo", "web", "--port", "0", "--no-open"]
    environ = {**os.environ, "ARTOO_HOME": str(home)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline().split()[-1]
        try:
            yield said.partition("/enter")[0], process.pid
        finally:
            process.send_signal(signal.SIGTERM)


@contextmanager
def watcher(home: Path, address: str, pages: int) -> Generator[None]:
    """Pages that read streams, in a process of their own."""
    command = [sys.executable, __file__, "--watch", str(home), address, str(pages)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


async def watch(home: Path, address: str, pages: int) -> None:
    """Follows every task that begins, `pages` times each."""
    jar, seen = aiohttp.CookieJar(unsafe=True), set[str]()
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(cookie_jar=jar, timeout=timeout) as client, asyncio.TaskGroup() as group:
        async with client.get(f"{address}/enter?token={Entry(home).token()}"):
            print("ready", flush=True)

        async def follow(task: str) -> None:
            async with client.get(f"{address}/tasks/{task}/stream?after=-1") as answer:
                async for _ in answer.content.iter_any():
                    pass

        while True:
            root = tasks_directory(home)
            for path in root.iterdir() if root.is_dir() else ():
                if path.name not in seen and (path / "log.jsonl").exists():
                    seen.add(path.name)
                    for _ in range(pages):
                        group.create_task(follow(path.name))
            await asyncio.sleep(0.02)


async def chain(home: Path, project: Path) -> float:
    """Seconds that one task takes."""
    subtasks = [
        {"sequence": place, "intent": intent, "tool": "double", "success_criteria": [ANSWERED]}
        for place, intent in enumerate(INTENTS, 1)
    ]
    step = slow({"tool": "double", "input": "21", "is_final": True}, LATENCY)
    plan = slow({"subtasks": subtasks, "task_criteria": [ANSWERED]}, LATENCY)
    script = {"Plan": plan, "ExecutorStep": [step] * len(INTENTS)}
    model = ScriptedModel(script)
    async with Artoo(Config(workspace=project).at_home(home), environ={}, model=model, tools=[double]) as artoo:
        began = time.perf_counter()
        result = await artoo.run("How much is 21 doubled?", options=RunOptions(project=project, memory=False))
        wall = time.perf_counter() - began
        if result.stopped_by is not None:
            raise RuntimeError(result.summary)
        return wall


async def chains(rounds: int) -> float:
    """The median of the pairs' ratios; which of a pair comes first alternates."""
    ratios: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        project, watched, alone = (Path(folder) / name for name in ("project", "watched", "alone"))
        for place in (project, watched, alone):
            place.mkdir()
        with server(watched) as (address, _), watcher(watched, address, 1):
            await chain(alone, project)
            for number in range(rounds):
                order = (watched, alone) if number % 2 else (alone, watched)
                walls = {home: await chain(home, project) for home in order}
                ratios.append(walls[watched] / walls[alone])
    return statistics.median(ratios)


async def browser_figures(events: int) -> tuple[float | None, float | None]:
    """First paint in seconds and frames a second; None without a browser."""
    found = chromium()
    if found is None:
        return None, None
    from playwright.async_api import async_playwright
    from web_browser import ARGUMENTS

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        writer = Writer(home)
        writer.say(crowd(events))
        with server(home) as (address, _):
            async with async_playwright() as playwright:
                browser = await playwright.chromium.launch(
                    executable_path=found[0], args=list(ARGUMENTS), env=dict(found[1]), timeout=300_000
                )
                context = await browser.new_context(locale="en-US", viewport={"width": 1280, "height": 900})
                context.set_default_timeout(300_000)
                tab = await context.new_page()
                await tab.goto(f"{address}/enter?token={Entry(home).token()}")
                await tab.wait_for_url(f"{address}/")
                await tab.goto(f"{address}/tasks/{TASK}")
                paint = await tab.evaluate(
                    "() => performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"
                )
                await tab.locator(f"#timeline[data-count='{writer.count}']").wait_for(state="attached")
                frames = await tab.evaluate(
                    """() => new Promise((done) => {
                      const box = document.getElementById('timeline'), began = performance.now();
                      let frames = 0;
                      const step = (now) => {
                        frames += 1;
                        box.scrollTop = Math.min(1, (now - began) / 2000) * box.scrollHeight;
                        if (now - began < 2000) requestAnimationFrame(step);
                        else done(frames / ((now - began) / 1000));
                      };
                      requestAnimationFrame(step);
                    })"""
                )
                await browser.close()
    return round(float(paint), 3), round(float(frames), 1)


def resident_mb(process: int) -> float:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def growth(minutes: float) -> float:
    """Megabytes by which the server grew after the first tenth of the time."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        writer, steps = Writer(home), crowd(int(minutes * 60 * PER_SECOND) + 8_000)
        with TaskLock(home, TASK), server(home) as (address, process), watcher(home, address, PAGES):
            began, before = time.monotonic(), 0.0
            while (passed := time.monotonic() - began) < minutes * 60:
                writer.say(step for _, step in zip(range(PER_SECOND // 10), steps, strict=False))
                if not before and passed > minutes * 6:
                    before = resident_mb(process)
                await asyncio.sleep(0.1)
            return resident_mb(process) - before


async def measured(rounds: int, events: int, minutes: float) -> dict[str, float | int | None]:
    """All figures."""
    paint, frames = await browser_figures(events)
    return {
        "chain_with_page_vs_without": round(await chains(rounds), 3),
        "first_paint_s": paint,
        "scroll_frames_per_second": frames,
        "server_mb_growth": round(await growth(minutes), 1),
        "events": events,
        "minutes": minutes,
        "rounds": rounds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--watch", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.watch:
        asyncio.run(watch(Path(given.watch[0]), given.watch[1], int(given.watch[2])))
        return
    found = asyncio.run(measured(given.rounds, given.events, given.minutes))
    print(json.dumps(found) if given.json else "\n".join(f"{name:28} {value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
