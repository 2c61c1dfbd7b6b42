"""What reads the text of a tool or of an answer does so in linear time: nobody can stop artoo with one output."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from artoo.contracts.execution import ToolCall
from artoo.evidence.grounding import own_words
from artoo.evidence.numerals import numbers_in
from artoo.evidence.tokens import paths_in, tokens_of, words_of
from artoo.tools.provenance.taint import Origins

_SEEDS = [
    *"a/.@-_1x \"'`,%#9",
    *("a.", "a/", "a@", "a@a.", "a@a/", "://", "1.", "a1", "\u9519", "\u4e00", "`a", '"a b c d e" ', "- 1"),
]
_SHORT, _LONG = 8_000, 64_000


def _call(text: str) -> ToolCall:
    return ToolCall(tool="shell", identity=("shell:cat",), target="cat a", input="cat a", output=text)


READERS: dict[str, Callable[[str], object]] = {
    "names of an output": lambda text: Origins().observe(_call(text)),
    "names of an input": lambda text: Origins().foreign([text]),
    "tokens": tokens_of,
    "numbers": lambda text: list(numbers_in(text)),
    "words": words_of,
    "paths": lambda text: list(paths_in(text)),
    "own words": lambda text: own_words(_call(text)),
}


def _cost(read: Callable[[str], object], text: str) -> float:
    """Seconds of the processor, the best of three: other programs do not count."""
    costs: list[float] = []
    for _ in range(3):
        before = time.process_time()
        read(text)
        costs.append(time.process_time() - before)
    return min(costs)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("seed", _SEEDS)
def test_reading_is_linear(reader: str, seed: str) -> None:
    """Eight times the text costs about eight times as much; squared it would be sixty-four."""
    short, long = ((seed * size)[:size] + "!" for size in (_SHORT, _LONG))
    once = _cost(READERS[reader], short)
    assert _cost(READERS[reader], long) < 24 * max(once, 0.002)


@pytest.mark.parametrize("around", ["{}", "x" * 5_000 + " {}", "<{}>", "{}, {}", "a" * 900 + ",{}"])
def test_long_runs_hide_no_address(around: str) -> None:
    """An address is found wherever it stands; only what is longer than an address can be is cut."""
    origins = Origins()
    origins.observe(_call(around.format("eve@evil.example.com", "https://host.example.org/x")))
    found = {one.name for one in origins.foreign(["to eve@evil.example.com"])}
    assert "eve@evil.example.com" in found
