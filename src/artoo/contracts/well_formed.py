"""Text that UTF-8 can carry (*well-formed*, in Unicode's word). Python's need not be: a file name that is not UTF-8
comes with its bytes as lone surrogates, and text that was cut in the middle of an emoji ends with half of it. No
message, page or model can be given those.
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
