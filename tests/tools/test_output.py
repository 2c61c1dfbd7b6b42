"""Head and tail of what tools print."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from artoo.contracts.execution import OUTPUT_KEPT
from artoo.ports.sandbox import Captured
from artoo.tools.core.truncate import MARK_ROOM, clip, head_tail

TEXT = st.text(max_size=3_000)
KEPT = st.integers(min_value=2 * MARK_ROOM, max_value=1_000)


@given(TEXT, KEPT)
def test_what_fits_is_whole_and_what_does_not_stays_within_the_limit(text: str, kept: int) -> None:
    """Short text is unchanged; long text is cut to at most the limit, by a mark that counts what is missing."""
    result = head_tail(text, kept)
    if len(text) <= kept:
        assert result == text
        return
    assert len(result) <= kept
    head, mark, tail = result.partition("\n[... ")
    count, _, rest = tail.partition(" characters left out here ...]\n")
    assert mark
    assert text.startswith(head)
    assert text.endswith(rest)
    assert len(head) + int(count) + len(rest) == len(text)


def test_a_cut_never_halves_a_number() -> None:
    """The kept parts of a column of numbers are whole numbers: half a number would be a false figure."""
    numbers = [str(10_000_000 + index) for index in range(5_000)]
    head, _, rest = head_tail("\n".join(numbers)).partition("\n[...")
    tail = rest.partition("...]\n")[2]
    assert set(head.split()) <= set(numbers)
    assert set(tail.split()) <= set(numbers)


def test_a_cut_stream_says_how_many_bytes_are_missing() -> None:
    """The mark of a stream that was cut while it ran counts bytes against the stream's whole length."""
    text, truncated = clip(Captured(b"a\n" * 10, b"z\n" * 10, 1_000_000), OUTPUT_KEPT)
    assert truncated
    head, tail = text.split("\n[... ")[0], text.split("...]\n")[1]
    assert f"[... {1_000_000 - len(head) - len(tail)} bytes left out here ...]" in text


def test_binary_output_is_described_not_shown() -> None:
    """Bytes that are no text do not reach the record as letters."""
    text, truncated = clip(Captured(b"\x7fELF\x00\x01\x02", b"", 7))
    assert text == "(binary output, 7 bytes, not shown)"
    assert truncated


def test_lines_that_are_no_text_do_not_hide_the_others() -> None:
    """They are told in their place, neighbours as one; what stands around them is evidence."""
    text, truncated = clip(Captured(b"one\nPK\0\1\n\0\0\ntwo\n", b"caf\xe9\n", 21))
    assert text == "one\n(7 bytes that are no text)\ntwo\ncaf\ufffd\n"
    assert truncated
    text, truncated = clip(Captured(b"one\n" * 90, b"two\n\0\n" + b"two\n" * 90, 100_000))
    assert text.startswith("one\none\n")
    assert "\n(1 bytes that are no text)\ntwo\n" in text
    assert truncated
    assert " 1 bytes left out here " in clip(Captured(b"one\n", b"a\n\0\ntwo\n", 13))[0]
    assert clip(Captured(b"one\n", b"\0" * 5, 9))[0] == "(binary output, 9 bytes, not shown)"
