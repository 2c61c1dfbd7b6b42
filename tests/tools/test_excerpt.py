"""What of a long file is shown."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from artoo.contracts.execution import OUTPUT_KEPT
from artoo.tools.excerpt import beginning, beginning_and_end, two_ends

LINES = st.lists(st.text(st.characters(exclude_characters="\n["), max_size=300), min_size=1, max_size=150)
KEPT = st.sampled_from([OUTPUT_KEPT, 2 * OUTPUT_KEPT])
_LEFT_OUT = re.compile(
    r"\[\.\.\. lines (\d+)-(\d+)(?: of (\d+))? are left out here; ask for more with lines: (\d+)-(\d+) \.\.\.\]\n"
)


def numbers(mark: re.Match[str] | None) -> tuple[int, ...]:
    assert mark is not None
    return tuple(int(each) for each in mark.groups() if each)


@given(LINES, KEPT)
def test_both_ends_are_whole_lines_and_the_rest_is_named(lines: list[str], kept: int) -> None:
    """What fits is whole. Of what does not, lines of both ends in 4,000 characters, and the others' numbers."""
    text = "\n".join(lines)
    shown = beginning_and_end(text, kept)
    if len(text) <= kept:
        assert shown == text
        return
    assert len(shown) <= OUTPUT_KEPT
    mark = _LEFT_OUT.search(shown)
    first, last, total, from_, to = numbers(mark)
    assert mark is not None and total == len(lines)
    assert shown[: mark.start()] == "".join(f"{each}\n" for each in lines[: first - 1])
    assert shown[mark.end() :] == "\n".join(lines[last:])
    assert first == from_ <= to <= last


@given(LINES, KEPT, st.integers(1, 1_000))
def test_what_was_asked_for_is_shown_from_its_first_line_on(lines: list[str], kept: int, number: int) -> None:
    """Lines in one piece, as many as there is room for, and the numbers of those that follow."""
    text = "".join(f"{each}\n" for each in lines)
    shown = beginning(text, number, kept)
    if len(text) <= kept:
        assert shown == text
        return
    assert len(shown) <= kept
    mark = _LEFT_OUT.search(shown)
    first, last, from_, to = numbers(mark)
    assert mark is not None and mark.end() == len(shown)
    assert shown[: mark.start()] == "".join(f"{each}\n" for each in lines[: first - number])
    assert last == number + len(lines) - 1 and first == from_ <= to


def test_a_long_file_takes_few_looks() -> None:
    """Whoever asks as the first look says, and so on from there, has all 32 kB in as few calls as may be."""
    lines = [f"{number}: {'word ' * (number % 17)}\n" for number in range(1, 721)]
    text = "".join(lines)
    assert 30_000 < len(text) < 34_000
    for kept, most in ((OUTPUT_KEPT, 9), (16_000, 3)):
        first, last, _, _, to = numbers(_LEFT_OUT.search(beginning_and_end(text, kept)))
        assert "left out" not in beginning("".join(lines[first - 1 : to]), first, kept)
        read, looks = to, 2
        while read < last:
            mark = _LEFT_OUT.search(beginning("".join(lines[read:last]), read + 1, kept))
            read, looks = (last if mark is None else int(mark[1]) - 1), looks + 1
        assert looks <= most


def test_of_a_file_that_was_not_read_whole_the_next_lines_are_named() -> None:
    """Nobody knows how many lines there are; from where to go on is known."""
    shown = two_ends("a b c d\n" * 5_000, "ab\n" + "y z\n" * 5_000, 9_000_000, OUTPUT_KEPT)
    assert len(shown) <= OUTPUT_KEPT
    assert shown.startswith(
        "a b c d\n" * 240 + "[... the lines from 241 to the last 480 of 9000000 bytes are left out"
    )
    assert "ask for more with lines: 241-740 ...]\ny z\n" in shown


def test_a_single_long_line_is_cut_between_words() -> None:
    """Where no line fits there are none to name."""
    for shown in (
        beginning_and_end("word " * 9_000, OUTPUT_KEPT),
        beginning("word " * 9_000, 1, OUTPUT_KEPT),
        two_ends("word " * 9_000, "word " * 9_000, 600_000, OUTPUT_KEPT),
    ):
        assert len(shown) <= OUTPUT_KEPT
        assert "characters left out here" in shown and "ask for more" not in shown
