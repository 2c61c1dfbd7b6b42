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
# Fewer characters are never left out, because the line that reports the cut needs room, too, and a model would
# ask for the missing text.
_LEAST_LEFT_OUT = 200


def shortened(text: str, limit: int) -> str:
    """Return the beginning of a text in at most `limit` characters; a longer text ends at a word, with `…`.

    A single word that is longer than the limit (a path, a line of Chinese) is cut at the limit.
    """
    if len(text) <= limit:
        return text
    kept = text[: limit - len(CUT)]
    whole = kept if text[len(kept)].isspace() else kept[: _last_space(kept) + 1]
    return f"{(whole.rstrip() or kept)}{CUT}"


def last_part(text: str, limit: int) -> str:
    """Return the end of a text in at most `limit` characters, starting at a word, because errors are printed
    last."""
    if len(text) <= limit:
        return text
    kept = text[len(CUT) - limit :]
    pieces = kept.split(maxsplit=1)
    begins_a_word = kept[:1].isspace() or text[-len(kept) - 1].isspace()
    whole = kept if begins_a_word or len(pieces) < 2 else pieces[1]
    return f"{CUT}{whole.lstrip()}"


def without_middle(text: str, limit: int) -> str:
    """Return beginning and end of a text in about `limit` characters, cut between lines or, failing that, words.

    A line between them says how many characters are left out. A text that is only slightly longer stays whole."""
    if len(text) <= limit + _LEAST_LEFT_OUT:
        return text
    half = limit // 2
    head, tail = text[:half], text[len(text) - half :]
    head = head[: _last_break(head, half // 2)]
    tail = tail[len(tail) - _last_break(tail[::-1], half // 2) :]
    return f"{head}\n[… {len(text) - len(head) - len(tail)} characters left out …]\n{tail}"


def listed(paths: Collection[str], most: int = 20) -> str:
    """List the paths in a line; if they are more than `most`, list directories instead.

    The directories are listed with the number of their paths, and as deep as the room allows: `setup.cfg,
    .venv/bin/ (12 paths), .venv/lib/ (1031 paths)`.

    If one directory has too many entries, the first entries are listed with the number of the others.
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
    """Return the entries of a directory, each with its paths. All directories, including `directory`, end with
    `/`."""
    found = defaultdict[str, list[str]](list)
    for path in paths:
        name, slash, _ = path.removeprefix(directory).partition("/")
        found[f"{directory}{name}{slash}"].append(path)
    return found


def _last_break(text: str, least: int) -> int:
    """Return the place for a cut: the last line end after `least`, or the last space after it, or the text's
    end."""
    line_end = text.rfind("\n")
    space = line_end if line_end > least else _last_space(text)
    return space if space > least else len(text)


def _last_space(text: str) -> int:
    return max((place for place, each in enumerate(text) if each.isspace()), default=-1)


def set_off(text: str) -> str:
    """Indent every line by a blank, so that no line looks like a heading of a record, which is not indented."""
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
