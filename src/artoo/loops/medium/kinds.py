"""The kind of a request: a label of two to four words under which memory keeps what such requests teach.

R2's plan carries the label. R2 is shown the labels of the most similar known requests and reuses one if it fits.
Where R2 gives no label, the most similar request decides if it is similar enough. Similarity is the cosine of the
words that two requests share. Rare words weigh more, and the known requests themselves say how rare a word is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from artoo.contracts.memory import KnownRequest
from artoo.contracts.tags import label, words_of

# Similarity from which a request is of the most similar one's kind without a model's word. In the lab's
# wordings, requests of one kind that differ in a name reach .57 and more, and requests of different kinds .52
# at most.
ALIKE = 0.5
SHOWN = 5
# Below it a request is no help to R2 in choosing a label.
_LEAST = 0.15
# Weights of the commonest and the rarest words. Names and numbers occur once each, and would otherwise outweigh
# what was asked. Words of every request would say nothing while all requests are of one kind.
_LIGHTEST, _HEAVIEST = 1.0, 2.0
_EXAMPLE = 80
_COINED_WORDS = 3


@dataclass(frozen=True, slots=True)
class Kinds:
    """The knowledge of memory about the kind of one request. `similar`: the best request of each known kind, most
    similar first. `guess` is the label without a model's word, `is_known` whether memory has met it.
    """

    guess: str
    is_known: bool = False
    similar: tuple[KnownRequest, ...] = ()

    def told(self) -> tuple[str, ...]:
        """Return the lines that show R2 the known labels, each with a request of its kind."""
        return tuple(f'{each.label.replace("_", " ")}: "{_short(each.text)}"' for each in self.similar)

    def chosen(self, drafted: str) -> str:
        """Return the label that a draft asks for; the guess where it asks for none."""
        return label(drafted) if words_of(drafted) else self.guess


def kinds_of(text: str, known: Sequence[KnownRequest]) -> Kinds:
    """Compare a request with the known ones."""
    words = {each: frozenset(words_of(each.text)) for each in known}
    weights = _weights(words)
    own = frozenset(words_of(text))
    best: dict[str, tuple[float, KnownRequest]] = {}
    for each, theirs in words.items():
        found = _similarity(own, theirs, weights)
        if found >= _LEAST and found > best.get(each.label, (0.0, each))[0]:
            best[each.label] = found, each
    ranked = sorted(best.values(), key=lambda one: -one[0])[:SHOWN]
    similar = tuple(each for _, each in ranked)
    if ranked and ranked[0][0] >= ALIKE:
        return Kinds(similar[0].label, True, similar)
    return Kinds(_coined(text, weights), False, similar)


def _weights(requests: Mapping[KnownRequest, frozenset[str]]) -> Mapping[str, float]:
    """Return how telling each known word is. An unknown word is as telling as any can be."""
    counts = Counter(word for words in requests.values() for word in words)
    rarity = {word: math.log(1 + len(requests) / count) for word, count in counts.items()}
    return {word: min(_HEAVIEST, max(_LIGHTEST, found)) for word, found in rarity.items()}


def _similarity(one: frozenset[str], other: frozenset[str], weights: Mapping[str, float]) -> float:
    def size(words: frozenset[str]) -> float:
        return sum(weights.get(word, _HEAVIEST) ** 2 for word in words)

    return size(one & other) / math.sqrt(size(one) * size(other)) if one and other else 0.0


def _coined(text: str, weights: Mapping[str, float]) -> str:
    """Return a new label: the most telling words of the request, in its order.

    Words with digits are names, numbers or keys: they are no kind of request, and a key must not get into memory.
    """
    words = words_of(text)
    words = tuple(word for word in words if word.isalpha()) or words
    telling = sorted(range(len(words)), key=lambda at: (-weights.get(words[at], _HEAVIEST), at))[:_COINED_WORDS]
    return label(" ".join(words[at] for at in sorted(telling)) or text)


def _short(text: str) -> str:
    return " ".join(text.split())[:_EXAMPLE]
