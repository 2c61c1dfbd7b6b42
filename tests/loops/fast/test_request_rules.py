"""Evidence held against the request: one good and one bad case for each rule."""

from __future__ import annotations

import pytest

from artoo.contracts.execution import CallStatus, ToolCall
from artoo.loops.fast.request_rules import (
    UNCOMPUTED,
    absent_inputs,
    left_out_endings,
    names_only,
    shown_only,
    uncomputed,
    unread_input,
)

WHICH = "One of the files here contains the text API_KEY= . Which file is it?"


def call(tool: str, text: str, output: str = "x", *, status: CallStatus = CallStatus.OK) -> ToolCall:
    identity = f"shell:{text.split()[0]}" if tool == "shell" else tool
    return ToolCall(tool=tool, identity=(identity,), target=text, input=text, output=output, status=status)


@pytest.mark.parametrize(
    "intent",
    [
        WHICH,
        "Find the file which mentions the word budget",
        'Which files contain "TODO"?',
        "List all files that include the string beta.",
        "哪个文件包含“密码”？",
        "找出含有文字 abc 的文件",
    ],
)
@pytest.mark.parametrize("looked", [call("glob", "*.env"), call("find_files", "s3.env"), call("shell", "ls -R")])
def test_names_are_no_answer_to_a_question_about_content(intent: str, looked: ToolCall) -> None:
    """A list of files does not say what is in them."""
    finding = names_only(intent, [looked])
    assert finding is not None and finding.identities == looked.identity


@pytest.mark.parametrize(
    ("intent", "calls"),
    [
        (WHICH, [call("find_text", "API_KEY=")]),
        (WHICH, [call("glob", "*.env"), call("shell", "grep -rl API_KEY= .")]),
        (WHICH, [call("glob", "*.env", status=CallStatus.ERROR)]),
        (WHICH, []),
        ("How many Python files does the directory src contain?", [call("glob", "src/**/*.py")]),
        ("Which file names contain the word test?", [call("glob", "*test*")]),
        ("列出文件名里包含“test”的文件", [call("glob", "*test*")]),
    ],
)
def test_what_may_be_answered_from_names(intent: str, calls: list[ToolCall]) -> None:
    """Content was searched, nothing ran at all, or the question is about names."""
    assert names_only(intent, calls) is None


def test_a_sum_needs_a_program() -> None:
    """Reading or finding text adds nothing up; a program does."""
    assert uncomputed("What is the sum of a.csv?", [call("read_file", "a.csv")]) is not None
    assert uncomputed("What is the sum of a.csv?", [call("python", "print(1)")]) is None
    assert uncomputed("What does a.csv say?", [call("read_file", "a.csv")]) is None


def test_a_named_file_has_to_be_read() -> None:
    """An answer from another file is none."""
    assert unread_input("How many lines has a.txt?", [call("shell", "wc -l b.txt", "2 b.txt")]) is not None
    assert unread_input("How many lines has a.txt?", [call("shell", "wc -l a.txt", "2 a.txt")]) is None


PHOTOS = "How many photos are in the folder holiday? They are the files that end in .jpg or .JPG."


@pytest.mark.parametrize(
    "intent",
    [
        "Which file in the folder drafts was changed last?",
        "What is the newest file here?",
        "Which of the files is the largest? Tell me the biggest file.",
        "drafts 里最近修改的文件是哪个?",
        "最大的日志文件是哪个?",
    ],
)
def test_names_of_files_do_not_say_which_is_newest(intent: str) -> None:
    """Times and sizes have to be looked at, which only a program does; whatever the model."""
    assert uncomputed(intent, [call("glob", "drafts/*")]) is not None
    assert uncomputed(intent, [call("shell", "ls -t drafts")]) is None


@pytest.mark.parametrize(
    ("intent", "small", "large"),
    [
        ("Which IP address made the most requests in access.log?", True, False),
        ("What is the highest rent among the flats in flats.csv?", True, False),
        ("flats.csv 里租金最高的是哪一套?", True, False),
        ("How many days lie between the first and the last entry?", True, True),
        ("Which port is set in config.json?", False, False),
        ("How many members are listed in club/members.csv?", True, False),
        ("How many files are in the folder drafts?", False, False),
        ("How many photos do I have? They end in .jpg", False, False),
        ("Show the most important line of the note.", False, False),
    ],
)
def test_a_small_model_does_not_find_the_largest_by_looking(intent: str, small: bool, large: bool) -> None:
    """What has to be counted or compared needs a program; a model of which nothing is known may have compared."""
    looked = [call("read_file", "a.csv")]
    assert (uncomputed(intent, looked, small_model=True) is not None, uncomputed(intent, looked) is not None) == (
        small,
        large,
    )


@pytest.mark.parametrize(
    ("looked", "says"),
    [
        (call("glob", "holiday/*.jpg"), "use the pattern holiday/*.{jpg,JPG}"),
        (call("shell", "find holiday -name '*.JPG' | wc -l"), ".jpg is named in the request"),
        (call("python", "print(len(list(Path('holiday').rglob('*.jpg'))))"), "look for .jpg and .JPG together"),
    ],
)
def test_every_ending_that_is_named_has_to_be_looked_for(looked: ToolCall, says: str) -> None:
    """A count of half of them is no answer; the finding says how both are found."""
    finding = left_out_endings(PHOTOS, [looked])
    assert finding is not None and says in finding.message and finding.mendable


@pytest.mark.parametrize(
    "looked",
    [
        call("glob", "holiday/*.{jpg,JPG}"),
        call("glob", "holiday/*.[jJ][pP][gG]"),
        call("shell", "find holiday -iname '*.jpg' | wc -l"),
        call("shell", r"find holiday -regex '.*\.\(jpg\|JPG\)' | wc -l"),
        call("python", "sum(p.suffix.lower() == '.jpg' for p in Path('holiday').rglob('*'))"),
        call("shell", "ls -R holiday"),
        call("glob", "holiday/*.jpg", status=CallStatus.ERROR),
    ],
)
def test_endings_that_were_looked_for_together(looked: ToolCall) -> None:
    """Either by both, by any case, or by none: then all files were seen."""
    assert left_out_endings(PHOTOS, [looked]) is None


def test_one_ending_is_enough_where_one_is_named() -> None:
    """Endings of names, versions and sentences are none."""
    for intent in ("How many .py files are there?", "Is v1.2 newer than 1.1. Yes?", "Sort a.txt into b.csv"):
        assert left_out_endings(intent, [call("glob", "*.py")]) is None


def test_seeing_a_files_name_is_not_reading_it() -> None:
    """What is in a named file is not in a list of names; a request about files may be answered from one."""
    question = "Which IP address made the most requests in access.log?"
    listed = call("glob", "*.log", "1 file matches *.log\naccess.log")
    assert unread_input(question, [listed]) is not None
    assert unread_input(question, [listed, call("shell", "sort access.log | head -1")]) is None
    assert unread_input("How many files named access.log do I have?", [listed]) is None


@pytest.mark.parametrize(
    ("intent", "answer", "answers"),
    [
        ("How many members are listed in club/members.csv?", call("find_text", "name,joined"), False),
        ("Which port is set in config.json?", call("find_text", "port"), False),
        ("Who is in guests.txt but not in replies.txt?", call("find_text", "Nora"), False),
        ("Which IP address made the most requests?", call("glob", "*.log"), False),
        (WHICH, call("find_text", "API_KEY="), True),
        ("Show the lines that contain budget", call("find_text", "budget"), True),
        ("How many Python files are in src?", call("glob", "src/*.py"), True),
        ("What does a.txt say?", call("read_file", "a.txt"), True),
        ("How many members are listed?", call("python", "print(3)"), True),
    ],
)
def test_what_a_search_printed_answers_only_where_it_can(intent: str, answer: ToolCall, answers: bool) -> None:
    """A hit on some word is no count, no port and no name; what the model says itself is held to other rules."""
    finding = shown_only(intent, "x", [answer])
    assert (finding is None) == answers
    assert finding is None or finding.rule == UNCOMPUTED
    assert shown_only(intent, "The answer is 7.", [answer]) is None


@pytest.mark.parametrize(
    ("intent", "about_existence"),
    [
        ("Is report.pdf there?", True),
        ("Are there any logs? If so, how many?", True),
        ("See if there is a backup.csv", True),
        ("How many rows are there in big.csv?", False),
        ("Sum up a.csv. Look around if it is not there.", False),
    ],
)
def test_a_count_is_no_question_of_existence(intent: str, about_existence: bool) -> None:
    """Only who asks whether something is there may be told that it is not."""
    gone = absent_inputs(intent, ["report.pdf", "big.csv", "a.csv", "backup.csv"], [])
    assert (gone is None) == about_existence
