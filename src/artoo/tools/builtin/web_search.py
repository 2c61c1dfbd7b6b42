"""The tool `web_search`, by Google Custom Search with its key variables, else DuckDuckGo."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from artoo.contracts.errors import ToolError
from artoo.ports.tools import Parameter, ToolSpec
from artoo.tools.builtin.duckduckgo import MOST_RESULTS, OFFLINE, REQUEST_SECONDS, ask
from artoo.tools.core.tool import Arguments, CountsAsItself, Outcome, argument

SEARCH_SECONDS = 40.0
LARGEST_ANSWER = 2 << 20
GOOGLE = "https://www.googleapis.com/customsearch/v1"
KEY_NAMES = ("GOOGLE_API_KEY", "GOOGLE_SEARCH_API_KEY", "GOOGLE_CUSTOM_SEARCH_API_KEY")
ENGINE_NAMES = ("GOOGLE_CSE_ID", "GOOGLE_CX", "GOOGLE_SEARCH_ENGINE_ID")
_SNIPPET = 300


@dataclass(frozen=True, slots=True)
class Hit:
    """One result of a search."""

    title: str
    url: str
    snippet: str


Engine = Callable[[str], Awaitable[Sequence[Hit]]]
"""Runs a search. Raises ToolError that explains the problem."""


def engine_for(environ: Mapping[str, str]) -> Engine:
    """Return Google's engine if the key and the id of a Google search engine are set, otherwise DuckDuckGo's."""
    key = next((environ[name] for name in KEY_NAMES if environ.get(name)), "")
    engine = next((environ[name] for name in ENGINE_NAMES if environ.get(name)), "")
    return Google(key, engine).search if key and engine else duckduckgo


_SPEC = ToolSpec(
    name="web_search",
    description="search the web",
    parameters=(Parameter("query", "what to look for", clear=True),),
    priority=90,
    only_reads=True,
    aliases=("search", "google"),
)


@dataclass(frozen=True, slots=True)
class Search(CountsAsItself):
    """Searches the web with `engine`. The text of pages is data, so the gate is told which names come from it."""

    engine: Engine
    wall_seconds: float = SEARCH_SECONDS
    spec: ToolSpec = _SPEC

    def target(self, arguments: Arguments) -> str:
        return " ".join(argument(arguments, "query").split())

    async def run(self, arguments: Arguments) -> Outcome:
        """Run the search. Raises ToolError if the machine is offline, the user refused, or the search is too
        slow."""
        hits = tuple(await self.engine(self.target(arguments)))[:MOST_RESULTS]
        text = "\n\n".join(f"{hit.title}\n{hit.url}\n{hit.snippet[:_SNIPPET]}" for hit in hits)
        return Outcome(output=text or "(no result)", result_count=len(hits))


async def duckduckgo(query: str) -> Sequence[Hit]:
    """Search with the `ddgs` library. Raises ToolError with advice."""
    return [Hit(*one) for one in await ask(query)]


@dataclass(frozen=True, slots=True)
class Google:
    """Google's Custom Search JSON API. The key is sent in a header, not in the address, because addresses are
    logged."""

    key: str = field(repr=False)
    engine: str
    address: str = GOOGLE

    async def search(self, query: str) -> Sequence[Hit]:
        """Search. Raises ToolError with the HTTP status or the network error, and ConfigurationError for an invalid
        proxy setting."""
        import aiohttp

        from artoo.settings.proxy import proxy_for

        parameters = {"cx": self.engine, "q": query, "num": str(MOST_RESULTS)}
        headers, proxy = {"X-goog-api-key": self.key}, proxy_for(self.address)
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS)) as session,
                session.get(self.address, params=parameters, headers=headers, proxy=proxy) as answer,
            ):
                body = bytearray()
                async for piece in answer.content.iter_any():
                    body += piece
                    if len(body) > LARGEST_ANSWER:
                        raise ToolError(
                            f"Google Custom Search sent more than {LARGEST_ANSWER} bytes; try again later"
                        )
                if answer.status != 200:
                    raise ToolError(f"Google Custom Search refused: HTTP {answer.status}; check its key and quota")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            why = str(error) or type(error).__name__
            raise ToolError(OFFLINE.format(what="Google Custom Search", why=why)) from error
        return await asyncio.to_thread(_google_hits, bytes(body))


def _google_hits(body: bytes) -> list[Hit]:
    import json

    try:
        data: object = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ToolError("Google Custom Search sent no JSON; try again later") from error
    items: object = cast("Mapping[str, object]", data).get("items") if isinstance(data, Mapping) else None
    entries = cast("list[Mapping[str, object]]", items) if isinstance(items, list) else []
    return [
        Hit(str(one.get("title", "")), str(one.get("link", "")), str(one.get("snippet", ""))) for one in entries
    ]
