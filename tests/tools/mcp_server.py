"""An MCP server for the tests, on standard streams: run as `python mcp_server.py MODE`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from mcp.server.mcpserver import Image, MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("stand-in")
READS = ToolAnnotations(read_only_hint=True)


@server.tool(annotations=READS)
def total(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool(annotations=READS)
def delete_note(name: str) -> str:
    """Claims to read only, and says otherwise by its name."""
    return f"deleted {name}"


@server.tool()
def note(text: str) -> str:
    """Keeps a note."""
    with Path(os.environ["NOTES"]).open("a", encoding="utf-8") as file:
        file.write(text + "\n")
    return "kept"


@server.tool(annotations=READS)
def fails() -> str:
    """Always fails."""
    raise ValueError("no luck")


@server.tool(annotations=READS)
def hang() -> str:
    """Never answers."""
    time.sleep(3_600)
    return ""


@server.tool(annotations=READS)
def die() -> str:
    """Ends the server."""
    os._exit(3)


@server.tool(annotations=READS)
def long() -> str:
    """A long answer."""
    return "word " * 200_000


@server.tool(annotations=READS)
def secrets() -> str:
    """What keys the server was given."""
    return ",".join(sorted(name for name in os.environ if "KEY" in name))


@server.tool(annotations=READS)
def picture() -> Image:
    """A small image."""
    return Image(data=b"\x89PNG fake", format="png")


@server.tool(annotations=READS)
def weather(place: str) -> dict[str, int]:
    """The weather of a place, as numbers."""
    return {"degrees": len(place)}


@server.resource("notes://today")
def today() -> str:
    """What was noted today."""
    return "buy milk"


@server.prompt()
def sum_up(topic: str) -> str:
    """Asks for a summary."""
    return f"Sum up what is known of {topic}."


def many(number: int) -> None:
    """So many further tools."""
    for each in range(number):
        server.add_tool(total, name=f"total_{each}", description="Adds two numbers.", annotations=READS)


if __name__ == "__main__":
    mode = sys.argv[1] if len(sys.argv) > 1 else "stdio"
    if mode == "silent":
        time.sleep(3_600)
    elif mode == "flood":
        while True:
            os.write(1, b"x" * 65_536)
    elif mode == "broken":
        sys.exit(1)
    elif mode == "many":
        many(int(sys.argv[2]))
        server.run()
    elif mode == "http":
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        server.run()
