"""What artoo costs around its language model calls, beside the plain OpenAI SDK, no SDK, and no client at all.

    .venv/bin/python benchmarks/overhead.py [--json] [--rounds N] [--latency MS] [--venv DIR]

Every peer does the same job against a local mock server of fixed latency (overhead_peers/job.py): a chain of 6
calls, and a plan with 64 parts at once. `sdk` is AsyncOpenAI with asyncio.gather in an environment of its own, made
with pip at the first run; `thin` is aiohttp and orjson alone; `wire` is ready-made requests over bare sockets, so
that what it takes is the server's and the machine's; `artoo` is the whole runtime with its bus, roles, log and
client. Each peer has a process of its own. Within a round the peers follow each other in random order, and every
ratio is taken within its round; the result is the median of the rounds: a noisy machine mostly cancels out.
What a chain costs besides waiting is a twentieth of its wall time, and a shared machine now and then adds more: a
round has three chains of each peer, and their median counts.
The waiting is the time for which the mock server held the requests of the chain, as it says itself: six latencies,
and what it was late on a busy machine, which is no peer's doing.

    chain_vs_sdk     wall of the chain without the waiting, artoo / sdk     target <= 0.42
    fan64_vs_sdk     wall of the fan-out, artoo / sdk                       target <= 0.5
    fan64_vs_thin    wall of the fan-out, artoo / thin                      target <= 1.2
    fan64_floor_vs_sdk    wall of the fan-out, wire / sdk: nobody's can be less here
    chain_floor_vs_sdk    wall of the chain without the waiting, wire / sdk
    import_vs_sdk    CPU of `from artoo import Artoo` and opening it, over that of `from openai import AsyncOpenAI`
                                                                            target <= 0.45
    chain_nominal_vs_sdk  as chain_vs_sdk, with 6 latencies for the waiting
    cold_vs_sdk      CPU of a new process up to the end of its first chain, artoo / sdk
    help_ms          wall of `artoo --help`                                 target < 150
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

PEERS = Path(__file__).parent / "overhead_peers"
FAN = 64
CALLS = {0: 6, FAN: 2 + 2 * FAN}
"""Calls of a job by its number of parts; 0 is the chain."""
TIMES = {0: 3, FAN: 1}
"""How often each peer does a job in a round."""

_STATS_SECONDS = 30.0
_COMPILED = "PYTHONDONTWRITEBYTECODE"
"""What keeps a checkout from having its byte code, which every installed package has."""
_SAY_CPU = "\nimport time; print(time.process_time())"
_OPEN = """
import asyncio
from artoo import Artoo
async def main():
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_MODEL": "mock"}
    async with Artoo(environ=environ):
        pass
asyncio.run(main())
"""
_IMPORTS = {
    "python": "pass",
    "sdk": "from openai import AsyncOpenAI",
    "thin": "import aiohttp, orjson",
    "artoo": _OPEN,
}


class Sample(NamedTuple):
    """One job of one peer in one round. Seconds (`held`: those that the server held its requests), bytes, MB."""

    round: int
    peer: str
    parts: int
    wall: float
    cpu: float
    held: float
    body: float
    rss: float


class Peer:
    """A peer's process, and orders for it."""

    def __init__(self, name: str, python: Path, base_url: str) -> None:
        self.name = name
        self._process = _spawn(python, f"peer_{name}.py", base_url)
        self._answer()

    def order(self, parts: int) -> dict[str, float]:
        """Does one job; `parts` 0 is a chain."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"parts": parts}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """Ends the process."""
        _end(self._process)

    def _answer(self) -> dict[str, float]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the peer {self.name} ended; what it said is above")
        answer = json.loads(line)
        if not answer.get("right", True):
            raise SystemExit(f"the peer {self.name} gave a wrong answer: {line}")
        return answer


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--warm", type=int, default=2, help="rounds before them that do not count")
    parser.add_argument("--latency", type=float, default=50.0, help="of the mock server, in ms")
    parser.add_argument("--venv", type=Path, default=_default_venv(), help="environment of the SDK peer")
    given = parser.parse_args(arguments)
    pythons = {"sdk": sdk_python(given.venv), "thin": Path(sys.executable), "artoo": Path(sys.executable)}
    load_before = os.getloadavg()[0]
    with mock_server(given.latency) as address:
        samples = measure_jobs(pythons | {"wire": Path(sys.executable)}, address, given.rounds, given.warm)
        cold = measure_cold(pythons, address, max(3, given.rounds // 2))
    imports = measure_imports(pythons, max(3, given.rounds // 2))
    result = summary(samples, imports, cold, given.latency) | {
        "help_ms": round(help_ms(max(3, given.rounds // 2)), 1),
        "load": [round(load_before, 2), round(os.getloadavg()[0], 2)],
        "cores": os.cpu_count(),
    }
    print(json.dumps(result) if given.json else table(result))
    return 0


def _default_venv() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "artoo-benchmarks" / f"openai-{sys.version_info.major}.{sys.version_info.minor}"


def sdk_python(directory: Path) -> Path:
    """The interpreter of the SDK's environment, which is made when it is not there."""
    python = directory / "bin" / "python"
    probe = [python, "-c", "import openai"]
    if not python.exists() or subprocess.run(probe, capture_output=True, check=False).returncode:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(directory)], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "openai"], check=True, stdout=sys.stderr)
    return python


@contextmanager
def mock_server(latency: float) -> Generator[str]:
    """The address of a mock server that lives as long as the block."""
    process = _spawn(Path(sys.executable), "mock_server.py", str(latency))
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        _end(process)


def measure_jobs(pythons: dict[str, Path], address: str, rounds: int, warm: int) -> list[Sample]:
    """All peers' jobs, the peers in random order within every round and job."""
    peers = [Peer(name, python, f"{address}/v1") for name, python in pythons.items()]
    samples: list[Sample] = []
    try:
        for number in range(-warm, rounds):
            for parts in (parts for parts, times in TIMES.items() for _ in range(times)):
                for peer in random.sample(peers, len(peers)):
                    served(address)
                    answer = peer.order(parts)
                    seen = served(address)
                    if number < 0:
                        continue
                    if seen["calls"] != CALLS[parts]:
                        raise SystemExit(f"{peer.name} made {seen['calls']} calls instead of {CALLS[parts]}")
                    wall, cpu, rss = answer["wall"], answer["cpu"], answer["rss_mb"]
                    body = seen["bytes"] / seen["calls"]
                    samples.append(Sample(number, peer.name, parts, wall, cpu, seen["held"], body, rss))
    finally:
        for peer in peers:
            peer.close()
    return samples


def measure_imports(pythons: dict[str, Path], rounds: int) -> list[dict[str, float]]:
    """CPU seconds of each peer's import in fresh processes, interleaved, one mapping a round."""
    own = Path(sys.executable)
    measures = {name: partial(_cpu_of, pythons.get(name, own), code) for name, code in _IMPORTS.items()}
    return _interleaved(rounds, measures)


def measure_cold(pythons: dict[str, Path], address: str, rounds: int) -> list[dict[str, float]]:
    """CPU seconds of each peer's process from its start to the end of its first chain, one mapping a round."""
    return _interleaved(rounds, {name: partial(_cold, name, python, address) for name, python in pythons.items()})


def _interleaved(rounds: int, measures: dict[str, Callable[[], float]]) -> list[dict[str, float]]:
    found: list[dict[str, float]] = []
    for number in range(-1, rounds):
        this = {name: measures[name]() for name in random.sample(list(measures), len(measures))}
        if number >= 0:
            found.append(this)
    return found


def _cpu_of(python: Path, code: str) -> float:
    with tempfile.TemporaryDirectory(prefix="artoo-overhead-") as home:
        environ = {**_environment(), "ARTOO_HOME": home}
        command = [python, "-c", code + _SAY_CPU]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ)
    return float(done.stdout)


def _cold(name: str, python: Path, address: str) -> float:
    peer = Peer(name, python, f"{address}/v1")
    try:
        return peer.order(0)["process_cpu"]
    finally:
        peer.close()


def help_ms(rounds: int) -> float:
    """Median wall time of `artoo --help`, in ms."""
    artoo = Path(sys.executable).with_name("artoo")
    walls: list[float] = []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        subprocess.run([artoo, "--help"], capture_output=True, check=True)
        walls.append((time.perf_counter() - started) * 1e3)
    return statistics.median(walls[1:])


def summary(
    samples: list[Sample], imports: list[dict[str, float]], cold: list[dict[str, float]], latency: float
) -> dict[str, object]:
    """The ratios, and the medians that they come from (milliseconds, bytes, MB)."""

    def wall(sample: Sample) -> float:
        return sample.wall

    def ratio(parts: int, other: str, of: Callable[[Sample], float] = wall, own: str = "artoo") -> float:
        def figure(number: int, peer: str) -> float:
            same = (each for each in samples if (each.round, each.peer, each.parts) == (number, peer, parts))
            return statistics.median(of(each) for each in same)

        rounds = {each.round for each in samples}
        return round(statistics.median(figure(number, own) / figure(number, other) for number in rounds), 3)

    def overhead(sample: Sample) -> float:
        return sample.wall - sample.held

    def nominal(sample: Sample) -> float:
        return sample.wall - CALLS[0] * latency / 1e3

    def chosen(peer: str, parts: int, of: Callable[[Sample], float]) -> float:
        return round(statistics.median(of(each) for each in samples if (each.peer, each.parts) == (peer, parts)), 3)

    peers = sorted({each.peer for each in samples})
    return {
        "chain_vs_sdk": ratio(0, "sdk", overhead),
        "chain_nominal_vs_sdk": ratio(0, "sdk", nominal),
        "chain_vs_thin": ratio(0, "thin", overhead),
        "fan64_vs_sdk": ratio(FAN, "sdk"),
        "fan64_vs_thin": ratio(FAN, "thin"),
        "chain_floor_vs_sdk": ratio(0, "sdk", overhead, own="wire"),
        "fan64_floor_vs_sdk": ratio(FAN, "sdk", own="wire"),
        "import_vs_sdk": round(statistics.median(each["artoo"] / each["sdk"] for each in imports), 3),
        "cold_vs_sdk": round(statistics.median(each["artoo"] / each["sdk"] for each in cold), 3),
        "latency_ms": latency,
        "rounds": len({each.round for each in samples}),
        "chain_ms": {peer: chosen(peer, 0, lambda s: s.wall * 1e3) for peer in peers},
        "chain_overhead_ms": {peer: chosen(peer, 0, lambda s: overhead(s) * 1e3) for peer in peers},
        "fan64_ms": {peer: chosen(peer, FAN, lambda s: s.wall * 1e3) for peer in peers},
        "cpu_ms_per_call": {peer: chosen(peer, FAN, lambda s: s.cpu * 1e3 / CALLS[FAN]) for peer in peers},
        "chain_cpu_ms": {peer: chosen(peer, 0, lambda s: s.cpu * 1e3) for peer in peers},
        "request_bytes": {peer: chosen(peer, 0, lambda s: s.body) for peer in peers},
        "peak_rss_mb": {peer: max(each.rss for each in samples if each.peer == peer) for peer in peers},
        "import_cpu_ms": _medians(imports),
        "cold_cpu_ms": _medians(cold),
    }


def _medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {name: round(statistics.median(each[name] for each in rounds) * 1e3, 1) for name in sorted(rounds[0])}


_ROWS = {
    "chain_ms": "chain of 6 calls, ms",
    "chain_overhead_ms": "of these not waiting, ms",
    "fan64_ms": "64 in parallel (130 calls), ms",
    "chain_cpu_ms": "client CPU of the chain, ms",
    "cpu_ms_per_call": "client CPU a call in the fan-out, ms",
    "request_bytes": "bytes of a request in the chain",
    "peak_rss_mb": "peak memory, MB",
    "import_cpu_ms": "CPU of the import (artoo: and opening), ms",
    "cold_cpu_ms": "CPU of a process up to the end of its first chain, ms",
}
_TARGETS = {
    "chain_vs_sdk": "≤ 0.42",
    "fan64_vs_sdk": "≤ 0.5",
    "fan64_vs_thin": "≤ 1.2",
    "import_vs_sdk": "≤ 0.45",
    "chain_nominal_vs_sdk": "",
    "chain_vs_thin": "",
    "chain_floor_vs_sdk": "",
    "fan64_floor_vs_sdk": "",
    "cold_vs_sdk": "",
    "help_ms": "< 150",
}


def table(result: dict[str, object]) -> str:
    """The result as two Markdown tables."""
    lines = ["| | artoo | target |", "|---|---|---|"]
    lines += [f"| {name} | {result[name]} | {target} |" for name, target in _TARGETS.items()]
    lines += ["", "| medians | wire | thin | sdk | artoo |", "|---|---|---|---|---|"]
    for key, title in _ROWS.items():
        figures: dict[str, float] = result[key]  # type: ignore[assignment]
        cells = (f"{figures[peer]:.4g}" if peer in figures else "" for peer in ("wire", "thin", "sdk", "artoo"))
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    lines += ["", f"Latency {result['latency_ms']} ms, {result['rounds']} rounds, {result['cores']} cores, load "]
    lines[-1] += "{} before and {} after.".format(*result["load"])  # type: ignore[misc]
    return "\n".join(lines)


def _spawn(python: Path, script: str, argument: str) -> subprocess.Popen[str]:
    command = [str(python), str(PEERS / script), argument]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment())


def _environment() -> dict[str, str]:
    return {
        key: value for key, value in os.environ.items() if key != _COMPILED and not key.lower().endswith("_proxy")
    }


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


def served(address: str) -> dict[str, float]:
    """What the mock server counted since the last look."""
    with urllib.request.urlopen(f"{address}/stats", timeout=_STATS_SECONDS) as response:
        return json.loads(response.read())


if __name__ == "__main__":
    sys.exit(main())
