"""A whole artoo that dies inside a call that nobody can take back, or takes that task up.

    python outside_victim.py HOME BASE_URL ANSWER

ANSWER `die` runs and dies; `yes` and `no` are what the person says, and with `nobody` there is none. Prints the
result as JSON.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from artoo import Artoo, Config, RunOptions, tool
from artoo.contracts.confirmation import ConfirmationRequest, Consent


async def life(home: Path, base_url: str, answer: str) -> None:
    @tool(writes=True)
    def send(text: str) -> str:
        """Sends a text to somebody."""
        with (home / "sent").open("a") as file:
            file.write(f"{text}\n")
        if answer == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return f"sent {text}"

    async def person(request: ConfirmationRequest) -> Consent:
        with (home / "asked").open("a") as file:
            file.write(f"{request.title}\n")
        return Consent.NO if answer == "no" else Consent.ONCE

    config = Config.model_validate({"workspace": home / "workspace", "memory": {"enabled": False}})
    environ = {"OPENAI_BASE_URL": base_url, "OPENAI_MODEL": "scripted"}
    confirm = None if answer == "nobody" else person
    async with Artoo(config.at_home(home / ".artoo"), environ=environ, tools=[send], confirm=confirm) as artoo:
        if answer == "die":
            await artoo.run("Send the text hello.", options=RunOptions(project=home / "project"))
        print((await artoo.resume()).model_dump_json())


if __name__ == "__main__":
    asyncio.run(life(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
