"""Law 1 for effects that are not files: pure functions that say why an act needs a yes, or None."""

from __future__ import annotations

import json
from collections.abc import Mapping


def ask_about_mcp(
    server: str, name: str, arguments: Mapping[str, object], *, trusted: bool, read_only_hint: bool
) -> str | None:
    """Why a call of an MCP tool needs a yes: unless it says that it only reads, and the person trusts its word.

    `trusted`: the person's own configuration says so of this server (`trustReadOnly`). What a tool is called and
    what it is given prove nothing either way.
    """
    if trusted and read_only_hint:
        return None
    call = f"{server}.{name}({json.dumps(dict(arguments), ensure_ascii=False, sort_keys=True, default=str)})"
    if not read_only_hint:
        return f"{call}: the server does not say that it only reads"
    return f"{call}: that it only reads is the server's word (trustReadOnly in the configuration believes it)"


def ask_about_script(language: str, script: str) -> str:
    """AppleScript and Shortcuts act on other programs, where nothing can be staged: they always need a yes."""
    return f"{language} acts on other programs and cannot be staged: {script}"
