"""The sources of names: what a file, a page, a mail or a tool said first is data, and data gives no orders.

A bounded index of the hosts and mail addresses in the outputs of a task's tools, each with the first source
that said it. Names in the user's own request have no source.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from artoo.contracts.execution import ToolCall
from artoo.tools.provenance.text_match import Passages
from artoo.words.language import language_of

MOST_NAMES = 20_000
"""Names that one task remembers; later ones are not indexed."""

MOST_WORDS = 200_000
"""Words of files that one task remembers."""

_OUTSIDE = frozenset({"search", "web_search", "web_fetch"})
"""Tools whose output came from outside: to send it there again reveals nothing."""

_WORD = re.compile(r"[^\W_]{2,64}")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{2,}")
"""Text of languages that write no spaces: pairs of letters are its words."""
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[\s.,'\u2019_-]{1,3}(?=\d)")
_NO_LETTERS = re.compile(r"[\W_]+")
_SHORTEST_PART = 5
"""Letters of both parts of a word: shorter ones make too many ordinary words (`database`)."""
_SPACED = re.compile(r"(?<![^\W_])(?:[^\W_][\W_]+){3,}[^\W_](?![^\W_])")
_HIDDEN_WORD = 8
"""Letters of a word that is looked for in a query whose spaces are taken out; words with digits are from 4 on."""
_MOST_SQUEEZED = 4_000
"""Letters of the text of an operation that are looked through so; a query is shorter."""
_OPAQUE = re.compile(r"(?=[a-z]*\d)(?=\d*[a-z])[a-z\d]{16,}|[a-z\d]{40,}")
"""A token that looks like no word of a language: it may be a text of a file in another form, such as base64."""
_MAILBOX = re.compile(r"[\w.+-]{1,64}")
_DOMAIN = re.compile(r"(?:[\w-]{1,63}\.)+[A-Za-z]{2,24}")
_LONGEST_DOMAIN = 255
_HOST = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]{1,20}://(?:[^\s/@]{1,100}@)?(?P<url>\[[0-9A-Fa-f:.]+\]|[^\s/:?#\"'<>)\]]{1,253})"
    r"|\b(?P<address>(?:\d{1,3}\.){3}\d{1,3})\b"
    r"|(?<![\w@/.-])(?P<name>(?:[A-Za-z0-9](?:[\w-]{0,61}[A-Za-z0-9])?\.)+"
    r"(?:com|org|net|edu|gov|info|biz|xyz|app|dev|cloud|site|online|io|ai|cn|uk|de|fr|ru|jp|eu|us|me|tv|to))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Foreign:
    """A host or recipient that data named first. `kind` is `network` or `recipient`."""

    kind: str
    name: str
    source: str


@dataclass(frozen=True, slots=True)
class Carried:
    """Words of a text that was read, and not of the request. `name`: the words in the order of the operation."""

    name: str
    source: str


@dataclass(slots=True)
class Origins:
    """The index of one task. `request` is the person's own text; its language is the one to ask in."""

    request: str = ""
    _sources: dict[str, str] = field(default_factory=dict[str, str])
    _words: dict[str, str] = field(default_factory=dict[str, str])
    _carried: set[str] = field(default_factory=set[str])
    _passages: Passages = field(default_factory=Passages)

    @property
    def language(self) -> str:
        """Return the language in which to ask, which is the result's too."""
        return language_of(self.request)

    def observe(self, call: ToolCall) -> None:
        """Remember the names in a call's output, each with the first source that said it."""
        source = _source(call)
        self._passages.keep(call.input, None)
        self._passages.keep(f"{call.output}\n{call.error_output}", source)
        if not _OUTSIDE.intersection(call.identity):
            self._keep_words(f"{call.output}\n{call.error_output}", source)
        self._keep_names(f"{call.output}\n{call.error_output}", source)

    def observe_text(self, source: str, text: str) -> None:
        """Remember the names and words of a text that models are shown without having called a tool."""
        self._passages.keep(text, source)
        self._keep_words(text, source)
        self._keep_names(text, source)

    def foreign(self, texts: Iterable[str]) -> tuple[Foreign, ...]:
        """Return the hosts and mail addresses in an operation's input that came from data, not from the request."""
        found: dict[str, Foreign] = {}
        for text in texts:
            for kind, name in _reached(text):
                source = None if name in self.request.casefold() else self._sources.get(name)
                if source is not None:
                    found.setdefault(name, Foreign(kind, name, source))
        return tuple(found.values())

    def _keep_names(self, text: str, source: str) -> None:
        for _, name in _reached(text):
            if len(self._sources) >= MOST_NAMES:
                return
            self._sources.setdefault(name, source)

    def _keep_words(self, text: str, source: str) -> None:
        for word in _words_of(text):
            if len(self._words) >= MOST_WORDS:
                return
            self._words.setdefault(word, source)

    def carried(self, texts: Iterable[str]) -> tuple[Carried, ...]:
        """Return what an operation would carry out of files: words of them that the request has not.

        Blocking: up to half a second.
        """
        # Spaces and signs between letters and digits hide no word.
        # A single plain word is in too many texts to have come from one, so it counts only with a second word of a
        # file, also of another file or an earlier call.
        if not self._words:
            return ()
        request = self.request
        own = {*_words_of(request), *_hidden_in(request, self._words), *_OPAQUE.findall(_plain(request))}
        found: dict[str, dict[str, None]] = {}
        certain = False
        for text in texts:
            spelled = dict.fromkeys(_words_of(text))
            hidden = dict.fromkeys(_hidden_in(text, self._words))
            opaque = dict.fromkeys(_OPAQUE.findall(_plain(text)))
            for word in dict.fromkeys((*spelled, *hidden, *opaque)):
                if word in own or (word not in self._words and word not in opaque):
                    continue
                source = self._words.get(word, "a text in another form")
                found.setdefault(source, {})[word] = None
                certain |= word not in spelled or word in opaque or any(map(str.isdigit, word))
        self._carried.update(word for words in found.values() for word in words)
        if not found or not (certain or len(self._carried) > 1):
            return ()
        return tuple(Carried(" ".join(words), source) for source, words in found.items())

    def quoted(self, texts: Iterable[str]) -> tuple[Carried, ...]:
        """Return the values of an operation that a text contained which was read, and not the request.

        Blocking: up to half a second.
        """
        # A question shows the values, but they are no reason to ask.
        return tuple(Carried(name, source) for name, source in self._passages.carried(texts, self.request))

    @property
    def full(self) -> bool:
        """Check whether not all words of the files that were read are remembered."""
        return len(self._words) >= MOST_WORDS


def _plain(text: str) -> str:
    """Return the text in the form in which letters and digits are compared."""
    return unicodedata.normalize("NFKC", text).casefold()


def _words_of(text: str) -> Iterator[str]:
    """Yield the words of a text, and its numbers as they are without spaces and signs between their digits."""
    plain = _plain(text)
    for run in _UNSPACED.findall(plain):
        yield from map("".join, pairwise(run))
    yield from _WORD.findall(_UNSPACED.sub(" ", plain))
    joined = _BETWEEN_DIGITS.sub("", plain)
    if joined != plain:
        yield from (word for word in _WORD.findall(joined) if any(map(str.isdigit, word)))


def _hidden_in(text: str, words: Collection[str]) -> Iterator[str]:
    """Yield words that are in a text once everything between its letters is taken out: long ones, or with digits.

    Also what a single word of the text is put together from, such as the two of `tuliphammer`.
    """
    spelt = {_NO_LETTERS.sub("", one): 3 for one in _SPACED.findall(_plain(text))}
    for word, shortest in {**dict.fromkeys(_WORD.findall(_plain(text)), _SHORTEST_PART), **spelt}.items():
        for cut in () if word in words else range(shortest, len(word) - shortest + 1):
            if word[:cut] in words and word[cut:] in words:
                yield from (word[:cut], word[cut:])
    squeezed = _NO_LETTERS.sub("", _plain(text))[:_MOST_SQUEEZED]
    for start in range(len(squeezed) - 3):
        for end in range(start + 4, min(start + 64, len(squeezed)) + 1):
            word = squeezed[start:end]
            if (end - start >= _HIDDEN_WORD or any(map(str.isdigit, word))) and word in words:
                yield word


def _source(call: ToolCall) -> str:
    what = " ".join(call.target.split())[:120]
    return f"{call.tool} {what}".strip()


def _reached(text: str) -> Iterator[tuple[str, str]]:
    """Yield what a text would reach: mail addresses and hosts, in small letters."""
    yield from (("recipient", address) for address in _addresses(text))
    for match in _HOST.finditer(text) if "." in text or "://" in text else ():
        yield "network", (match["url"] or match["address"] or match["name"]).strip("[]").rstrip(".").casefold()


def _addresses(text: str) -> Iterator[str]:
    """Yield mail addresses, searched from their sign with bounded lengths on both sides."""
    at = text.find("@")
    while at >= 0:
        before = _MAILBOX.match(text[max(0, at - 64) : at][::-1])
        behind = _DOMAIN.match(text, at + 1, at + 1 + _LONGEST_DOMAIN)
        if before is not None and behind is not None:
            yield f"{before.group()[::-1]}@{behind.group()}".casefold()
        at = text.find("@", at + 1)
