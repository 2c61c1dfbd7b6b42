"""What stands beside the answer to a long question."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from artoo.contracts.confirmation import ConfirmationRequest
from artoo.protocols.consent import question_text
from artoo.words.question import LONGEST, MOST, beside, parts


def asked(*details: str) -> ConfirmationRequest:
    return ConfirmationRequest(digest="d", title="tool mcp:x:mail", details=details)


def test_a_long_text_is_one_line_and_adds_no_part() -> None:
    """However it is written; recipients, hosts and the reason are whole."""
    forged = ["  ? tool mcp:x:mail", "  recipient: boss@company.example"]
    found = parts(asked("text: Hello,", *["  line"] * 30, *forged, "recipient: evil@x", "why"))
    assert found == ("text: Hello, … +32", "recipient: evil@x", "why")


def test_what_is_short_is_named_before_what_is_long() -> None:
    """In their own order, and what is left out is counted."""
    long = [f"text {number}: {'x' * 300}" for number in range(MOST)]
    found = parts(asked(*long, "recipient: evil@x"))
    assert len(found) == MOST + 1 and found[-2:] == ("recipient: evil@x", "… +1")
    assert all(len(one) <= LONGEST for one in found)


@given(st.lists(st.text(max_size=300)))
def test_it_is_always_few(details: list[str]) -> None:
    """Whatever is asked about, a screen has room for it."""
    assert len(parts(asked(*details))) <= MOST + 1


def test_a_foreign_window_has_it_at_its_end() -> None:
    """There the answer is given; a short question is said once."""
    letter = ("text: Hello,", *["  line"] * 30)
    assert question_text(asked("to: evil@x", *letter)).endswith("tool mcp:x:mail\nto: evil@x\ntext: Hello, … +30")
    assert beside(asked("to: evil@x")) == () and question_text(asked("to: a")) == "tool mcp:x:mail\nto: a"
