"""What is around a request, in a few lines for a small model: files, heads of named files, and what is not there.

    entries + request ──► name_files ──► what each named file is ──► describe ──► Surroundings
                                                    └──► pointers: files that name another file

Pure: a snapshot goes in, text comes out. `look` takes the snapshot.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from artoo.ports.surroundings import Surroundings
from artoo.tools.mentions import Mention, Use, mentions, occurs
from artoo.tools.nearby import Nearby, nearby
from artoo.tools.paths import printable, size_text
from artoo.tools.walk import Entry, Kind

LISTING_CHARACTERS = 1_200
"""The whole listing; a third for problems, a third for heads, the rest for the tree."""

MOST_NAMED = 8
_HEAD_LINES = 3
_LINE_CHARACTERS = 120
_MOST_TREE_LINES = 50
_ENDING = re.compile(r"[^.]\.[A-Za-z][A-Za-z0-9]{0,7}\Z")
_WANTS_COPY = re.compile(r"\b(copy|copies|backup|back-up|archived?)\b|副本|备份|拷贝", re.IGNORECASE)


class Where(Enum):
    """What became of a name in the request."""

    HERE = "here"
    OUTSIDE = "outside"
    BROKEN = "broken"
    ELSEWHERE = "elsewhere"
    NEW = "new"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Named:
    """A file that the request names. `path` is where it is, relative to the project, when it is here."""

    name: str
    where: Where
    path: str = ""
    target: str = ""
    near: Nearby = field(default_factory=Nearby)


@dataclass(frozen=True, slots=True)
class Head:
    """The first lines of a file, or in words why there are none. `whole`: the file has no other lines."""

    lines: tuple[str, ...] = ()
    instead: str | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The project as it was seen. Paths are relative to it; `broken` are links that lead nowhere.

    `outside` are named files that exist but not in the project (the workspace, absolute paths).
    """

    entries: tuple[Entry, ...]
    complete: bool = True
    broken: frozenset[str] = frozenset()
    outside: frozenset[str] = frozenset()
    heads: Mapping[str, Head] = field(default_factory=dict[str, Head])
    guide: str = ""


def named_in(request: str) -> tuple[Mention, ...]:
    """The files that the request names, as many as are looked at."""
    return mentions(request)[:MOST_NAMED]


def name_files(snapshot: Snapshot, request: str) -> tuple[Named, ...]:
    """What each file that the request names turned out to be."""
    by_path = {entry.path: entry for entry in snapshot.entries}
    return tuple(_named(mention, by_path, snapshot) for mention in named_in(request))


def _named(mention: Mention, by_path: Mapping[str, Entry], snapshot: Snapshot) -> Named:
    path = mention.name.removeprefix("./").rstrip("/")
    usable = [entry for entry in snapshot.entries if entry.path not in snapshot.broken]
    entry = by_path.get(path)
    if path in snapshot.broken and entry is not None:
        return Named(mention.name, Where.BROKEN, path, entry.target or "", nearby(path, usable))
    if entry is not None:
        return Named(mention.name, Where.HERE, path)
    if mention.name in snapshot.outside:
        return Named(mention.name, Where.OUTSIDE)
    if mention.use is Use.OUTPUT:
        return Named(mention.name, Where.NEW)
    near = nearby(path, usable)
    return Named(mention.name, Where.ELSEWHERE if near.same else Where.MISSING, near=near)


def describe(snapshot: Snapshot, request: str, characters: int = LISTING_CHARACTERS) -> Surroundings:
    """The surroundings of a request, the listing in at most `characters`."""
    named = name_files(snapshot, request)
    pointed = pointers(snapshot, named)
    points_to = tuple((printable(name), printable(path)) for name, path in pointed)
    third = characters // 3
    problems = _joined((*_problems(named), *(f"{name} names {path}" for name, path in points_to)), third)
    heads = _joined(_heads(named, [path for _, path in pointed], snapshot.heads), third)
    tree = _tree(snapshot, request, named, characters - len(problems) - len(heads) - 2)
    copies_count = _WANTS_COPY.search(request) is not None
    found = tuple((one.name, place) for one in named if (place := _found_at(one, copies=copies_count)))
    lost = {one.name for one in named if one.where in (Where.MISSING, Where.BROKEN)} - {name for name, _ in found}
    return Surroundings(
        listing="\n".join(filter(None, (tree, heads, problems))),
        missing=tuple(one.name for one in named if one.name in lost),
        found_elsewhere=found,
        guide=snapshot.guide,
        points_to=points_to,
        first_lines=tuple(
            (printable(path), _one_line(head.lines[0])) for path, head in snapshot.heads.items() if head.lines
        ),
    )


def pointers(snapshot: Snapshot, named: Iterable[Named]) -> tuple[tuple[str, str], ...]:
    """(name in the request, path of an existing file) for each line of a short named file that says just that.

    What has neither a directory nor an ending is a word, not a file's name.
    """
    said = [
        (one.name, path, text) for one in named for path in shown_paths(one) for text in _names_in(path, snapshot)
    ]
    if not said:
        return ()
    there = {entry.path for entry in snapshot.entries if entry.kind in (Kind.FILE, Kind.LINK)} - snapshot.broken
    found = ((name, path, _pointed_at(text, posixpath.dirname(path), there)) for name, path, text in said)
    return tuple(
        dict.fromkeys((name, target) for name, path, target in found if target is not None and target != path)
    )


def _names_in(path: str, snapshot: Snapshot) -> Iterator[str]:
    """Lines of a file that is shown whole which could be the name of a file."""
    head = snapshot.heads.get(path, Head())
    for line in head.lines if head.whole else ():
        text = line.strip()
        if len(text) <= _LINE_CHARACTERS and ("/" in text or _ENDING.search(text)):
            yield text


def _pointed_at(text: str, folder: str, there: Collection[str]) -> str | None:
    for path in (posixpath.normpath(text), posixpath.normpath(posixpath.join(folder, text))):
        if path in there:
            return path
    same = [path for path in there if posixpath.basename(path) == text]
    return same[0] if len(same) == 1 else None


def _found_at(one: Named, *, copies: bool) -> str | None:
    """Where a named input is instead. A copy is the thing itself only when the request asks for one."""
    if one.where not in (Where.MISSING, Where.BROKEN, Where.ELSEWHERE):
        return None
    places = one.near.same or (one.near.copies if copies else ())
    return printable(places[0]) if places else None


def _problems(named: Iterable[Named]) -> Iterator[str]:
    for one in named:
        name = printable(one.name)
        match one.where:
            case Where.MISSING:
                yield f"NOT HERE: {name}, named in the request. {_near(one.near)}"
            case Where.BROKEN:
                target = printable(one.target)
                yield f"BROKEN LINK: {name} points to {target}, which does not exist. {_near(one.near)}"
            case Where.ELSEWHERE:
                yield f"{name} is not here, but at: {', '.join(map(printable, one.near.same))}"
            case Where.NEW:
                yield f"{name} does not exist yet."
            case Where.HERE | Where.OUTSIDE:
                pass


def _near(near: Nearby) -> str:
    parts: list[str] = []
    for title, paths in (("Same name", near.same), ("Copy", near.copies), ("Similar", near.similar)):
        if paths:
            parts.append(f"{title}: {', '.join(map(printable, paths))}")
    return "; ".join(parts) or "Nothing similar is here."


def shown_paths(one: Named) -> tuple[str, ...]:
    """Paths below the project whose first lines say what a named file holds: itself, or what stands in for it."""
    if one.where is Where.HERE:
        return (one.path,)
    return (*one.near.same, *one.near.copies)[:1] if one.where in (Where.BROKEN, Where.ELSEWHERE) else ()


def _heads(named: Iterable[Named], pointed: Iterable[str], heads: Mapping[str, Head]) -> Iterator[str]:
    for path in dict.fromkeys((*(path for one in named for path in shown_paths(one)), *pointed)):
        head = heads.get(path)
        if head is None:
            continue
        if head.instead is not None:
            yield f"{printable(path)}: {head.instead}"
        else:
            lines = "\n".join(_one_line(line) for line in head.lines[:_HEAD_LINES])
            yield f"First lines of {printable(path)}:\n{lines}"


def _one_line(line: str) -> str:
    """A line of a file without what would disturb a prompt, cut where it is long."""
    plain = "".join(one if one.isprintable() or one == "\t" else " " for one in line.rstrip("\r\n"))
    return plain if len(plain) <= _LINE_CHARACTERS else plain[:_LINE_CHARACTERS] + "..."


def _tree(snapshot: Snapshot, request: str, named: Iterable[Named], characters: int) -> str:
    """Paths, most relevant first: named in the request, then shallow ones; hidden ones only when named.

    When everything fits, directories need no lines of their own. No numbers of files: they get taken for answers.
    """
    here = {one.path for one in named if one.path}
    visible = [entry for entry in snapshot.entries if entry.path in here or not _hidden(entry.path)]
    if not visible:
        return "The project directory is empty."
    ranked = sorted(
        visible, key=lambda entry: (entry.path not in here, not occurs(entry.name, request), entry.depth)
    )
    filled = {folder for entry in visible for folder in _parents(entry)}
    whole = [_tree_line(entry, filled, snapshot.broken) for entry in ranked if entry.path not in filled]
    text = "\n".join(("All files in the project directory:", *whole))
    if snapshot.complete and len(text) <= characters:
        return text
    lines = [_tree_line(entry, filled, snapshot.broken) for entry in ranked[:_MOST_TREE_LINES]]
    rest = () if len(lines) == len(ranked) and snapshot.complete else (_MORE,)
    return _joined(("Some of the files in the project directory:", *lines, *rest), characters)


def _tree_line(entry: Entry, filled: Collection[str], broken: frozenset[str]) -> str:
    path = printable(entry.path)
    match entry.kind:
        case Kind.DIRECTORY:
            return f"{path}/" if entry.path in filled else f"{path}/ (empty)"
        case Kind.LINK:
            state = ", broken" if entry.path in broken else ""
            return f"{path} (link to {printable(entry.target or '?')}{state})"
        case Kind.FILE:
            return f"{path} ({size_text(entry.size or 0)})"
        case Kind.OTHER:
            return f"{path} (not a file)"


def _parents(entry: Entry) -> Iterator[str]:
    parts = entry.path.split("/")[:-1]
    for depth in range(1, len(parts) + 1):
        yield "/".join(parts[:depth])


def _hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


def _joined(lines: Iterable[str], characters: int) -> str:
    """As many whole lines as fit; when some do not, the last one says so."""
    kept: list[str] = []
    room = characters - len(_MORE)
    for line in lines:
        if room < len(line) + 1:
            kept.append(_MORE)
            break
        kept.append(line)
        room -= len(line) + 1
    return "\n".join(kept)


_MORE = "... and more"
