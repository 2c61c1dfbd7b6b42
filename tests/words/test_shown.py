"""What is said to a person hides nothing and commands nothing."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artoo.contracts.changes import printable_path
from artoo.words.shown import local_time, printable

TAGS = "".join(chr(0xE0000 + ord(one)) for one in "no")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ab\u2028c", "ab\\u2028c"),
        (f"yes{TAGS}", "yes\\U000e006e\\U000e006f"),
        ("a\u3164b\u115f\uffa0", "a\\u3164b\\u115f\\uffa0"),
        ("a\u202eb\x9b2J\x85", "a\\u202eb\\x9b2J\\x85"),
        ("caf\udce9 \ud83d", "caf\\xe9 \\ud83d"),
        ("a\ufe00\ufe01\ufe02", "a\ufe00\\ufe01\\ufe02"),
        ("\u200da\u200c\u200c", "\\u200da\u200c\\u200c"),
    ],
)
def test_what_nobody_sees_is_written_out(text: str, shown: str) -> None:
    """Other line ends, tag characters, fillers, what turns a line round; joiners that shape nothing."""
    assert printable(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "\u0646\u0645\u06cc\u200c\u062f\u0627\u0646\u0645",
        "\U0001f469\u200d\U0001f4bb \u2764\ufe0f\u200d\U0001f525 1\ufe0f\u20e3",
        "\u845b\U000e0100\u57ce",
        "12\u202f000\u00a0\u20ac",
        "\u5168\u89d2\u3000\u7a7a\u767d",
        "a\tb\n",
    ],
)
def test_what_shapes_a_letter_stays(text: str) -> None:
    """Persian, emoji, variants of Chinese characters, and the blanks of other scripts."""
    assert printable(text) == text


@given(st.text())
def test_nothing_hidden_is_left(text: str) -> None:
    """Whatever it is: no control, format, line or paragraph character but line ends, tabs and single joiners."""
    shown = printable(text)
    left = {one for one in shown if unicodedata.category(one) in ("Cc", "Cf", "Zl", "Zp", "Cs", "Co")}
    assert left <= set("\n\t\u200c\u200d") and printable(shown) == shown


@given(st.binary())
def test_a_printable_path_stays_as_it_is(raw: bytes) -> None:
    """The page's forms name paths by it."""
    path = printable_path(raw)
    assert printable(path) == path


def test_a_time_and_its_seconds_are_shown_alike() -> None:
    """Databases hold times, records hold seconds; both are shown in the local zone."""
    moment = datetime(2026, 3, 1, 23, 59, 30, tzinfo=UTC)
    assert local_time(moment) == local_time(moment.timestamp()) == f"{moment.astimezone():%Y-%m-%d %H:%M}"
