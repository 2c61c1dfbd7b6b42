"""Law 1 for effects that are not files: pure functions that say why an act needs a yes, or None.

No list of harmless names is trusted beyond what it says: a server's hint that a tool only reads is believed only
when nothing in the call speaks against it.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Collection, Iterable, Mapping

_WRITING_VERBS = frozenset(
    {
        *("add", "append", "apply", "approve", "archive", "assign", "book", "buy", "cancel", "change", "checkout"),
        *(
            "clear",
            "close",
            "commit",
            "copy",
            "create",
            "deactivate",
            "delete",
            "deploy",
            "destroy",
            "disable",
            "drop",
        ),
        *("edit", "empty", "enable", "erase", "exec", "execute", "export", "forward", "grant", "import", "insert"),
        *(
            "install",
            "invite",
            "kill",
            "lock",
            "mail",
            "mark",
            "merge",
            "modify",
            "move",
            "mutate",
            "order",
            "overwrite",
        ),
        *(
            "patch",
            "pay",
            "post",
            "publish",
            "purge",
            "push",
            "put",
            "reboot",
            "refund",
            "rename",
            "replace",
            "reply",
        ),
        *("reset", "restart", "restore", "revoke", "run", "save", "schedule", "send", "set", "share", "shutdown"),
        *(
            "sign",
            "start",
            "stop",
            "submit",
            "terminate",
            "transfer",
            "trash",
            "truncate",
            "unlink",
            "update",
            "upload",
        ),
        *("upsert", "wipe", "write"),
    }
)
_WRITING_STATEMENT = re.compile(
    r"\b(insert\s+into|update\s+\S+\s+set|delete\s+from|merge\s+into|replace\s+into|truncate|drop|alter|create|grant"
    r"|revoke|vacuum|attach|detach|pragma|copy|call|exec(ute)?|do\s+\$|lock\s+table|set\s+(global|role|session)"
    r"|reindex|rename|load_file|into\s+outfile|pg_\w*(terminate|cancel|write|unlink)\w*|lo_(import|export|unlink)"
    r"|mutation\b|rm\s+-|curl\b|wget\b)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def ask_about_mcp(
    server: str, name: str, arguments: Mapping[str, object], *, read_only_hint: bool, destructive_hint: bool = False
) -> str | None:
    """Why a call of an MCP tool needs a yes. A `readOnlyHint` is a claim: the call itself may contradict it."""
    call = f"{server}.{name}({json.dumps(dict(arguments), ensure_ascii=False, sort_keys=True, default=str)})"
    if destructive_hint:
        return f"{call}: the server says that it destroys"
    if not read_only_hint:
        return f"{call}: the server does not say that it only reads"
    verbs = _WRITING_VERBS & {word.lower() for word in _WORD.findall(name)}
    if verbs:
        return f"{call}: its name says {', '.join(sorted(verbs))}, whatever the server claims"
    for text in _texts(arguments):
        statement = _WRITING_STATEMENT.search(text)
        if statement:
            return f"{call}: its input says {statement.group(0)!r}, whatever the server claims"
    return None


def _texts(value: object) -> Iterable[str]:
    """All text inside a JSON-like value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from _texts(inner)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, list | tuple):
        for inner in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _texts(inner)  # pyright: ignore[reportUnknownArgumentType]


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
