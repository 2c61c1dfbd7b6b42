"""Tags and pairs of memory, with the prefixes, word counts and lengths of slugs and labels.

Tags are the only keys by which memory stores and finds experience. Reference: paper, section 6.2.

    macro    intent:<kind>    / env:local        one per terminal state
    micro    tool:<identity>  / path:<target>    one per blocked or matched pair, where it was (see `placed`)
    wide     tool:<identity>  / env:local        the same lesson beyond one target
    kind     tool:<identity>  / intent:<kind>    the same lesson for one kind of request
    request  request:<kind>   / env:local        the words of a request of this kind (level K)
    thing    thing:<slug>     / env:local        where a named thing was found (level K; see there)

Code that writes and code that reads both call these functions. No other code builds a tag.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from artoo.contracts.text import well_formed

SLUG_WORDS = 3
# Maximum number of words in the label of a kind of request.
LABEL_WORDS = 4
_LABEL_LENGTH = 96
WORD_LENGTH = 32
# Number of characters of a text that are read. The beginning of a request says what it is about.
READ_LENGTH = 4_096
TAG_LENGTH = 8_192
LOCAL = "env:local"
CELL_6 = "cell:6"

_WIDE_SCRIPTS = (  # the numbers are in ascending order
    (0x3040, 0x30FF),  # kana
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x323AF),
)


class Pair(NamedTuple):
    """A pair of tags (space, entity). Memory computes two potentials for each pair."""

    space: str
    entity: str

    def __str__(self) -> str:
        return f"{self.space} {self.entity}"


def slug(text: str) -> str:
    """Return the first three words of a text in lower case, joined by underscores.

    Scripts without spaces are read in pairs of characters, because most Chinese words have two characters. The slug
    is never empty. It has at most 98 letters, marks, digits and underscores, so that it is safe in a tag, a key and
    a file name. For text without a word it is a short digest, and for blank text it is `none`."""
    return _joined(text, SLUG_WORDS)


def label(text: str) -> str:
    """Return the label of a kind of request. It is like `slug`, but has up to four words. The label of a label is
    the same label."""
    return _joined(text, LABEL_WORDS)[:_LABEL_LENGTH].rstrip("_")


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text in the form that slugs and labels use. Each word is returned once, in order."""
    return tuple(dict.fromkeys(_words(_fold(text[:READ_LENGTH]))))


def _joined(text: str, most: int) -> str:
    folded = _fold(text[:READ_LENGTH])
    words = list(islice(_words(folded), most))
    if words:
        return "_".join(words)
    rest = "".join(folded.split())
    return "x" + hashlib.sha256(rest.encode("utf-8", "surrogatepass")).hexdigest()[:12] if rest else "none"


def macro_pair(kind: str) -> Pair:
    """Return the pair of a kind of request in the local environment."""
    return Pair(f"intent:{label(kind)}", LOCAL)


def request_pair(kind: str) -> Pair:
    """Return the pair under which the texts of requests of one kind are stored."""
    return Pair(f"request:{label(kind)}", LOCAL)


def label_of(pair: Pair) -> str | None:
    """Return the kind of request that a pair is about. Return None for any other pair."""
    for tag in (pair.space, pair.entity):
        family, _, name = tag.partition(":")
        if family in ("intent", "request"):
            return name
    return None


def relabelled(pair: Pair, old: str, new: str) -> Pair:
    """Return a pair in which the kind `old` is replaced by `new`."""
    tags = {f"{family}:{old}": f"{family}:{new}" for family in ("intent", "request")}
    return Pair(tags.get(pair.space, pair.space), tags.get(pair.entity, pair.entity))


def micro_pair(identity: str, target: str) -> Pair:
    """Return the pair of one tool on one target. A tag that is longer than 8,192 characters is shortened to its
    beginning and a digest."""
    return Pair(_bounded(f"tool:{identity}"), _bounded(f"path:{target}"))


def placed(pair: Pair, project: str) -> Pair:
    """Return a pair with a target in the form in which memory stores it. The path of the project precedes the
    target, because a file name or a command means something else in another project. Absolute paths, URLs and all
    other pairs are unchanged."""
    target = target_of(pair)
    if not target or not project or target.startswith(("/", "~")) or _is_address(target):
        return pair
    return Pair(pair.space, _bounded(f"{_below(project)}{target}"))


def here(pair: Pair, project: str) -> Pair | None:
    """Return a pair from memory in the form that tools in `project` use. Return None if it is about another
    project."""
    target = target_of(pair)
    if target is None or not project or _is_address(target):
        return pair
    below = _below(project)
    return pair._replace(entity=f"path:{pair.entity[len(below) :]}") if pair.entity.startswith(below) else None


def tool_pair(identity: str) -> Pair:
    """Return the pair of a tool for any target."""
    return Pair(_bounded(f"tool:{identity}"), LOCAL)


def kind_pair(identity: str, kind: str) -> Pair:
    """Return the pair of a tool for one kind of request and any target."""
    return kind_of(tool_pair(identity), macro_pair(kind))


def kind_of(wide: Pair, macro: Pair) -> Pair:
    """Return the pair of the tool in `wide` for the kind of request in `macro`."""
    return Pair(wide.space, macro.space)


def pair_named(text: str) -> Pair:
    """Parse a pair in the form in which people write it: `SPACE ENTITY`, `tool:NAME` (any target), or the label of
    a kind."""
    space, _, entity = text.partition(" ")
    if ":" in space and ":" in entity:
        return Pair(space, entity)
    if not entity and space.startswith(("tool:", "intent:", "thing:")):
        return Pair(space, LOCAL)
    return macro_pair(text)


def thing_pair(name: str, project: str = "") -> Pair:
    """Return the pair for the place of a named thing in a project. If `project` is empty, the thing is outside of
    all projects. Each project has pairs of its own, because the same name may mean something else in another
    project."""
    return Pair(_bounded(f"thing:{slug(name)}{'@' if project else ''}{project}"), LOCAL)


def doubt_pair(kind: str) -> Pair:
    """Return the pair under which rounds of the paper's cell 6 are stored for one kind of request."""
    return Pair(CELL_6, macro_pair(kind).space)


def tool_of(pair: Pair) -> str | None:
    """Return the tool identity that a pair is about. Return None for any other pair."""
    return pair.space.removeprefix("tool:") if pair.space.startswith("tool:") else None


def is_wide(pair: Pair) -> bool:
    """Return whether a pair is about a tool in general, for any target and any kind of request."""
    return pair.space.startswith("tool:") and pair.entity == LOCAL


def is_kind(pair: Pair) -> bool:
    """Return whether a pair is about a tool for one kind of request."""
    return pair.space.startswith("tool:") and pair.entity.startswith("intent:")


def target_of(pair: Pair) -> str | None:
    """Return the target that a pair is about. Return None for any other pair."""
    return pair.entity.removeprefix("path:") if pair.entity.startswith("path:") else None


def _below(project: str) -> str:
    return f"path:{well_formed(project.rstrip('/'))}/"


def _is_address(target: str) -> bool:
    scheme, separator, _ = target.partition("://")
    return bool(separator) and scheme.isalnum()


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _bounded(tag: str) -> str:
    if len(tag) <= TAG_LENGTH:
        return tag
    digest = hashlib.sha256(tag.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{tag[: TAG_LENGTH - 65]}#{digest}"


def _words(text: str) -> Iterator[str]:
    # Scripts without spaces are split into pairs of characters, because most Chinese words have two characters.
    word: list[str] = []
    wide = False
    for character in text:
        if not _belongs(character, word):
            if word:
                yield "".join(word)
            word = []
            continue
        is_wide = _is_wide(character)
        if word and (is_wide != wide or (wide and len(word) == 2)):
            yield "".join(word)
            word = []
        wide = is_wide
        if len(word) < WORD_LENGTH:
            word.append(character)
    if word:
        yield "".join(word)


def _belongs(character: str, word: list[str]) -> bool:
    return character.isalnum() or (bool(word) and unicodedata.category(character).startswith("M"))


def _is_wide(character: str) -> bool:
    code = ord(character)
    return code >= _WIDE_SCRIPTS[0][0] and any(low <= code <= high for low, high in _WIDE_SCRIPTS)
