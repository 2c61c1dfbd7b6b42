"""Index hosts and mail addresses by the first foreign text that mentioned them.

A name that first appeared in a file, a page, a mail or a tool's output is data. Data must not decide where artoo
sends something.

The index contains the hosts and mail addresses in the outputs of a task's tools, each with the first source that
contained it. Its size is limited. Names in the user's own request have no source.
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
"""Maximum number of names that are remembered for one task. Later names are not indexed."""

MOST_WORDS = 200_000
"""Maximum number of words of files that are remembered for one task."""

_OUTSIDE = frozenset({"search", "web_search", "web_fetch"})
"""Tools whose output came from outside of this machine, so that sending its words there reveals nothing."""

_WORD = re.compile(r"[^\W_]{2,64}")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{2,}")
"""Text in languages without spaces. Each pair of adjacent letters is treated as a word."""
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[\s.,'\u2019_-]{1,3}(?=\d)")
_NO_LETTERS = re.compile(r"[\W_]+")
_SHORTEST_PART = 5
"""Minimum length of both parts of a compound word. Shorter parts occur in too many ordinary words (`database`)."""
_SPACED = re.compile(r"(?<![^\W_])(?:[^\W_][\W_]+){3,}[^\W_](?![^\W_])")
_HIDDEN_WORD = 8
"""Minimum length of the words that are searched for in a query after its spaces are removed. A word with digits
needs only 4 characters."""
_MOST_SQUEEZED = 4_000
"""Number of characters of an operation's text that are searched after its spaces are removed. A query is shorter
than this."""
_OPAQUE = re.compile(r"(?=[a-z]*\d)(?=\d*[a-z])[a-z\d]{16,}|[a-z\d]{40,}")
"""A sequence of letters and digits that is unlike any word of a language. It may be the content of a file in
another encoding, such as base64."""
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
    """A host or recipient whose first mention was in data. `kind` is `network` or `recipient`."""

    kind: str
    name: str
    source: str


@dataclass(frozen=True, slots=True)
class Carried:
    """Words of a text that was read, which are not in the request. `name`: these words, in the order in which the
    operation contains them."""

    name: str
    source: str


@dataclass(slots=True)
class Origins:
    """The index of one task. `request` is the user's own text. Questions are asked in its language."""

    request: str = ""
    _sources: dict[str, str] = field(default_factory=dict[str, str])
    _words: dict[str, str] = field(default_factory=dict[str, str])
    _carried: set[str] = field(default_factory=set[str])
    _passages: Passages = field(default_factory=Passages)

    @property
    def language(self) -> str:
        """Return the language of questions and of the result."""
        return language_of(self.request)

    def observe(self, call: ToolCall) -> None:
        """Remember the names and words in a call's output. Each gets the first source that contained it."""
        source = _source(call)
        self._passages.keep(call.input, None)
        self._passages.keep(f"{call.output}\n{call.error_output}", source)
        if not _OUTSIDE.intersection(call.identity):
            self._keep_words(f"{call.output}\n{call.error_output}", source)
        self._keep_names(f"{call.output}\n{call.error_output}", source)

    def observe_text(self, source: str, text: str) -> None:
        """Remember the names and words of a text that models are shown without a tool call."""
        self._passages.keep(text, source)
        self._keep_words(text, source)
        self._keep_names(text, source)

    def foreign(self, texts: Iterable[str]) -> tuple[Foreign, ...]:
        """Return the hosts and mail addresses in an operation's input that came from data and are not in the
        request."""
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
        """Return the words of files that an operation would send out, except words of the request.

        The function blocks for up to half a second.
        """
        # Spaces and punctuation between letters and digits do not hide a word. A single plain word is too common to
        # prove where it came from. It counts only together with a second word of a file, which may come from
        # another file or an earlier call.
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
        """Return the values in an operation's input that came from a text that was read and are not in the request.

        The function blocks for up to half a second.
        """
        # A question shows these values, but they alone are no reason to ask.
        return tuple(Carried(name, source) for name, source in self._passages.carried(texts, self.request))

    @property
    def full(self) -> bool:
        """Check whether the maximum number of words was reached, so that later words were not remembered."""
        return len(self._words) >= MOST_WORDS


def _plain(text: str) -> str:
    """Normalize a text for the comparison of letters and digits."""
    return unicodedata.normalize("NFKC", text).casefold()


def _words_of(text: str) -> Iterator[str]:
    """Yield the words of a text. A number is also yielded without the spaces and punctuation between its digits."""
    plain = _plain(text)
    for run in _UNSPACED.findall(plain):
        yield from map("".join, pairwise(run))
    yield from _WORD.findall(_UNSPACED.sub(" ", plain))
    joined = _BETWEEN_DIGITS.sub("", plain)
    if joined != plain:
        yield from (word for word in _WORD.findall(joined) if any(map(str.isdigit, word)))


def _hidden_in(text: str, words: Collection[str]) -> Iterator[str]:
    """Yield the `words` that appear in a text after all separators are removed, if they are long or contain digits.

    If a compound word in the text (such as `tuliphammer`) consists of two of these words, both are yielded too.
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
    """Yield the mail addresses and hosts in a text, in lower case."""
    yield from (("recipient", address) for address in _addresses(text))
    for match in _HOST.finditer(text) if "." in text or "://" in text else ():
        yield "network", (match["url"] or match["address"] or match["name"]).strip("[]").rstrip(".").casefold()


def _addresses(text: str) -> Iterator[str]:
    """Yield the mail addresses in a text. They are found by their @ sign, and the length on both sides is
    limited."""
    at = text.find("@")
    while at >= 0:
        before = _MAILBOX.match(text[max(0, at - 64) : at][::-1])
        behind = _DOMAIN.match(text, at + 1, at + 1 + _LONGEST_DOMAIN)
        if before is not None and behind is not None:
            yield f"{before.group()[::-1]}@{behind.group()}".casefold()
        at = text.find("@", at + 1)
