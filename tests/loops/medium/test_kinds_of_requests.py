"""Which kind a request is of, by its words: pure functions."""

from __future__ import annotations

from artoo.contracts.memory import KnownRequest
from artoo.loops.medium.kinds import kinds_of


def known(**kinds: str) -> list[KnownRequest]:
    """Requests by the label of their kind."""
    return [KnownRequest(text=text, label=label) for label, text in kinds.items()]


MANY = known(
    count_lines="How many lines has a.csv?",
    sum_of_column="What is the total of the column price in b.csv?",
    first_error="What is the first ERROR in app.log?",
    sort_pages="Sort the pages of the ledger",
    年度报告="统计年度报告的字数",
)


def test_the_most_similar_request_decides() -> None:
    """A request that differs in a name is of the same kind, whatever else begins like it."""
    assert kinds_of("How many lines has other.csv?", MANY).guess == "count_lines"
    assert kinds_of("What is the total of the column tax in c.csv?", MANY).guess == "sum_of_column"
    assert kinds_of("统计年度报告的行数", MANY).guess == "年度报告"


def test_common_words_say_little() -> None:
    """What many requests begin with makes no two of them alike."""
    found = kinds_of("What is the capital of France?", MANY)
    assert not found.is_known and found.guess == "what_capital_france"


def test_a_drafted_label_wins() -> None:
    """A model's label is normalised; an empty one leaves the guess."""
    found = kinds_of("How many lines has other.csv?", MANY)
    assert found.chosen("Count the Lines, please!") == "count_the_lines_please"
    assert found.chosen(" . ") == "count_lines"


def test_a_key_is_no_label() -> None:
    """Words with digits do not get into a coined label, however rare they are."""
    assert kinds_of("9fK3jd82 h7aBcD4e deploy", MANY).guess == "deploy"
