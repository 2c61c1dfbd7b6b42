"""What the page costs the runtime, and how it bears a long task.

.venv/bin/python benchmarks/web.py [--json] [--only PART] [--rounds N] [--events N] [--minutes M]

chain     chain_with_page_vs_without   wall of a task of four scripted model calls (20 ms each) while a page in
                                       another process watches it, over the same without; target <= 1.05
          chain_without_vs_without     the same of two that nobody watches: what the machine adds by itself
          Both are medians of N rounds, whose order rotates; `…_quartiles` are the middle half's ends.
browser   first_paint_s                from navigation to the first contentful paint of a task of N events, in
                                       the tests' headless browser; the server has just begun; target <= 1.0
          event_on_page_ms             median of 20 commands of that task, from the write of the log until the
                                       page shows the command; target <= 300
          scroll_frames_per_second     while that timeline scrolls through for two seconds; target >= 30
          Null where there is no browser (`make browser`).
growth    server_mb_growth             the server's resident memory at the end of M minutes of 200 events a
                                       second with ten pages open, less that after the first tenth of the time
          server_mb                    the same, ten times over the time
          events_written               how many events those were
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
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "web"))
from fetch_browser import chromium
from web_scenes import TASK, Writer, crowd, used

from artoo import Artoo, Config, RunOptions, tool
from artoo.tasklog.layout import tasks_directory
from artoo.tasklog.lock import TaskLock
from artoo.testing import ScriptedModel, slow
from artoo.web.entry import Entry

if TYPE_CHECKING:
    from playwright.async_api import Page as Tab

PAGES = 10
PER_SECOND = 200
LATENCY = 0.02
ANSWERED = {"text": "there is an answer", "check": {"check": "output_matches", "regex": r"[A-Za-z0-9]"}}
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
    model = ScriptedModel(script, leftover=True)
    async with Artoo(Config(workspace=project).at_home(home), environ={}, model=model, tools=[double]) as artoo:
        began = time.perf_counter()
        result = await artoo.run("How much is 21 doubled?", options=RunOptions(project=project, memory=False))
        wall = time.perf_counter() - began
        if result.stopped_by is not None:
            raise RuntimeError(result.summary)
        return wall


Figures = dict[str, float | int | list[float] | None]


async def chains(rounds: int) -> Figures:
    """A watched home beside two that nobody watches; which comes first rotates."""
    watched_ratio, alone_ratio = list[float](), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        project, watched, alone, other = (Path(folder) / name for name in ("project", "watched", "alone", "other"))
        for place in (project, watched, alone, other):
            place.mkdir()
        with server(watched) as (address, _), watcher(watched, address, 1):
            await chain(alone, project)
            homes = deque((watched, alone, other))
            for _ in range(rounds):
                walls = {home: await chain(home, project) for home in homes}
                watched_ratio.append(walls[watched] / walls[alone])
                alone_ratio.append(walls[other] / walls[alone])
                homes.rotate()
    return {
        **spread("chain_with_page_vs_without", watched_ratio),
        **spread("chain_without_vs_without", alone_ratio),
        "rounds": rounds,
    }


def spread(name: str, ratios: list[float]) -> Figures:
    """The median, and between what the middle half lies."""
    low, middle, high = statistics.quantiles(ratios, n=4)
    return {name: round(middle, 3), f"{name}_quartiles": [round(low, 3), round(high, 3)]}


async def delay(tab: Tab, writer: Writer, command: str) -> float:
    """Seconds from the write of a command to the log until the page shows it."""
    began = time.perf_counter()
    writer.say(used("1.1", command, ""))
    await tab.locator(".step", has_text=command).first.wait_for()
    return time.perf_counter() - began


async def browser(events: int) -> Figures:
    """First paint in seconds, the delay of an event, and frames a second."""
    found = chromium()
    if found is None:
        return {"first_paint_s": None, "event_on_page_ms": None, "scroll_frames_per_second": None}
    from playwright.async_api import async_playwright
    from web_browser import ARGUMENTS

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        writer = Writer(home)
        writer.say(crowd(events))
        with TaskLock(home, TASK), server(home) as (address, _):
            async with async_playwright() as playwright:
                window = await playwright.chromium.launch(
                    executable_path=found[0], args=list(ARGUMENTS), env=dict(found[1]), timeout=300_000
                )
                context = await window.new_context(locale="en-US", viewport={"width": 1280, "height": 900})
                context.set_default_timeout(300_000)
                tab = await context.new_page()
                await tab.goto(f"{address}/enter?token={Entry(home).token()}")
                await tab.wait_for_url(f"{address}/")
                await tab.goto(f"{address}/tasks/{TASK}")
                paint = await tab.evaluate(
                    """() => new Promise((done) => new PerformanceObserver((seen) => {
                      const paint = seen.getEntriesByName('first-contentful-paint')[0];
                      if (paint) done(paint.startTime / 1000);
                    }).observe({ type: 'paint', buffered: true }))"""
                )
                await tab.locator("#turn").wait_for()
                delays = [await delay(tab, writer, f"echo {number} is here") for number in range(20)]
                await tab.goto(f"{address}/tasks/{TASK}/how")
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
                await window.close()
    return {
        "first_paint_s": round(float(paint), 3),
        "event_on_page_ms": round(statistics.median(delays) * 1000),
        "scroll_frames_per_second": round(float(frames), 1),
        "events": events,
    }


def resident_mb(process: int) -> float:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def growth(minutes: float) -> Figures:
    """Writes events as another process would, as many as are due, and looks at the server ten times."""
    with tempfile.TemporaryDirectory() as folder:
        home, seen = Path(folder), list[float]()
        writer, steps = Writer(home), crowd(int(minutes * 60 * PER_SECOND) + 8_000)
        with TaskLock(home, TASK), server(home) as (address, process), watcher(home, address, PAGES):
            began = time.monotonic()
            while (passed := time.monotonic() - began) < minutes * 60:
                writer.say(islice(steps, max(0, int(passed * PER_SECOND) - writer.count)))
                if passed >= (len(seen) + 1) * minutes * 6:
                    seen.append(round(resident_mb(process), 1))
                    print(f"{passed / 60:6.1f} min  {writer.count:8} events  {seen[-1]} MB", file=sys.stderr)
                await asyncio.sleep(0.1)
            seen.append(round(resident_mb(process), 1))
    return {
        "server_mb_growth": round(seen[-1] - seen[0], 1),
        "server_mb": seen,
        "events_written": writer.count,
        "minutes": minutes,
    }


async def measured(only: str | None, rounds: int, events: int, minutes: float) -> Figures:
    """All figures, or those of one part."""
    parts = {"browser": lambda: browser(events), "chain": lambda: chains(rounds), "growth": lambda: growth(minutes)}
    found: Figures = {}
    for name, part in parts.items():
        if only in (None, name):
            found |= await part()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", choices=("browser", "chain", "growth"))
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--watch", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.watch:
        asyncio.run(watch(Path(given.watch[0]), given.watch[1], int(given.watch[2])))
        return
    found = asyncio.run(measured(given.only, given.rounds, given.events, given.minutes))
    print(json.dumps(found) if given.json else "\n".join(f"{name:40} {value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
