"""The names of built-in tools, and the validation of tool names in settings."""

from __future__ import annotations

from collections.abc import Iterable

from artoo.contracts.errors import ConfigurationError

BUILTIN_NAMES = (
    "shell",
    "process",
    "python",
    "read_file",
    "write_file",
    "edit_file",
    "find_files",
    "search_text",
    "web_search",
    "web_fetch",
    "send_mail",
    "ask_agent",
    "mdfind",
    "applescript",
    "shortcuts",
)
"""The names of all built-in tools of artoo on every platform."""

_OLD_NAMES = ("find_text", "glob", "search")
"""Names that tools had in the first version. Settings of agents may still forbid them."""

_WITH_PARTS = ("shell", "mcp")


def check_identities(names: Iterable[str]) -> None:
    """Validate tool names in settings. Raises ConfigurationError for a name that no call can have."""
    for name in names:
        tool, colon, part = name.partition(":")
        if not (tool in _WITH_PARTS and part if colon else tool in (*BUILTIN_NAMES, *_OLD_NAMES)):
            raise ConfigurationError(
                f"there is no tool {name!r}, so this would prohibit nothing; there are: "
                f"{', '.join(BUILTIN_NAMES)}; shell:PROGRAM for one program, mcp:SERVER:TOOL for a server's"
            )
