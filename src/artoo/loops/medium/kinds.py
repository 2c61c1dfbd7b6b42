"""The kind of a request, found by word similarity from 0.5 on to known requests, with five labels shown.

The label has two to four words. Memory groups the lessons of such requests by it.

The planner's plan carries the label. The planner is shown the labels of the most similar known requests and reuses
one if it fits. If the planner gives no label, the most similar request's label is used if it is similar enough.
Similarity is the cosine of the words that two requests share. Rare words weigh more; the known requests determine
how rare a word is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from artoo.contracts.memory import KnownRequest
from artoo.contracts.tags import label, words_of

# Similarity from which a request counts as the same kind as the most similar one, without a model. In the lab's
# test phrasings, requests of one kind that differ in a name reach .57 and more, and requests of different kinds
# at most .52.
ALIKE = 0.5
SHOWN = 5
# Requests below this similarity do not help the planner to choose a label.
_LEAST = 0.15
# Weights of the commonest and the rarest words. Without an upper limit, names and numbers, which occur once each,
# would outweigh the task. Without a lower limit, words of every request would count nothing while one kind is
# known.
_LIGHTEST, _HEAVIEST = 1.0, 2.0
_EXAMPLE = 80
_COINED_WORDS = 3


@dataclass(frozen=True, slots=True)
class Kinds:
    """The known kinds for one request. `similar` holds the best request of each known kind, the most similar first.
    `guess` is the label chosen without a model; `is_known`: memory has seen this label.
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
    """Return a weight for each known word. Rare words weigh more; callers give unknown words the maximum."""
    counts = Counter(word for words in requests.values() for word in words)
    rarity = {word: math.log(1 + len(requests) / count) for word, count in counts.items()}
    return {word: min(_HEAVIEST, max(_LIGHTEST, found)) for word, found in rarity.items()}


def _similarity(one: frozenset[str], other: frozenset[str], weights: Mapping[str, float]) -> float:
    def size(words: frozenset[str]) -> float:
        return sum(weights.get(word, _HEAVIEST) ** 2 for word in words)

    return size(one & other) / math.sqrt(size(one) * size(other)) if one and other else 0.0


def _coined(text: str, weights: Mapping[str, float]) -> str:
    """Return a new label from the most telling words of the request, in their order.

    Words with digits are left out, because names, numbers or keys are no kind of request, and no key may enter
    memory.
    """
    words = words_of(text)
    words = tuple(word for word in words if word.isalpha()) or words
    telling = sorted(range(len(words)), key=lambda at: (-weights.get(words[at], _HEAVIEST), at))[:_COINED_WORDS]
    return label(" ".join(words[at] for at in sorted(telling)) or text)


def _short(text: str) -> str:
    return " ".join(text.split())[:_EXAMPLE]
