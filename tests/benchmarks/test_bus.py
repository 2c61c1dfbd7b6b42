"""The stream's benchmark runs as its readers read now: what a change of the bus breaks there is seen."""

from __future__ import annotations

import json
import subprocess
import sys

from scripts import BENCHMARKS


def test_it_prints_what_it_says() -> None:
    """Few messages: each figure that its first lines name."""
    few = ["--messages", "200", "--paced", "20", "--rounds", "1"]
    ended = subprocess.run(
        [sys.executable, str(BENCHMARKS / "bus.py"), "--json", *few], capture_output=True, text=True, check=True
    )
    figures = json.loads(ended.stdout)
    assert {"throughput_vs_queue", "latency_vs_queue", "written_vs_queue", "untapped_vs_queue"} <= figures.keys()
