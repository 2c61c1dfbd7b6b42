"""Whether new files among a repository's objects are what they say: git takes names and indexes on trust."""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from artoo.ports.world import Files
from artoo.world.git_layout import read_file
from artoo.world.git_shadow import Shadow
from artoo.world.scan import Effect

_LOOSE = re.compile(r"objects/[0-9a-f]{2}/[0-9a-f]{38,62}")
_UNCHECKED = re.compile(r"objects/pack/(.*\.(bitmap|promisor)|multi-pack-index.*)")
_INDEX_START = b"\xfftOc\x00\x00\x00\x02"
_HASHES = {1: hashlib.sha1, 2: hashlib.sha256}
_FANOUT = 8 + 256 * 4
"""Where the names begin in an index of a pack: after the start and the counts by first byte."""


def unsound_objects(
    repository: Path,
    touched: Sequence[tuple[Effect, str]],
    shadows: tuple[Shadow, Shadow],
    looks: tuple[Files, Files],
) -> Iterator[str]:
    """What is wrong with new objects, packs and what speaks of them. `shadows`, `looks`: before and after.

    Raises CannotJudge, OSError.
    """
    after, will_be = looks[1], shadows[1]
    made = [inner for one, inner in touched if one.before is None and one.after is not None]
    loose = [repository / inner for inner in made if _LOOSE.fullmatch(inner)]
    if not all(is_loose_object(_content(path, after), path) for path in loose):
        yield "an object is not what its name says"
    if any(inner.startswith("objects/pack/") for inner in made) and not will_be.packs_hold():
        yield "a pack is not what it says"
    changed = [inner for one, inner in touched if one.after is not None and not one.after.is_directory]
    graphs = any(inner.startswith("objects/info/commit-graph") for inner in changed)
    if graphs and not will_be.graph_holds(repository / "objects" / "info", after):
        yield "the graph of commits is not what the commits say"
    reverse = [repository / inner for inner in changed if inner.endswith(".rev")]
    if not all(
        is_reverse_index(_content(path, after), _content(path.with_suffix(".idx"), after)) for path in reverse
    ):
        yield "an index of a pack is not what the pack says"
    times = [repository / inner for inner in changed if inner.endswith(".mtimes")]
    if any(_UNCHECKED.fullmatch(inner) for inner in changed) or not all(
        _tells_times(path, repository / "objects", shadows[0], looks) for path in times
    ):
        yield "what git would believe about its packs cannot be checked"


def _content(path: Path, files: Files) -> bytes | None:
    place = files.at(path)
    return None if place is None else read_file(place)


def is_loose_object(content: bytes | None, path: Path) -> bool:
    """Whether an object file holds what the last two names of its path say."""
    if content is None:
        return False
    name = path.parent.name + path.name
    total = hashlib.sha1(usedforsecurity=False) if len(name) == 40 else hashlib.sha256()
    unpack = zlib.decompressobj()
    try:
        data = content
        while data or not unpack.eof:
            piece = unpack.decompress(data, 1 << 20)
            total.update(piece)
            data = unpack.unconsumed_tail
            if unpack.eof or (not piece and not data):
                break
    except zlib.error:
        return False
    return unpack.eof and total.hexdigest() == name


def is_reverse_index(content: bytes | None, index: bytes | None) -> bool:
    """Whether it says in which order the objects of an index stand in the pack. gitformat-pack(5)."""
    if content is None or index is None or content[:8] != b"RIDX\0\0\0\1":
        return False
    kind = _HASHES.get(int.from_bytes(content[8:12]))
    if kind is None or not index.startswith(_INDEX_START):
        return False
    width = kind().digest_size
    count = int.from_bytes(index[_FANOUT - 4 : _FANOUT])
    start = _FANOUT + count * (width + 4)
    try:
        short = struct.unpack_from(f">{count}I", index, start)
        offsets = [_offset(index, one, start + count * 4) for one in short]
    except struct.error:
        return False
    order = sorted(range(count), key=offsets.__getitem__)
    body = content[:12] + struct.pack(f">{count}I", *order) + index[-2 * width : -width]
    return content == body + kind(body).digest()


def _offset(index: bytes, told: int, far: int) -> int:
    """Where an object begins; beyond 2 GiB a second table, at `far`, has it. Raises struct.error."""
    return struct.unpack_from(">Q", index, far + (told & 0x7FFFFFFF) * 8)[0] if told >> 31 else told


def _tells_times(path: Path, objects: Path, was: Shadow, looks: tuple[Files, Files]) -> bool:
    """Whether no object is told to be older than it was: git collects by these times what no name reaches. Of one
    that was in a pack before, nobody knows."""
    content, index = _content(path, looks[1]), _content(path.with_suffix(".idx"), looks[1])
    if content is None or index is None or content[:8] != b"MTME\0\0\0\1":
        return False
    kind = _HASHES.get(int.from_bytes(content[8:12]))
    if kind is None or not index.startswith(_INDEX_START):
        return False
    width, count = kind().digest_size, int.from_bytes(index[_FANOUT - 4 : _FANOUT])
    told = content[12 : 12 + 4 * count]
    body = content[:12] + told + index[-2 * width : -width]
    if content != body + kind(body).digest() or len(told) != 4 * count:
        return False
    known = was.objects()
    for number, time in enumerate(struct.unpack(f">{count}I", told)):
        name = index[_FANOUT + number * width : _FANOUT + (number + 1) * width].hex()
        place = looks[0].at(objects / name[:2] / name[2:])
        if time < int(place.lstat().st_mtime) if place is not None else name in known:
            return False
    return True
