"""What the tests of the client ask, and of whom."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random

from pydantic import BaseModel, ConfigDict

from artoo.llm.client import EndpointModel
from artoo.llm.dialect import DialectMemory
from artoo.llm.http import HttpTransport
from artoo.llm.retry import RetryPolicy
from artoo.ports.model import Question, Tier
from artoo.testing import FakeClock, ScriptedServer


class Step(BaseModel):
    model_config = ConfigDict(extra="forbid")
    tool: str
    command: str = ""


STEP = {"tool": "shell", "command": "ls"}


def question(
    *, body_field: str | None = None, variant: int = 0, user: str = "go", max_tokens: int = 256
) -> Question[Step]:
    return Question(
        contract="Step",
        schema=Step,
        system="You are R3.\ncontract: Step",
        user=user,
        tier=Tier.TOOL,
        body_field=body_field,
        variant=variant,
        max_tokens=max_tokens,
    )


@asynccontextmanager
async def client_of(
    server: ScriptedServer,
    *,
    clock: FakeClock | None = None,
    retry: RetryPolicy | None = None,
    memory: DialectMemory | None = None,
    key: str | None = None,
    limit: int = 64,
    window: int | None = None,
) -> AsyncGenerator[EndpointModel]:
    model = EndpointModel(
        HttpTransport(server.base_url, key, limit=limit),
        "m",
        clock or FakeClock(auto_advance=True),
        retry=retry,
        memory=memory,
        random=Random(1),
        window=window,
    )
    try:
        yield model
    finally:
        await model.close()
