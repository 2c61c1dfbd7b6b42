"""What artoo says of a result: made of its fields, in the request's language, and nothing in another one."""

from __future__ import annotations

import unicodedata

import pytest

from artoo.cli.conversation.conversation_hints import typed
from artoo.contracts.criteria import AGREES_WITH_EVIDENCE, CheckAmended, CommandSucceeds, FileExists
from artoo.contracts.findings import (
    FailedLast,
    Found,
    HeldWith,
    LeftOpen,
    NotAgreed,
    NotSeen,
    OwnValues,
    PartChecked,
    Reason,
    Remark,
    ResultFact,
    Unconfirmed,
    Unformed,
    Unjudged,
    Unread,
)
from artoo.contracts.solution import Directive, FinalResult, StoppedBy, UnmetCriterion
from artoo.words.result import ResultWords, result_words

FACTS: tuple[ResultFact, ...] = (
    Unconfirmed(looked=True),
    Unconfirmed(looked=False),
    LeftOpen(criterion="§1"),
    FailedLast(command="§2"),
    Unformed(problem="§3"),
    OwnValues(places=("§4",)),
    NotAgreed(what=("§5",)),
    Unjudged(said="§6"),
    Remark(text="§7"),
    Unconfirmed(looked=True, confirmed=("§8",)),
    Unread(checks=("§9",)),
    Unread(checks=("§10",), put_out=True),
    FailedLast(command="§11", said_no=True),
    CheckAmended(criterion="§12", before=FileExists(path="a"), after=FileExists(path="b"), reason="c"),
    PartChecked(criteria=("§13",)),
    NotSeen(notes=("§14",)),
    Unconfirmed(looked=False, files=("§15",)),
)
ENGLISH, CHINESE = result_words("en"), result_words("zh")
WORDS = pytest.mark.parametrize("words", [ENGLISH, CHINESE], ids=["en", "zh"])


def abandoned(why: StoppedBy | None, **more: object) -> FinalResult:
    return FinalResult.model_validate(
        {"task_id": "t", "summary": "", "directive": Directive.ABANDON, "stopped_by": why, **more}
    )


@WORDS
def test_there_is_a_sentence_for_every_ending(words: ResultWords) -> None:
    """Each reason to stop has words of its own; detail, output, what was tried and what comes next are there."""
    assert len({words.why_stopped(abandoned(why)) for why in StoppedBy}) == len(StoppedBy)
    for reason in set(StoppedBy) - {StoppedBy.QUESTION}:
        text = words.plain(
            abandoned(reason, detail="x7", output="out", tried=("tried it",), next_moves=("do this",))
        )
        assert all(part in text for part in ("x7", "out", "tried it", "- do this"))
    asked = words.plain(abandoned(StoppedBy.QUESTION, output="Which one?")).splitlines()
    assert asked[1] == "Which one?" and asked[-1].startswith("- ")
    (named,) = words.could(abandoned(StoppedBy.QUESTION, output="Which one?"), typed("--session s3"))
    assert 'artoo --session s3 "' in named and "artoo" not in asked[-1]
    (inside,) = words.could(abandoned(StoppedBy.QUESTION, output="Which one?"), typed(""))
    assert "artoo" not in inside


@WORDS
@pytest.mark.parametrize(
    ("why", "name"),
    [
        (StoppedBy.COST, "seconds"),
        (StoppedBy.TIME, "seconds"),
        (StoppedBy.CALLS, "calls"),
        (StoppedBy.TOKENS, "tokens"),
        (StoppedBy.MONEY, "money"),
    ],
)
def test_a_budget_is_named_as_the_surface_names_it(words: ResultWords, why: StoppedBy, name: str) -> None:
    """Options only where they can be typed; a library and a protocol have the names alone. So of what was delivered
    because no call was left for a judge."""
    unmet = (UnmetCriterion(criterion="c"),)
    unjudged = abandoned(None, directive=Directive.SUCCESS, facts=(Unjudged(said="it is spent", budget=why.value),))
    for result in (abandoned(why, unmet=unmet), unjudged):
        (move,) = words.could(result)
        assert name in move and "--" not in move and "artoo" not in move
        (on_terminal,) = words.could(result, typed())
        assert f"--budget {name}=…" in on_terminal
    late = UnmetCriterion(criterion="c", found=Reason(found=Found.OUT_OF_TIME, said="240 s"))
    of_subtask = abandoned(StoppedBy.REPLANS, unmet=(late,))
    assert "artoo" not in words.could(of_subtask)[0]
    assert "artoo config set control.time_budget_ms" in words.could(of_subtask, typed())[0]


@WORDS
def test_every_fact_has_its_line(words: ResultWords) -> None:
    """Each kind is told apart, with what it is about."""
    lines = [words.fact(fact) for fact in FACTS]
    assert len(set(lines)) == len(FACTS)
    assert all(f"§{number}" in line for number, line in enumerate(lines[2:], 1))


@WORDS
def test_a_call_that_failed_last_is_named_with_its_tool_and_why(words: ResultWords) -> None:
    """A file that could not be read is no command."""
    line = words.fact(FailedLast(command="notes.txt", tool="read_file", said="it does not exist"))
    assert "read_file: notes.txt" in line and "it does not exist" in line
    assert words is ENGLISH or "命令" not in line


@pytest.mark.parametrize("found", Found)
def test_a_reason_in_chinese_holds_no_english(found: Found) -> None:
    """Whatever code finds has a Chinese sentence; only what it is about and a tool's own words stay as they are."""
    unmet = UnmetCriterion(criterion="c", reason="English", found=Reason(found=found, subject="①", said="②"))
    said = CHINESE.reason(unmet).replace("JSON", "").replace("schema", "")
    assert not any(letter.isascii() and letter.isalpha() for letter in said)
    english = Reason(found=found, subject="①", said="②").text
    assert {"①", "②"} & set(said) == {"①", "②"} & set(english)
    assert not any(unicodedata.category(letter) == "Lo" for letter in english)


def test_a_model_s_own_reason_stays_as_it_is() -> None:
    """Only what code found is worded; a criterion that code implies has words too."""
    assert CHINESE.reason(UnmetCriterion(criterion="c", reason="表头缺失")) == "表头缺失"
    assert (
        CHINESE.criterion(AGREES_WITH_EVIDENCE) != AGREES_WITH_EVIDENCE == ENGLISH.criterion(AGREES_WITH_EVIDENCE)
    )


def test_what_was_withheld_is_named() -> None:
    """Each act, after the answer."""
    done = FinalResult(task_id="t", summary="", output="done", directive=Directive.ACCEPT, withheld=("/a", "/b"))
    first, *rest = ENGLISH.plain(done).splitlines()
    assert first == "done" and "/a" in rest[0] and "/b" in rest[1]


@WORDS
def test_a_subtask_s_time_that_ran_out_is_said_and_its_limit_named(words: ResultWords) -> None:
    """Other words of the person would not have made a model quicker; a model's own suggestions stay."""
    late = UnmetCriterion(criterion="c", found=Reason(found=Found.OUT_OF_TIME, said="240 s"))
    for why in (StoppedBy.REPLANS, StoppedBy.DIVERGENCE):
        text = words.plain(abandoned(why, unmet=(late,), next_moves=("use a quicker model",)))
        assert "control.time_budget_ms" in text and "- use a quicker model" in text
        assert words.why_stopped(abandoned(why)) not in text
    other = UnmetCriterion(criterion="c", found=Reason(found=Found.EMPTY))
    (move,) = words.could(abandoned(StoppedBy.REPLANS, unmet=(other,)))
    assert "control.time_budget_ms" not in move


def test_where_nothing_could_be_planned_nothing_is_suggested() -> None:
    """Other words of the person would not help; with something unmet they would."""
    assert ENGLISH.could(abandoned(StoppedBy.REPLANS)) == ()
    unmet = (UnmetCriterion(criterion="c"),)
    (move,) = ENGLISH.could(abandoned(StoppedBy.REPLANS, unmet=unmet))
    assert move.startswith("say more precisely")
    assert ENGLISH.could(abandoned(StoppedBy.TIME)) == ("give it more time (budget: seconds)",)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_check_that_was_replaced_is_told_in_a_few_lines(language: str) -> None:
    """A model has written both checks and the reason, a whole program perhaps: the log has all of it."""
    long = CommandSucceeds(command="print(1)\n" * 600)
    why = "because " * 700
    fact = CheckAmended(criterion="The suite passes.", before=long, after=FileExists(path="a"), reason=why)
    told = result_words(language).fact(fact)
    assert "print(1)" in told and "file_exists a" in told and len(told) < 1_500


@WORDS
def test_a_check_says_with_which_changes_it_held(words: ResultWords) -> None:
    """Pending and discarded changes are told apart."""
    pending, discarded = words.fact(HeldWith(changes="partly")), words.fact(HeldWith(changes="discarded"))
    assert pending == words.fact(HeldWith(changes="pending")) != discarded
