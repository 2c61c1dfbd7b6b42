"""What code reads in a request: facts and criteria, in English, Chinese and mixed text."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artoo.contracts.criteria import CommandSucceeds, FileExists, FileMatches, Mode, OutputIsJson, OutputMatches
from artoo.loops.medium.request_criteria import FILE_NAME, criteria_of, named_files
from artoo.loops.medium.request_facts import language_of, parse_deadline, read_request
from artoo.loops.named_files import named_directories

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Count the files within 30 seconds", 30),
        ("within the next 5 minutes, list the logs", 300),
        ("Answer in at most 2 hours", 7_200),
        ("Do it in under 10 min", 600),
        ("30 秒内告诉我文件数", 30),
        ("请在 5 分钟之内完成", 300),
        ("2小时以内整理好", 7_200),
        ("count the .py 文件, 10 分钟内", 600),
    ],
)
def test_a_span_of_time_is_a_deadline(text: str, seconds: int) -> None:
    """A span in words that bound it ends that long after now."""
    assert read_request(text, NOW).deadline == NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "deadline"),
    [
        ("Finish by 2026-01-02", datetime(2026, 1, 2, 23, 59, 59, tzinfo=UTC)),
        ("before 2026-01-02T10:00 tell me", datetime(2026, 1, 2, 10, 0, tzinfo=UTC)),
        ("no later than 2026-01-02 10:00:30Z", datetime(2026, 1, 2, 10, 0, 30, tzinfo=UTC)),
        ("deadline: 2026-01-02T10:00+02:00", datetime(2026, 1, 2, 10, 0, tzinfo=timezone(timedelta(hours=2)))),
        ("截止 2026-01-02 列出文件", datetime(2026, 1, 2, 23, 59, 59, tzinfo=UTC)),
        ("在 2026-01-02 之前完成", datetime(2026, 1, 2, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_a_date_is_a_deadline_where_words_make_it_one(text: str, deadline: datetime) -> None:
    """A date after `by`, `before`, 截止 or 在…之前 is a deadline; without a time it means the end of the day."""
    assert read_request(text, NOW).deadline == deadline


@pytest.mark.parametrize(
    "text",
    [
        "List the files sorted by name",
        "Sort by size, then by date",
        "Show the file written by Ann",
        "What is in 2026-01-02.log?",
        "Which files changed on 2026-01-02?",
        "在 2026-01-02 的日志里找错误",
        "How many minutes are 300 seconds?",
        "Count the lines before the first blank one",
        "Replace tabs by spaces",
        "Wait 5 seconds, then print the time",
        "视频有 5 分钟长吗？",
        "Multiply 2 by 10",
        "step by step",
        "How long until the disk is full?",
    ],
)
def test_what_is_no_deadline(text: str) -> None:
    """Words that merely look like one set no deadline, and no model is asked about them."""
    facts = read_request(text, NOW)
    assert (facts.deadline, facts.hinted) == (None, False)


@pytest.mark.parametrize(
    "text",
    [
        "Do it by tomorrow",
        "before Monday",
        "by 5 pm",
        "until 17:30",
        "by end of day",
        "The deadline is near",
        "明天之前完成",
        "周五下午前给我",
        "截止时间快到了",
        "It is restricted to the docs",
    ],
)
def test_what_only_a_model_can_read(text: str) -> None:
    """A limit that code recognises but cannot read is a hint: R1 asks its model."""
    facts = read_request(text, NOW)
    assert facts.hinted and facts.deadline is None


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("Search for TODO only in src/artoo", "src/artoo"),
        ("only under the folder 'docs'", "docs"),
        ("look only inside tests/", "tests/"),
        ("只在 src 目录里找", "src"),
        ("仅限于 docs/ 文件夹", "docs/"),
        ("Search for TODO in src", None),
        ("If only I knew", None),
    ],
)
def test_scope(text: str, scope: str | None) -> None:
    """`only in` a place is a scope; a place alone is none."""
    assert read_request(text, NOW).scope == scope


@pytest.mark.parametrize(
    ("text", "corrects"),
    [
        ("Wrong, it is 7", True),
        ("That's wrong.", True),
        ("No, that is not correct", True),
        ("It was incorrect", True),
        ("No, you are wrong", True),
        ("The last answer is wrong", True),
        ("错了，应该是 7", True),
        ("不对", True),
        ("结果不对，再数一遍", True),
        ("What is wrong with app.py?", False),
        ("Find the wrong lines", False),
        ("Is that right?", False),
        ("哪里错了？", False),
        ("Fix the false positives", False),
    ],
)
def test_corrections(text: str, corrects: bool) -> None:
    """ "Wrong" about the last result is a correction; a question about something wrong is none."""
    assert read_request(text, NOW).corrects is corrects


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How many files?", "en"),
        ("有多少文件？", "zh"),
        ("帮我看看 README.md 写了什么", "zh"),
        ("Count the lines of 数据.txt", "en"),
        ("", "en"),
        ("12345", "en"),
        ("统计 src 下的 Python files 数量", "zh"),
    ],
)
def test_language(text: str, language: str) -> None:
    """Chinese characters carry a sentence that also holds Latin names; a Chinese file name carries none."""
    assert language_of(text) == language


@given(st.text(max_size=300))
@settings(deadline=None, max_examples=150)
def test_any_text_can_be_read(text: str) -> None:
    """Reading facts, files and criteria never raises, and a deadline always has a zone."""
    facts = read_request(text, NOW)
    assert facts.deadline is None or facts.deadline.tzinfo is not None
    files = named_files(text)
    assert not set(files.outputs) & set(files.inputs)
    assert all(criterion.check is not None for criterion in criteria_of(text))


@given(st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1)))
@settings(deadline=None, max_examples=50)
def test_written_times_are_read_back(moment: datetime) -> None:
    """What isoformat writes is read as the same moment in the zone of now."""
    assert parse_deadline(moment.isoformat(), NOW) == moment.replace(tzinfo=UTC)


def test_what_is_no_time_is_no_deadline() -> None:
    """None, nothing and nonsense from a model are no deadline."""
    assert [parse_deadline(text, NOW) for text in (None, "", "soon", "2026-13-40")] == [None] * 4


@pytest.mark.parametrize(
    ("request_text", "outputs", "inputs"),
    [
        ("Write the sum of data.csv to out.txt", ("out.txt",), ("data.csv",)),
        ("Create report.json from sales.csv", ("report.json",), ("sales.csv",)),
        ("Convert in.csv into out.json", ("out.json",), ("in.csv",)),
        ("Save the list as list.md", ("list.md",), ()),
        ("How many lines has notes.txt?", (), ("notes.txt",)),
        ("What is written in notes.txt?", (), ("notes.txt",)),
        ("Find the errors in app.log and write them to errors.txt.", ("errors.txt",), ("app.log",)),
        ("把 data.csv 的总和写到 out.txt", ("out.txt",), ("data.csv",)),
        ("创建文件 hello.py", ("hello.py",), ()),
        ("main.py 里有几个函数？", (), ("main.py",)),
    ],
)
def test_named_files(request_text: str, outputs: tuple[str, ...], inputs: tuple[str, ...]) -> None:
    """Files that are to be made are told from files that are taken to exist."""
    files = named_files(request_text)
    assert (files.outputs, files.inputs) == (outputs, inputs)


def checks(text: str) -> list[object]:
    return [criterion.check for criterion in criteria_of(text)]


@pytest.mark.parametrize(
    ("request_text", "expected"),
    [
        ("How many files are there?", [OutputMatches(regex=r"\d")]),
        ("有几个文件？", [OutputMatches(regex=r"\d")]),
        ("What is the average of data.csv?", [OutputMatches(regex=r"\d")]),
        ("Give the mean with 2 decimals", [OutputMatches(regex=r"\d\.\d{2}(?!\d)")]),
        ("平均值是多少，保留两位小数", [OutputMatches(regex=r"\d\.\d{2}(?!\d)")]),
        ("Which file mentions TODO?", [OutputMatches(regex=FILE_NAME)]),
        ("List the users as JSON", [OutputIsJson()]),
        ("Write hello to a.txt", [FileExists(path="a.txt")]),
        (
            "Create a.json with an empty object",
            [FileExists(path="a.json"), CommandSucceeds(command="python3 -m json.tool 'a.json'")],
        ),
        ("Explain recursion", []),
        ("What does README.md say?", []),
    ],
)
def test_criteria_follow_from_the_words(request_text: str, expected: list[object]) -> None:
    """Every file, kind of number and format that a request names has a criterion with a check, and nothing else."""
    assert checks(request_text) == expected
    assert all(criterion.mode is Mode.VERIFIABLE for criterion in criteria_of(request_text))


def test_lines_of_a_file_are_checked() -> None:
    """A demanded number of lines is checked, and the lines themselves where the request lists them."""
    _, listed = criteria_of("Write a file abc.txt with exactly three lines: alpha, beta, gamma")
    assert isinstance(listed.check, FileMatches) and "alpha" in listed.check.regex
    _, counted = criteria_of("Create list.txt with exactly 3 lines")
    assert isinstance(counted.check, FileMatches) and "{2}" in counted.check.regex


def test_a_quote_in_a_path_cannot_leave_its_command() -> None:
    """The command of a check quotes its path for the shell."""
    for criterion in criteria_of("Create a file named it's.json"):
        if isinstance(criterion.check, CommandSucceeds):
            assert criterion.check.command.count("'") % 2 == 0


@pytest.mark.parametrize("word", ["x" * 200_000, "a/" * 100_000, "a." * 100_000])
def test_a_very_long_word_is_read_at_once(word: str) -> None:
    """Data in a request is no file name, and does not make the search for names take minutes."""
    found = named_files(f"Count the letters of {word} and write them to n.txt")
    assert found.outputs == ("n.txt",) and found.inputs == ()
    assert named_directories(word) == ()


@pytest.mark.parametrize(
    ("request_text", "good", "bad"),
    [
        (
            "Convert t.txt to Fahrenheit and save it, one per line with one decimal, in the new file f.txt.",
            ("70.7\n-26.6\n1,212.0\n", "70.7"),
            ("70.7\n98.96\n", "70.7\n32\n", "", "70.7 F\n"),
        ),
        (
            "Write the average of a.csv to two decimals into the file mean.txt",
            ("mean: 3.14\n", "3.14"),
            ("3.1\n", "3.141\n", "three\n"),
        ),
    ],
)
def test_decimals_of_a_file_are_looked_for_in_the_file(
    request_text: str, good: tuple[str, ...], bad: tuple[str, ...]
) -> None:
    """With a number on each line every line is held to it; else one number has to have them."""
    found = [check for check in checks(request_text) if isinstance(check, FileMatches)]
    assert len(found) == 1
    assert all(re.search(found[0].regex, text) for text in good)
    assert not any(re.search(found[0].regex, text) for text in bad)


@pytest.mark.parametrize(
    ("request_text", "good", "bad"),
    [
        ("Which IP address made the most requests in access.log?", "10.0.0.7", "1 file matches *.log"),
        ("What is the IP of the router?", "fe80::1", "the router"),
        ("What is Lena's email address?", "lena@example.org", "Lena"),
    ],
)
def test_an_answer_is_of_the_kind_that_was_asked_for(request_text: str, good: str, bad: str) -> None:
    """Whoever asks for an address gets one, or is told that there is none."""
    found = [check for check in checks(request_text) if isinstance(check, OutputMatches)]
    assert all(re.search(check.regex, good) for check in found) and found
    assert not all(re.search(check.regex, bad) for check in found)


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ("chapter2.txt", True),
        ("in drafts/quotes", True),
        ("2024.log", True),
        ("说明.txt", True),
        ("1716275700.0000000000", False),
        ("the last one", False),
        ("12.5 and 3.4", False),
    ],
)
def test_a_figure_is_no_name_of_a_file(answer: str, names: bool) -> None:
    """Who asks which file it is does not want to hear when it was changed."""
    (check,) = checks("Which file in the folder drafts was changed last?")
    assert isinstance(check, OutputMatches)
    assert (re.search(check.regex, answer) is not None) == names
