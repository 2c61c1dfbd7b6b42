"""The plain OpenAI SDK with asyncio.gather: what one would write by hand."""

from __future__ import annotations

import asyncio
import sys

import job
from openai import AsyncOpenAI


async def main(base_url: str) -> None:
    """Takes orders with one client."""
    client = AsyncOpenAI(base_url=base_url, api_key=job.KEY, max_retries=0)

    async def call(**body: object) -> dict[str, object]:
        completion = await client.chat.completions.create(model=job.MODEL, **body)
        message = completion.choices[0].message
        calls = [each.model_dump() for each in message.tool_calls or ()]
        return {"content": message.content, "tool_calls": calls}

    caller = job.Caller(call)
    await job.take_orders(caller.chain, caller.fan, job.own_output())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
