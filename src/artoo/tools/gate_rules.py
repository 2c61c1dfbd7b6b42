"""Law 1 for effects that are not files: pure functions that say why an act needs a yes, or None."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Collection, Iterable, Mapping


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


def ask_about_host(host: str, allowed: Collection[str]) -> str | None:
    """Why a connection to `host` needs a yes. `allowed` holds exact host names, or `*.domain` for its subdomains.

    Addresses of this machine and of private networks are never covered by a wildcard.
    """
    plain = host.strip().rstrip(".").casefold().strip("[]")
    if any(plain == entry.casefold() for entry in allowed):
        return None
    if not _is_address(plain) and any(
        entry.startswith("*.") and plain.endswith(entry[1:].casefold()) for entry in allowed
    ):
        return None
    return f"a connection to {host}"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return True


def ask_about_recipients(recipients: Iterable[str], known: Collection[str]) -> str | None:
    """Why a message needs a yes. `known` are the recipients that the person's own request names."""
    own = {address.casefold() for address in known}
    listed = list(recipients)
    strange = [address for address in listed if address.casefold() not in own]
    if strange:
        return f"a message to {', '.join(listed)}; not named in the request: {', '.join(strange)}"
    return f"a message to {', '.join(listed)}" if listed else "a message without a named recipient"


def first_seen_in(target: str, request: str, sources: Mapping[str, str]) -> str | None:
    """The source (file, page, mail, tool output) in which a target, host or recipient first appeared.

    None when the person's own request names it, or nothing does. `sources` maps a name to its text, oldest first.
    """
    wanted = target.casefold()
    if not wanted or wanted in request.casefold():
        return None
    return next((name for name, text in sources.items() if wanted in text.casefold()), None)
