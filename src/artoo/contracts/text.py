"""Cut long texts between words, with `…`, and replace lone surrogates, which UTF-8 cannot encode.

Python's strings may contain lone surrogates: for the bytes of a file name that is not UTF-8, or as half an emoji at
the end of cut text. Messages, pages and models accept none.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection

CUT = "…"
# Minimum number of characters that are left out. The line that reports the omission needs room too, and a model
# would ask for the missing text.
_LEAST_LEFT_OUT = 200


def shortened(text: str, limit: int) -> str:
    """Return the beginning of a text in at most `limit` characters. If the text is longer, it ends at a word,
    followed by `…`.

    A single word that is longer than the limit (such as a path, or a line of Chinese) is cut at the limit.
    """
    if len(text) <= limit:
        return text
    kept = text[: limit - len(CUT)]
    whole = kept if text[len(kept)].isspace() else kept[: _last_space(kept) + 1]
    return f"{(whole.rstrip() or kept)}{CUT}"


def last_part(text: str, limit: int) -> str:
    """Return the end of a text in at most `limit` characters, beginning at a word. The end is used because errors
    are printed last."""
    if len(text) <= limit:
        return text
    kept = text[len(CUT) - limit :]
    pieces = kept.split(maxsplit=1)
    begins_a_word = kept[:1].isspace() or text[-len(kept) - 1].isspace()
    whole = kept if begins_a_word or len(pieces) < 2 else pieces[1]
    return f"{CUT}{whole.lstrip()}"


def without_middle(text: str, limit: int) -> str:
    """Return the beginning and the end of a text in about `limit` characters. The text is cut between lines, or
    between words if that is not possible.

    A line between both parts says how many characters are left out. A text that is only a little longer is not
    shortened."""
    if len(text) <= limit + _LEAST_LEFT_OUT:
        return text
    half = limit // 2
    head, tail = text[:half], text[len(text) - half :]
    head = head[: _last_break(head, half // 2)]
    tail = tail[len(tail) - _last_break(tail[::-1], half // 2) :]
    return f"{head}\n[… {len(text) - len(head) - len(tail)} characters left out …]\n{tail}"


def listed(paths: Collection[str], most: int = 20) -> str:
    """List paths in one line. If there are more than `most`, list directories instead.

    Each directory is listed with the number of its paths. The directories are as deep as there is room for:
    `setup.cfg, .venv/bin/ (12 paths), .venv/lib/ (1031 paths)`.

    If a single directory has too many entries, its first entries are listed with the number of the others.
    """
    distinct = list(dict.fromkeys(paths))
    shown = {path: [path] for path in distinct} if len(distinct) <= most else _inside("", distinct)
    inside = {"": shown}
    while True:
        inside |= {name: _inside(name, each) for name, each in shown.items() if each[1:] and name not in inside}
        fits = [name for name, each in shown.items() if each[1:] and len(shown) + len(inside[name]) - 1 <= most]
        if not fits:
            break
        opened = min(fits, key=lambda name: len(inside[name]))
        shown = dict(
            each for name in shown for each in (inside[name] if name == opened else {name: shown[name]}).items()
        )
    told = [f"{name} ({len(each)} paths)" if each[1:] else each[0] for name, each in shown.items()]
    more = len(told) - most
    return ", ".join((*told[:most], *([f"and {more} more"] if more > 0 else [])))


def _inside(directory: str, paths: Collection[str]) -> dict[str, list[str]]:
    """Return the entries of a directory, each with the paths in it. All directories, including `directory`, end
    with `/`."""
    found = defaultdict[str, list[str]](list)
    for path in paths:
        name, slash, _ = path.removeprefix(directory).partition("/")
        found[f"{directory}{name}{slash}"].append(path)
    return found


def _last_break(text: str, least: int) -> int:
    """Return the position at which a text is cut. It is the last line end after `least`, or the last space after
    it, or the end of the text."""
    line_end = text.rfind("\n")
    space = line_end if line_end > least else _last_space(text)
    return space if space > least else len(text)


def _last_space(text: str) -> int:
    return max((place for place, each in enumerate(text) if each.isspace()), default=-1)


def set_off(text: str) -> str:
    """Indent every line by one blank, so that no line looks like a heading of a record. Headings are not
    indented."""
    return "\n".join(f" {line}" for line in text.splitlines())


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
