"""Write the project listing for prompts from a snapshot, with character limits of tree, heads and whole files.

    entries + request ──► named_in: paths on disk that it contains ──► describe ──► Surroundings

These functions are pure: they write text from a snapshot of the project that `look` has taken.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, islice

from artoo.contracts.text import shortened
from artoo.ports.surroundings import Surroundings
from artoo.tools.files.paths import printable, size_text
from artoo.tools.files.suggest_paths import nearby
from artoo.tools.files.walk import EntryKind, WalkEntry

LISTING_CHARACTERS = 1_200
"""Maximum number of characters of the tree together with the facts about named files, which get at most a third of
it. The contents of files may have the same number in addition."""

WHOLE_CHARACTERS = 8_000
"""The limit that replaces it if files are shown whole. It is higher, because calls that read the files would cost
more."""

_TREE_CHARACTERS = 4_000
"""Maximum number of characters of the tree. The end of a longer tree is left out, because the planner can have a
folder listed before the work begins."""

MOST_NAMED = 8
MAX_REQUEST = 20_000
"""Number of characters of a request that are searched for names."""

_LONG_PATH = re.compile(r"(?:[\w.+@%=~-]+[/\\]){2,60}[\w.+@%=~-]*\w")
_MOST_INSIDE = 2
_TABLES = (".csv", ".tsv")
_MARKS = (",", ";", "\t", "|")
_LINE_CHARACTERS = 120
_MOST_TREE_LINES = 50
_SOME = 6
"""At most this many ignored files are named."""


@dataclass(frozen=True, slots=True)
class Head:
    """The first lines of a file (all lines, or at most three). If there are none, `instead` holds the reason.

    `whole`: true if `lines` is the whole file. `form`: the encoding and line ends of the file, if they are not
    UTF-8 and LF.
    """

    lines: tuple[str, ...] = ()
    instead: str | None = None
    whole: bool = False
    form: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The project at one moment, with paths relative to its root. `broken` are links whose target does not exist.
    `empty` and `unreadable` are directories. All other directories without entries contain only ignored files.

    `heads` are the beginnings of files that were read, by relative path. A file outside of the project has the name
    in the request as key. `ignored`: paths that an ignore file excludes. `missing`: paths of files that the request
    names and that do not exist.
    """

    entries: tuple[WalkEntry, ...]
    complete: bool = True
    broken: frozenset[str] = frozenset()
    empty: frozenset[str] = frozenset()
    unreadable: frozenset[str] = frozenset()
    ignored: tuple[str, ...] = ()
    heads: Mapping[str, Head] = field(default_factory=dict[str, Head])
    missing: tuple[str, ...] = ()


def named_in(snapshot: Snapshot, request: str) -> tuple[str, ...]:
    """Return the project paths that a request names, in the order of the request. It may name the whole path, or
    only its last part.

    Entries whose whole path is in the request come before entries that are named only by their last part.
    """
    # If the request contains any whole path, a directory also needs its whole path to count, because its last part
    # may be an ordinary word (`files`).
    text = request[:MAX_REQUEST]
    found = {path: (place, False) for path, place in _ends_of_paths(snapshot, text)}
    names = Counter(entry.name for entry in snapshot.entries if entry.kind is EntryKind.DIRECTORY)
    for entry in snapshot.entries:
        # The name of many directories, such as `tests`, names none of them.
        short = (entry.name,) if names[entry.name] < 2 or entry.kind is not EntryKind.DIRECTORY else ()
        for token in dict.fromkeys((entry.path, *short)):
            place = place_in(token, text)
            if place is not None:
                found.setdefault(entry.path, (place, token != entry.path))
                break
    whole = any(not by_name for _, by_name in found.values())
    directories = (
        {entry.path for entry in snapshot.entries if entry.kind is EntryKind.DIRECTORY}
        if whole
        else frozenset[str]()
    )
    kept = [path for path, (_, by_name) in found.items() if not (by_name and path in directories)]
    return tuple(sorted(kept, key=lambda path: (*found[path], path)))[:MOST_NAMED]


def _ends_of_paths(snapshot: Snapshot, text: str) -> Iterator[tuple[str, int]]:
    """Yield each project file that ends a longer path in `text`, with the position of that path.

    An error report names files where they were on another machine: `C:\\site-packages\\shop\\cart.py`."""
    files = {entry.path for entry in snapshot.entries if entry.kind is EntryKind.FILE}
    for match in _LONG_PATH.finditer(text):
        parts = re.split(r"[/\\]", match.group())
        ends = ("/".join(parts[at:]) for at in range(1, len(parts) - 1))
        longest = next((end for end in ends if end in files), None)
        if longest is not None:
            yield longest, match.start()


def place_in(token: str, text: str) -> int | None:
    """Return the position at which `token` stands alone in `text`, that is, without an adjacent letter, digit or
    other name character."""
    # In scripts without spaces, other text may directly follow an ASCII name.
    if len(token) < 2 or token not in text:
        return None
    found = re.search(rf"(?<![\w./\\-])(?:\./)?{re.escape(token)}(?![\w-]|/[\w.]|\.[A-Za-z0-9])", text, re.ASCII)
    return None if found is None else found.start()


def describe(snapshot: Snapshot, request: str, characters: int = LISTING_CHARACTERS) -> Surroundings:
    """Describe the project for a request. The tree and the text of named files have at most `characters` each."""
    named = named_in(snapshot, request)
    third = characters // 3
    facts = _joined(_broken(snapshot, named), third)
    heads = _whole_heads(snapshot.heads, characters)
    tree = _tree(snapshot, named, min(_TREE_CHARACTERS, characters - len(facts) - 1))
    about = "\n".join(filter(None, (heads, facts)))
    whole = (path for path, head in snapshot.heads.items() if head.whole)
    enough = not snapshot.missing and all(snapshot.heads.get(path, Head()).lines for path in named)
    return Surroundings(
        listing="\n".join(filter(None, (tree, about))),
        heads=heads,
        named=about if named and enough else "",
        whole=tuple(path for path in map(printable, whole) if f"All of {path}" in heads),
        missing=tuple(map(printable, snapshot.missing)),
    )


def inside(snapshot: Snapshot, named: Iterable[str]) -> Iterator[str]:
    """Yield the first two files of each named directory without subdirectories, because its files are mostly
    alike."""
    files = [entry.path for entry in snapshot.entries if entry.kind is EntryKind.FILE]
    trees = {posixpath.dirname(entry.path) for entry in snapshot.entries if entry.kind is EntryKind.DIRECTORY}
    for path in (path for path in named if path not in trees):
        yield from islice((file for file in files if posixpath.dirname(file) == path), _MOST_INSIDE)


def _broken(snapshot: Snapshot, named: Iterable[str]) -> Iterator[str]:
    targets = {entry.path: entry.target for entry in snapshot.entries if entry.path in snapshot.broken}
    usable = [entry for entry in snapshot.entries if entry.path not in targets]
    for path in named:
        if path in targets:
            target = printable(targets[path] or "?")
            near = ", ".join(map(printable, nearby(path, usable)))
            instead = f" Nearest: {near}" if near else ""
            yield f"BROKEN LINK: {printable(path)} points to {target}, which does not exist.{instead}"


def _whole_heads(heads: Mapping[str, Head], characters: int) -> str:
    """Write the beginnings of as many files as fit, followed by the names of the files that do not fit.

    Long lines are shortened only if the text does not fit otherwise, or if more of the file is left out anyway.
    """
    told = list[str]()
    for most in (characters, _LINE_CHARACTERS):
        told = [_head(path, head, most if head.whole else _LINE_CHARACTERS) for path, head in heads.items()]
        if sum(len(one) + 1 for one in told) <= characters:
            return "\n".join(told)
    ends = accumulate(len(one) + 1 for one in told)
    fit = sum(end <= characters - _UNSHOWN for end in ends)
    others = ", ".join(map(printable, list(heads)[fit:]))
    return "\n".join((*told[:fit], shortened(f"There is no room here for what is in: {others}", _UNSHOWN)))


def _head(path: str, head: Head, most: int) -> str:
    """Write the beginning of one file. `most`: maximum length of a line."""
    if head.instead is not None:
        return f"{printable(path)}: {head.instead}"
    lines = "\n".join(_one_line(line, most) for line in head.lines)
    cut = not head.whole or any(len(line) > most for line in head.lines)
    form = f" ({head.form})" if head.form else ""
    return f"{'First lines' if cut else 'All'} of {printable(path)}{form}{_columns(path, head)}:\n{lines}"


def _columns(path: str, head: Head) -> str:
    """Name the columns of a table and their separator, if the first line of the file names the columns."""
    if not path.lower().endswith(_TABLES) or not head.lines:
        return ""
    first = _one_line(head.lines[0])
    mark = max(_MARKS, key=first.count)
    columns = [name.strip() for name in first.split(mark)]
    if len(columns) < 2 or not all(columns) or any(name[0].isdigit() for name in columns):
        return ""
    split = "" if mark == "," else f" split by {mark!r}"
    return f" (columns{split}: {', '.join(columns)})"


def _one_line(line: str, most: int = _LINE_CHARACTERS) -> str:
    """Replace the unprintable characters of a file's line, which would disturb a prompt, and shorten a long
    line."""
    plain = "".join(one if one.isprintable() or one == "\t" else " " for one in line.rstrip("\r\n"))
    return plain if len(plain) <= most else plain[:most] + "..."


def _tree(snapshot: Snapshot, named: Collection[str], characters: int) -> str:
    """List paths. Paths that the request names come first, then the others by depth. A hidden path is listed only
    if the request names it.

    If everything fits, a directory whose entries are listed has no line of its own.
    """
    # The number of files is not mentioned, because a small model would take it for the answer.
    visible = [entry for entry in snapshot.entries if entry.path in named or not _hidden(entry.path)]
    if not visible:
        hidden = sorted({entry.path.partition("/")[0] for entry in snapshot.entries})
        some = ", ".join(map(printable, hidden[:_SOME])) + (", …" if len(hidden) > _SOME else "")
        return (
            f"The project directory has only hidden files ({some})."
            if hidden
            else "The project directory is empty."
        )
    ranked = sorted(visible, key=lambda entry: (entry.path not in named, entry.depth))
    filled = {folder for entry in visible for folder in _parents(entry)}
    whole = [_tree_line(entry, filled, snapshot) for entry in ranked if entry.path not in filled]
    text = "\n".join((f"All files in the project directory{_but_for(snapshot, len(visible))}:", *whole))
    if snapshot.complete and not snapshot.unreadable and len(text) <= characters:
        return text
    lines = [_tree_line(entry, filled, snapshot) for entry in ranked[:_MOST_TREE_LINES]]
    rest = () if len(lines) == len(ranked) and snapshot.complete else (_MORE,)
    return _joined(("Some of the files in the project directory:", *lines, *rest), characters)


def _but_for(snapshot: Snapshot, visible: int) -> str:
    """Name the files that the list of "all" files leaves out. A user who deletes or measures files must know of
    them."""
    if not snapshot.ignored and visible == len(snapshot.entries):
        return ""
    some = ", ".join(map(printable, snapshot.ignored[:_SOME]))
    more = ", …" if len(snapshot.ignored) > _SOME else ""
    return ", but for hidden and ignored ones" + (f" ({some}{more})" if some else "")


def _tree_line(entry: WalkEntry, filled: Collection[str], snapshot: Snapshot) -> str:
    path = printable(entry.path)
    match entry.kind:
        case EntryKind.DIRECTORY:
            return f"{path}/{_inside(entry.path, filled, snapshot)}"
        case EntryKind.LINK:
            state = ", broken" if entry.path in snapshot.broken else ""
            return f"{path} (link to {printable(entry.target or '?')}{state})"
        case EntryKind.FILE:
            return f"{path} ({size_text(entry.size or 0)})"
        case EntryKind.OTHER:
            return f"{path} (not a file)"


def _inside(directory: str, filled: Collection[str], snapshot: Snapshot) -> str:
    """Describe a directory of which no entries are listed. Return "" if the walk did not reach it."""
    if directory in snapshot.empty:
        return " (empty)"
    if directory in snapshot.unreadable:
        return " (cannot be read)"
    return " (hidden or ignored files only)" if snapshot.complete and directory not in filled else ""


def _parents(entry: WalkEntry) -> Iterator[str]:
    parts = entry.path.split("/")[:-1]
    for depth in range(1, len(parts) + 1):
        yield "/".join(parts[:depth])


def _hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


def _joined(lines: Iterable[str], characters: int) -> str:
    """Join as many whole lines as fit. If some lines do not fit, a last line says so. Room for it is reserved only
    in that case."""
    kept: list[str] = []
    whole = list(lines)
    room = characters - (len(_MORE) if sum(len(line) + 1 for line in whole) > characters else 0)
    for line in whole:
        if room < len(line) + 1:
            kept.append(_MORE)
            break
        kept.append(line)
        room -= len(line) + 1
    return "\n".join(kept)


_UNSHOWN = 200
"""Number of characters reserved for the names of the files whose beginnings do not fit."""
_MORE = "... and more"
