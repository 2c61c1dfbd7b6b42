"""`artoo` in a process of its own, without a terminal, and with a scripted model."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping

from artoo.testing import ScriptedServer


def model_at(server: ScriptedServer) -> dict[str, str]:
    """The environment in which this server is every model."""
    return {"OPENAI_BASE_URL": server.base_url, "OPENAI_MODEL": "scripted", "OPENAI_API_KEY": "none"}


async def artoo(*arguments: str, environ: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    """Runs `artoo …`. Returns its exit code and both outputs."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "artoo", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(environ or {})},
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()
