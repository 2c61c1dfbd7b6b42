"""Whoever has no page pays nothing for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LOADED = "[name for name in sys.modules if name.partition('.')[0] in {heavy} or name.startswith('artoo.web')]"
HEAVY = "{'starlette', 'uvicorn', 'jinja2', 'markupsafe', 'h11'}"
HELP = "from artoo.cli.main import main; main(['--help'])"
TASK = """
import asyncio, sys
from pathlib import Path
from artoo import Artoo, Config, RunOptions
from artoo.testing import ScriptedModel

async def run():
    home = Path(sys.argv[1])
    model = ScriptedModel({"Plan": {"reply": "four"}}, leftover=True)
    async with Artoo(Config(workspace=home).at_home(home), environ={}, model=model) as artoo:
        result = await artoo.run("How much is two and two?", options=RunOptions(project=home))
    assert "four" in result.summary, result

asyncio.run(run())
"""


@pytest.mark.parametrize("program", [HELP, TASK], ids=["help", "task"])
def test_neither_the_help_nor_a_task_loads_the_page(tmp_path: Path, program: str) -> None:
    """Nothing of the page, nor of what it is built on, is imported until it is wanted."""
    code = f"import sys\n{program}\nprint({LOADED.replace('{heavy}', HEAVY)})"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
