"""An MCP server that bends the protocol, without any library: run as `python odd_mcp_server.py`."""

from __future__ import annotations

import json
import sys
from typing import Any

SCHEMA = {"type": "object", "properties": {"kind": {"type": "string"}}}
TOOLS: list[object] = [
    {"name": "echo", "inputSchema": SCHEMA, "outputSchema": {"type": "object", "required": ["never"]}},
    {"name": "bare", "description": "has no input schema"},
    {"name": "odd", "inputSchema": SCHEMA, "annotations": "yes", "description": 7},
    {"name": "untyped", "inputSchema": {}},
    {"name": "reference", "inputSchema": {"$ref": "#/$defs/A", "$defs": {"A": SCHEMA}}},
    {"name": "nullable", "inputSchema": {"type": ["object", "null"], "properties": None, "required": "kind"}},
    {"name": "listed", "inputSchema": {"type": "object", "properties": ["kind"]}},
    {"description": "has no name"},
    "no tool at all",
]
TEXT = {"type": "text", "text": "heard"}
RESULTS: dict[str, object] = {
    "resource": {"content": [{"type": "resource", "resource": {"uri": "file:///y", "text": "inner"}}, TEXT]},
    "link": {"content": [{"type": "resource_link", "uri": "file:///x", "name": "notes"}, TEXT]},
    "unknown": {"content": [{"type": "video", "data": "abc"}, TEXT]},
    "list": {"content": [], "structuredContent": ["a", 1]},
    "object": {"content": [], "structuredContent": {"said": "heard"}},
    "nothing": {},
    "null": {"content": None, "isError": None},
    "image": {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]},
    "error": {"content": [TEXT], "isError": True},
}


def answer(method: str, params: dict[str, Any]) -> object:
    """Return the result of a request."""
    if method == "initialize":
        about = {"name": "odd", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": TOOLS}
    return RESULTS.get(params["arguments"]["kind"], {"content": [TEXT]})


for line in sys.stdin:
    asked: dict[str, Any] = json.loads(line)
    if asked.get("method") in ("initialize", "tools/list", "tools/call"):
        found = answer(asked["method"], asked.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": found}), flush=True)
    elif "id" in asked:
        refused = {"code": -32601, "message": "Method not found"}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": refused}), flush=True)
