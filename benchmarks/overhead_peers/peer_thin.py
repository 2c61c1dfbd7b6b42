"""No SDK and no runtime: aiohttp and orjson alone, the practical limit."""

from __future__ import annotations

import asyncio
import sys

import aiohttp
import job
import orjson


async def main(base_url: str) -> None:
    """Takes orders with one session."""
    connector = aiohttp.TCPConnector(limit=0)
    headers = {"Authorization": f"Bearer {job.KEY}", "Content-Type": "application/json"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def call(**body: object) -> dict[str, object]:
            data = orjson.dumps({"model": job.MODEL, **body})
            async with session.post(f"{base_url}/chat/completions", data=data) as response:
                response.raise_for_status()
                return orjson.loads(await response.read())["choices"][0]["message"]

        caller = job.Caller(call)
        await job.take_orders(caller.chain, caller.fan, job.own_output())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
