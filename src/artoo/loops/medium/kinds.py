"""The kind of a request, found by word similarity to known requests, with the threshold and the labels shown.

The label has two to four words. Memory groups the lessons of all requests of one kind by this label.

The planner's plan carries the label. The planner is shown the labels of the most similar known requests and reuses
one if it fits. If the planner gives no label, the most similar request's label is used if it is similar enough. The
similarity of two requests is the cosine of their words. Rare words weigh more than common ones. The known requests
determine how rare a word is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from artoo.contracts.memory import KnownRequest
from artoo.contracts.tags import label, words_of

# Two requests count as the same kind from this similarity on, if no model decides. In the lab's test phrasings,
# requests of one kind that differ in a name have a similarity of at least .57, and requests of different kinds of
# at most .52.
ALIKE = 0.5
SHOWN = 5
# A request below this similarity is not shown to the planner, because its label would not help.
_LEAST = 0.15
# Weights of the most common and of the rarest words. Without an upper limit, names and numbers would outweigh the
# task, because each occurs only once. Without a lower limit, a word that occurs in every request would have no
# weight while only one kind is known.
_LIGHTEST, _HEAVIEST = 1.0, 2.0
_EXAMPLE = 80
_COINED_WORDS = 3


@dataclass(frozen=True, slots=True)
class Kinds:
    """The known kinds of request that are similar to one request. `similar` holds the most similar request of each
    known kind, the most similar kind first. `guess` is the label that is chosen without a model. `is_known`: memory
    already contains this label.
    """

    guess: str
    is_known: bool = False
    similar: tuple[KnownRequest, ...] = ()

    def told(self) -> tuple[str, ...]:
        """Return lines that show the planner the known labels, each with an example request."""
        return tuple(f'{each.label.replace("_", " ")}: "{_short(each.text)}"' for each in self.similar)

    def chosen(self, drafted: str) -> str:
        """Return the label that a draft gives, or the guess if it gives none."""
        return label(drafted) if words_of(drafted) else self.guess


def kinds_of(text: str, known: Sequence[KnownRequest]) -> Kinds:
    """Compare a request with the known requests to find its kind."""
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
    """Return a weight for each known word. Rare words weigh more. Callers use the maximum for a word that is not
    known."""
    counts = Counter(word for words in requests.values() for word in words)
    rarity = {word: math.log(1 + len(requests) / count) for word, count in counts.items()}
    return {word: min(_HEAVIEST, max(_LIGHTEST, found)) for word, found in rarity.items()}


def _similarity(one: frozenset[str], other: frozenset[str], weights: Mapping[str, float]) -> float:
    def size(words: frozenset[str]) -> float:
        return sum(weights.get(word, _HEAVIEST) ** 2 for word in words)

    return size(one & other) / math.sqrt(size(one) * size(other)) if one and other else 0.0


def _coined(text: str, weights: Mapping[str, float]) -> str:
    """Compose a new label from the words of the request that have the highest weight, in their order.

    Words with digits are left out. Names and numbers do not identify a kind of request, and a secret key must not
    enter memory.
    """
    words = words_of(text)
    words = tuple(word for word in words if word.isalpha()) or words
    telling = sorted(range(len(words)), key=lambda at: (-weights.get(words[at], _HEAVIEST), at))[:_COINED_WORDS]
    return label(" ".join(words[at] for at in sorted(telling)) or text)


def _short(text: str) -> str:
    return " ".join(text.split())[:_EXAMPLE]
