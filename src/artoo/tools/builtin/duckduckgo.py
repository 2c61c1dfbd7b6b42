"""A DuckDuckGo search in a separate process, with the number of results, and timeout and memory limits.

The library unpacks pages of any length, so the memory of this process is limited. A process can be ended when the
query is cancelled, whereas a thread would continue.

Run as `python -m artoo.tools.builtin.duckduckgo`, it reads a query and prints a `Reply` as JSON.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import sys

from pydantic import BaseModel, ValidationError

from artoo.contracts.errors import ToolError
from artoo.sandbox.reading.programs import own_environment, own_python

MOST_RESULTS = 8
REQUEST_SECONDS = 10
MOST_MEMORY = 768 << 20
"""Limit of the process's data memory in bytes. A search takes some 60 MB."""
_LONGEST = 2_000
OFFLINE = "the web cannot be searched, {what} was not reached ({why}); is this computer online?"


class Reply(BaseModel):
    """The output of the process: title, address and text of each result, or else the reason why the search
    failed."""

    found: list[tuple[str, str, str]] = []
    problem: str = ""


async def ask(query: str) -> list[tuple[str, str, str]]:
    """Return the results of one query. Raises ToolError with advice if the search fails."""
    process = await asyncio.create_subprocess_exec(
        *own_python("-m", __name__),
        env=own_environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        said, _ = await process.communicate(query.encode())
        reply = Reply.model_validate_json(said)
    except ValidationError as error:
        raise ToolError(
            f"DuckDuckGo could not be asked: the search ended without an answer ({MOST_MEMORY >> 20} MiB is the "
            "most that it may take); try again later, or set up Google's search"
        ) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if reply.problem:
        raise ToolError(reply.problem)
    return reply.found


def keep_small() -> None:
    """Limit the data memory of this process to `MOST_MEMORY` bytes."""
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))


def search(query: str) -> Reply:
    """Run the search in this process."""
    from ddgs.ddgs import DDGS
    from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException

    logging.getLogger("ddgs").setLevel(logging.ERROR)
    try:
        found = DDGS(timeout=REQUEST_SECONDS).text(query, max_results=MOST_RESULTS, backend="duckduckgo")
    except RatelimitException:
        return Reply(problem="DuckDuckGo answers no more questions for now; wait some minutes")
    except TimeoutException:
        return Reply(problem=OFFLINE.format(what="DuckDuckGo", why="it did not answer in time"))
    except DDGSException as error:
        why = OFFLINE.format(what="DuckDuckGo", why=str(error)[:200])
        return Reply() if "No results found" in str(error) else Reply(problem=why)
    names = ("title", "href", "body")
    listed = [[str(one.get(name, ""))[:_LONGEST] for name in names] for one in found[:MOST_RESULTS]]
    return Reply(found=[(title, address, text) for title, address, text in listed])


def main() -> None:
    """Read a query from standard input, search, and print the reply."""
    keep_small()
    sys.stdout.write(search(sys.stdin.buffer.read().decode()).model_dump_json())


if __name__ == "__main__":
    main()
