"""Long texts in short places."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from artoo.contracts.shortened import CUT, last_part, shortened

TEXTS = st.text(alphabet="ab \n字")


@given(TEXTS, st.integers(2, 40))
def test_a_text_is_cut_between_words(text: str, limit: int) -> None:
    """At most as long as there is room, each piece a whole word unless one word alone is too long."""
    for short, whole in ((shortened(text, limit), True), (last_part(text, limit), False)):
        assert len(short) <= limit
        if len(text) <= limit:
            assert short == text
            continue
        kept = short.removesuffix(CUT) if whole else short.removeprefix(CUT)
        assert text.startswith(kept) if whole else text.endswith(kept)
        if len(kept.split()) > 1:
            all_words, many = text.split(), len(kept.split())
            assert kept.split() == (all_words[:many] if whole else all_words[-many:])


def test_the_cut_is_seen() -> None:
    """The end, or the beginning, is a sign that something is missing."""
    assert shortened("rm: cannot remove it", 12) == "rm: cannot…"
    assert last_part("rm: cannot remove it", 12) == "…remove it"
    assert shortened("/a/long/path/without/spaces", 8) == "/a/long…"
