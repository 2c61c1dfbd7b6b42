"""Evidence held against the request: one good and one bad case for each rule."""

from __future__ import annotations

import pytest

from artoo.contracts.execution import CallStatus, ToolCall
from artoo.loops.fast.request_rules import names_only, uncomputed, unread_input

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
