"""Replace lone surrogates in text and JSON, so that UTF-8 can encode it.

Python's strings may contain lone surrogates: for the bytes of a file name that is not UTF-8, or as half an emoji at
the end of cut text. Messages, pages and models accept none.
"""

from __future__ import annotations

import json
import re

_LONE = re.compile("[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """Return `text` with bytes that are not UTF-8 written as `\\xe9`, and other lone surrogates as `?`."""
    return text if text.isascii() else _LONE.sub(lambda found: _written(found[0]), text)


def well_formed_json(raw: bytes | str) -> object:
    """Return the value of a JSON text with well-formed strings. Raises ValueError for text that is not JSON.

    Most languages write half a cut character as `"\\ud83d"`, for which strict readers refuse the whole message.
    """
    try:
        return well_formed_value(json.loads(raw))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def well_formed_value(value: object) -> object:
    """Return a JSON value with all its strings made well formed."""
    said = json.dumps(value, ensure_ascii=False)
    if said.isascii() or _LONE.search(said) is None:
        return value
    return json.loads(_LONE.sub(lambda found: json.dumps(_written(found[0]))[1:-1], said))


def _written(surrogate: str) -> str:
    byte = ord(surrogate) - 0xDC00
    return f"\\x{byte:02x}" if 0x80 <= byte <= 0xFF else "?"
