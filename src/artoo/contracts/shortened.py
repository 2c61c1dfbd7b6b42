"""Shorten long texts for short places: cut between words, and visibly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

CUT = "…"
# Fewer characters are not worth the line that says so, and what stood there would be asked for.
_LEAST_LEFT_OUT = 200


def shortened(text: str, limit: int) -> str:
    """Return the beginning of a text in at most `limit` characters; a longer text ends at a word, with `…`.

    A single word that is longer than that (a path, a line of Chinese) is cut where the room ends.
    """
    if len(text) <= limit:
        return text
    kept = text[: limit - len(CUT)]
    whole = kept if text[len(kept)].isspace() else kept[: _last_space(kept) + 1]
    return f"{(whole.rstrip() or kept)}{CUT}"


def last_part(text: str, limit: int) -> str:
    """Return the end of a text in at most `limit` characters, from a word on. Programs print errors last."""
    if len(text) <= limit:
        return text
    kept = text[len(CUT) - limit :]
    pieces = kept.split(maxsplit=1)
    begins_a_word = kept[:1].isspace() or text[-len(kept) - 1].isspace()
    whole = kept if begins_a_word or len(pieces) < 2 else pieces[1]
    return f"{CUT}{whole.lstrip()}"


def without_middle(text: str, limit: int) -> str:
    """Return beginning and end of a text in about `limit` characters, cut between lines, else between words.

    A line between them says how many characters are left out; a text that is only a little longer stays whole.
    """
    if len(text) <= limit + _LEAST_LEFT_OUT:
        return text
    half = limit // 2
    head, tail = text[:half], text[len(text) - half :]
    head = head[: _last_break(head, half // 2)]
    tail = tail[len(tail) - _last_break(tail[::-1], half // 2) :]
    return f"{head}\n[… {len(text) - len(head) - len(tail)} characters left out …]\n{tail}"


def listed(paths: Collection[str], most: int = 20) -> str:
    """List the paths in a line; if they are more than `most`, list directories instead.

    The directories have the number of their paths, and are as few and as deep as there is room for: `setup.cfg,
    .venv/bin/ (12 paths), .venv/lib/ (1031 paths)`.

    Where there are too many next to each other for that, the first ones are named, and how many more there are.
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
    """Return what is in a directory, and which paths are there. Directories end with a slash, also the given."""
    found = defaultdict[str, list[str]](list)
    for path in paths:
        name, slash, _ = path.removeprefix(directory).partition("/")
        found[f"{directory}{name}{slash}"].append(path)
    return found


def _last_break(text: str, least: int) -> int:
    """Return where a text may end, not before `least`: at its last line end, else its last space, else its end."""
    line_end = text.rfind("\n")
    space = line_end if line_end > least else _last_space(text)
    return space if space > least else len(text)


def _last_space(text: str) -> int:
    return max((place for place, each in enumerate(text) if each.isspace()), default=-1)


def set_off(text: str) -> str:
    """Put a blank before every line, so that no text passes for a heading of a record, which has none."""
    return "\n".join(f" {line}" for line in text.splitlines())
