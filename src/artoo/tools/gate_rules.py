"""Law 1 for effects that are not files: pure functions that say why an act needs a yes, or None.

What the act is stands in the question already, argument by argument: a reason does not say it again.
"""

from __future__ import annotations


def ask_about_mcp(server: str, name: str, *, trusted: bool, read_only_hint: bool) -> str | None:
    """Why a call of an MCP tool needs a yes: unless it says that it only reads, and the person trusts its word.

    `trusted`: the person's own configuration says so of this server (`trustReadOnly`). What a tool is called and
    what it is given prove nothing either way.
    """
    if trusted and read_only_hint:
        return None
    if read_only_hint:
        said = "that it only reads is the server's word (trustReadOnly in the configuration believes it)"
    else:
        said = "the server does not say that it only reads"
    return f"{server}.{name}: {said}"


def ask_about_script(language: str) -> str:
    """AppleScript and Shortcuts act on other programs, where nothing can be staged: they always need a yes."""
    return f"{language} acts on other programs and cannot be staged"
