"""A process that audits a task and then does nothing, until somebody kills it. Argument: its home."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from artoo import Artoo, Config, RunOptions
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import ToolCalled
from artoo.testing import ScriptedModel, with_body

SCRIPT = {
    "Plan": {"subtasks": [{"intent": "count them", "tool": "shell"}], "task_criteria": ["They are counted."]},
    "ExecutorStep": with_body({"tool": "shell", "is_final": True}, "wc -l < a.txt"),
}


async def main(home: Path) -> None:
    """Runs one task; after its tool call everything that was said is on record, and more is said that is not."""
    project = home.parent / "project"
    project.mkdir()
    (project / "a.txt").write_text("x\ny\n")
    config = Config(workspace=home.parent / "workspace").at_home(home)
    with ScriptedModel(SCRIPT) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            stopped = asyncio.Event()

            def tap(envelope: Envelope) -> None:
                if isinstance(envelope.payload, ToolCalled):
                    stopped.set()

            artoo.bus.attach(tap)
            async with asyncio.TaskGroup() as group:
                group.create_task(artoo.run("How many lines has a.txt?", options=RunOptions(project=project)))
                await stopped.wait()
                await artoo.audit()
                sys.stdout.write("audited\n")
                sys.stdout.flush()
                await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
