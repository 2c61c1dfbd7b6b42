"""A named file that names another one: what counts as having read it, and when that is missed."""

from __future__ import annotations

import pytest

from artoo.contracts.execution import CallStatus, ToolCall
from artoo.loops.fast.pointed import asks_what_is_named
from artoo.loops.fast.request_rules import unread_input

ASKED = (
    "The file latest.txt contains the name of a data file in the directory data. "
    "What is the sum of the numbers in that data file?"
)
POINTS = (("latest.txt", "data/mar.txt"),)


def ran(tool: str, text: str, output: str = "5") -> ToolCall:
    identity = f"shell:{text.split()[0]}" if tool == "shell" else tool
    return ToolCall(tool=tool, identity=(identity,), target=text, input=text, output=output, status=CallStatus.OK)


@pytest.mark.parametrize(
    "intent",
    [
        ASKED,
        "latest.txt holds the path of a file; count the lines of that file.",
        "What is the sum of the numbers in the file named in latest.txt?",
        "How many lines has the file whose name is in latest.txt?",
        "How many lines has the file that latest.txt points to?",
        "latest.txt 里有一个数据文件的名字，那个文件里的数字之和是多少？",
        "latest.txt 指向的文件有多少行？",
    ],
)
def test_requests_about_the_file_that_is_named(intent: str) -> None:
    """The request leads from the name to the file behind it."""
    assert asks_what_is_named(intent, "latest.txt")
    wrong = unread_input(intent, [ran("python", "print(sum(map(int, open('data/apr.txt'))))")], POINTS)
    assert wrong is not None and wrong.mendable
    assert wrong.message == "latest.txt names data/mar.txt, which was not read; read data/mar.txt"


@pytest.mark.parametrize(
    "intent",
    [
        "Write the lines of latest.txt in order to sorted.txt",
        "How many file names are in latest.txt?",
        "Copy latest.txt to backup.txt",
        "latest.txt contains the name of a data file. Write that file's name in capitals to out.txt",
        "latest.txt contains the name of a data file. What is it?",
        "Show the file latest.txt",
        "latest.txt 里的文件名是什么？",
    ],
)
def test_requests_about_the_list_itself(intent: str) -> None:
    """A list of names may be sorted, counted, copied or shown without opening what it names."""
    assert not asks_what_is_named(intent, "latest.txt")
    assert unread_input(intent, [ran("shell", "sort latest.txt")], POINTS) is None


@pytest.mark.parametrize(
    "call",
    [
        ran("python", "print(sum(map(int, open('data/mar.txt'))))"),
        ran("shell", "awk '{s+=$1} END {print s}' data/mar.txt"),
        ran("shell", "awk '{s+=$1} END {print s}' data/*.txt"),
        ran("shell", "awk '{s+=$1} END {print s}' data/$(cat latest.txt)"),
        ran("shell", "cat latest.txt | xargs -I{} cat data/{}"),
        ran("python", "n = open('latest.txt').read().strip()\nprint(sum(map(int, open('data/' + n))))"),
        ran("shell", "grep -r . data", "data/mar.txt:1\ndata/apr.txt:2"),
    ],
)
def test_reading_what_is_named_deals_with_both(call: ToolCall) -> None:
    """Directly, by a pattern, or by a program that reads the name and may go on to the file."""
    assert unread_input(ASKED, [call], POINTS) is None


@pytest.mark.parametrize(
    "call",
    [
        ran("read_file", "latest.txt", "mar.txt"),
        ran("shell", "wc -l latest.txt", "1 latest.txt"),
        ran("glob", "data/*.txt", "data/mar.txt"),
        ran("shell", "ls data", "mar.txt"),
        ran("find_text", "mar.txt", "latest.txt:1: mar.txt"),
        ran("python", "print(open('latest.txt').read())", "mar.txt"),
    ],
)
def test_its_name_alone_is_not_the_file(call: ToolCall) -> None:
    """Listing files, or reading the name, is not reading the file."""
    found = unread_input(ASKED, [call], POINTS)
    assert found is not None and "data/mar.txt" in found.message


def test_without_a_pointer_the_named_file_itself_is_wanted() -> None:
    """The old rule stands, and several names are in doubt."""
    call = ran("python", "print(open('data/apr.txt').read())")
    found = unread_input(ASKED, [call])
    assert found is not None and found.message.startswith("latest.txt is named in the request but was not read")
    several = (*POINTS, ("latest.txt", "data/apr.txt"))
    assert unread_input(ASKED, [call], several) is None
