"""Text that UTF-8 can carry."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artoo.contracts.changes import path_bytes
from artoo.contracts.text import well_formed, well_formed_json, well_formed_value

ANY = st.text(st.characters(exclude_categories=()), max_size=40)


@given(ANY)
def test_whatever_it_is_given_utf_8_can_carry_it(text: str) -> None:
    """And text that it could carry before is the same."""
    shown = well_formed(text)
    shown.encode()
    assert well_formed(shown) == shown


@given(st.text(max_size=40))
def test_ordinary_text_is_left_alone(text: str) -> None:
    """Hypothesis makes no surrogates here."""
    assert well_formed(text) == text
    assert well_formed_json(json.dumps([text])) == [text]


def test_a_name_leads_back_to_its_file_and_half_a_character_is_a_question_mark() -> None:
    """A byte that is not UTF-8 is written as the paths of artoo's records are."""
    name = b"caf\xe9.txt"
    assert path_bytes(well_formed(os.fsdecode(name))) == name
    assert well_formed("cut \ud83d") == "cut ?"


@given(st.recursive(ANY, lambda inner: st.lists(inner) | st.dictionaries(ANY, inner), max_leaves=8))
def test_a_value_is_the_same_but_for_its_texts(value: object) -> None:
    """However deep they lie, as values and as names."""
    json.dumps(well_formed_value(value), ensure_ascii=False).encode()


def test_json_with_half_an_emoji_is_read() -> None:
    """A whole one, written as two halves, is one character; what is no JSON is refused."""
    assert well_formed_json(rb'{"a\udcff": ["\ud83d", "\ud83d\ude00"]}') == {"a\\xff": ["?", "😀"]}
    for broken in (b"{", b"\xff", b"[" * 100_000):
        with pytest.raises(ValueError):
            well_formed_json(broken)
