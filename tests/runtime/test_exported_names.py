"""The public names of artoo."""

from __future__ import annotations

import subprocess
import sys

import artoo

NAMES = [
    "ApplyMode",
    "Artoo",
    "ArtooError",
    "BudgetExhausted",
    "Budgets",
    "Changes",
    "Choice",
    "Config",
    "ConfigurationError",
    "ConfirmationRequest",
    "Consent",
    "Deps",
    "Envelope",
    "FinalResult",
    "MemoryStoreError",
    "ModelAnswerInvalid",
    "ModelError",
    "ModelRefused",
    "ModelUnreachable",
    "Outcome",
    "Pending",
    "ProtocolError",
    "Returned",
    "RunOptions",
    "RunResult",
    "SandboxError",
    "ToolError",
    "ToolUse",
    "Turn",
    "load_config",
    "run_sync",
    "tool",
]


def test_the_public_names_are_these() -> None:
    """Adding, renaming or removing a public name is a decision: it changes this list."""
    assert sorted(artoo.__all__) == NAMES
    assert dir(artoo) == NAMES


def test_importing_artoo_imports_nothing_heavy() -> None:
    """`import artoo` loads none of its libraries."""
    program = "import sys, artoo; print(sorted({'pydantic', 'aiohttp', 'yaml', 'asyncio'} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


def test_the_first_task_loads_its_roles_beside_the_callers_loop() -> None:
    """The imports of a first run happen in a thread: a server's other requests went unanswered for 0.2 s."""
    program = """
import asyncio, sys, tempfile, threading
from pathlib import Path
from artoo import Artoo, Config
from artoo.testing import ScriptedModel
loaded = {}
class Watch:
    def find_spec(self, name, path=None, target=None):
        loaded.setdefault(name, threading.current_thread() is threading.main_thread())
async def main():
    place = Path(tempfile.mkdtemp())
    config = Config(workspace=place / "out").at_home(place / "home")
    with ScriptedModel({"Plan": {"reply": "Four."}}) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            sys.meta_path.insert(0, Watch())
            print((await artoo.run("How much is two and two?")).output)
    rooms = ("artoo.loops.fast.", "artoo.loops.medium.", "artoo.tools.builtin.")
    roles = [name for name in loaded if name.startswith(rooms)]
    print(len(roles) > 10, [name for name in roles if loaded[name]])
asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == ["Four.", "True []"], ended.stderr
