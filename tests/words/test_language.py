"""In which language artoo's own sentences are."""

from __future__ import annotations

import pytest

from artoo.words.language import language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How many lines has 数据.txt?", "en"),
        ("数据.txt 有多少行？", "zh"),
        ("请 count", "zh"),
        ("このファイルは何行ですか", "en"),
        ("Quantas linhas?", "en"),
        ("", "en"),
    ],
)
def test_the_script_that_carries_a_text_tells_its_language(text: str, language: str) -> None:
    """Names in the other script do not outvote it; where there are no sentences yet, they are English."""
    assert language_of(text) == language
