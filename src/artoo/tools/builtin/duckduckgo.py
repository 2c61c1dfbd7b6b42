"""Asks DuckDuckGo by the `ddgs` library, in a process of its own that the kernel keeps small.

The library unpacks whatever an answer holds: its client is put off with answers of a bounded length, counted
unpacked. What parses pages may take more memory than they have bytes, so a bound stands around the whole too. The
process also ends with the question, where a thread would go on.

Run as `python -m artoo.tools.builtin.duckduckgo`, it reads a `Question` and prints a `Reply`, both as JSON.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from artoo.contracts.errors import ToolError
from artoo.sandbox.reading.programs import own_environment, own_python

if TYPE_CHECKING:
    import primp

MOST_MEMORY = 768 << 20
"""Bytes of data that the process may have; a search takes some 60 MB."""
MOST_UNPACKED = 4 << 20
"""Bytes of one page; one with results has some 40 kB."""
_LONGEST = 2_000


Text = Annotated[str, BeforeValidator(lambda text: str(text)[:_LONGEST])]


class Question(BaseModel):
    """What is asked: `most` results, `seconds` for each request."""

    query: str
    most: int
    seconds: float


class Found(BaseModel):
    """One result as the library names its parts."""

    model_config = ConfigDict(extra="ignore")

    title: Text = ""
    href: Text = ""
    body: Text = ""


class Reply(BaseModel):
    """What the process prints. `problem`: which sentence of `search` fits; `why`: the library's own words."""

    found: tuple[Found, ...] = ()
    problem: str = ""
    why: str = ""


async def ask(query: str, most: int, seconds: float) -> Reply:
    """The answer to one query. Raises ToolError when the process ends without one."""
    process = await asyncio.create_subprocess_exec(
        *own_python("-m", __name__),
        env=own_environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        question = Question(query=query, most=most, seconds=seconds)
        said, _ = await process.communicate(question.model_dump_json().encode())
        return Reply.model_validate_json(said)
    except ValidationError as error:
        raise ToolError(
            f"DuckDuckGo could not be asked: the search ended without an answer ({MOST_MEMORY >> 20} MiB is the "
            "most that it may take); try again later, or set up Google's search"
        ) from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def keep_small() -> None:
    """From here on the process may have `MOST_MEMORY` bytes of data."""
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))


class Page:
    """An answer as the library's engines read it: status, bytes and text."""

    def __init__(self, answer: primp.Response) -> None:
        """Raises ValueError when it is longer than `MOST_UNPACKED`, which is as much as is unpacked."""
        body = bytearray()
        for piece in answer.iter_bytes():
            body += piece
            if len(body) > MOST_UNPACKED:
                answer.close()
                raise ValueError(f"the answer has more than {MOST_UNPACKED} bytes")
        self.status_code, self.content = answer.status_code, bytes(body)
        self.text = self.content.decode("utf-8", "replace")


def search(query: str, most: int, seconds: float) -> Reply:
    """Asks, in this process."""
    import ddgs.http_client
    from ddgs.ddgs import DDGS
    from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException

    ddgs.http_client.Response = Page  # pyright: ignore[reportAttributeAccessIssue]  # its own unpacks without end
    logging.getLogger("ddgs").setLevel(logging.ERROR)
    try:
        found: Sequence[object] = DDGS(timeout=int(seconds)).text(query, max_results=most, backend="duckduckgo")
    except RatelimitException:
        return Reply(problem="limited")
    except TimeoutException:
        return Reply(problem="slow")
    except DDGSException as error:
        return Reply() if "No results found" in str(error) else Reply(problem="offline", why=str(error)[:200])
    return Reply(found=tuple(Found.model_validate(one) for one in found[:most]))


def main() -> None:
    """Answers the one question on standard input."""
    keep_small()
    question = Question.model_validate_json(sys.stdin.buffer.read())
    sys.stdout.write(search(question.query, question.most, question.seconds).model_dump_json())


if __name__ == "__main__":
    main()
