"""Labels of kinds of request, the request beside a subtask, and the fields of a call's cost."""

from __future__ import annotations

from artoo.contracts.events import Spent, spent_by
from artoo.contracts.plan import SubTask
from artoo.contracts.tags import Pair, label_of, macro_pair, relabelled, request_pair, words_of


def test_a_pair_names_its_kind_and_can_be_renamed() -> None:
    """A pair of a tool names none, and stays as it is."""
    kind, asked, other = macro_pair("count lines"), request_pair("count lines"), Pair("tool:shell", "env:local")
    assert (label_of(kind), label_of(asked), label_of(other)) == ("count_lines", "count_lines", None)
    assert relabelled(kind, "count_lines", "count") == macro_pair("count")
    assert relabelled(asked, "count_lines", "count") == request_pair("count")
    assert relabelled(other, "count_lines", "count") == other


def test_words_are_kept_once_and_a_text_without_words_has_a_name() -> None:
    """In order; signs alone are named by their digest, and nothing at all is `none`."""
    assert words_of("Count lines, count words") == ("count", "lines", "words")
    assert label_of(macro_pair("!!")) == label_of(macro_pair("!!")) != label_of(macro_pair(""))


def test_a_subtask_is_given_the_request_where_its_intent_says_something_else() -> None:
    """Once, and with the context below it."""
    own = SubTask.model_construct(intent="a", request="b", context="c", part=False)
    assert own.given == "The request: b\nc"
    assert own.model_copy(update={"request": "a"}).given == "c"


def test_what_asking_cost_is_read_by_the_common_fields() -> None:
    """As an answer, an error and the log have them."""
    assert spent_by(Spent())["requests"] == Spent().requests
