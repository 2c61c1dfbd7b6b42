"""Lines that are no messages of any protocol over JSON-RPC."""

from __future__ import annotations

import json


def malformed(number: int) -> bytes:
    """Ways to be no message, by number: broken JSON, no object, missing and wrong members."""
    forms: list[object] = [
        [],
        "text",
        number,
        None,
        {"jsonrpc": "1.0", "id": f"bad-{number}", "method": "ping"},
        {"id": f"bad-{number}", "method": "ping"},
        {"jsonrpc": "2.0", "id": number + 0.5, "method": "ping"},
        {"jsonrpc": "2.0", "id": [number], "method": "ping"},
        {"jsonrpc": "2.0", "id": f"bad-{number}", "method": number},
        {"jsonrpc": "2.0", "id": f"bad-{number}", "method": "ping", "params": [number]},
        {"jsonrpc": "2.0", "id": f"bad-{number}"},
    ]
    broken = [b"{", b"\xff\xfe\x00", b'{"a":' * (number % 40 + 1), b"nonsense", b'{"jsonrpc":"2.0",']
    every = [*broken, *(json.dumps(form).encode() for form in forms)]
    return every[number % len(every)]
