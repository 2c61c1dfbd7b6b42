"""What a correction says about errors of programs whose remedy code knows."""

from __future__ import annotations

import pytest

from artoo.contracts.execution import CallStatus, ExecutionResult, ToolCall
from artoo.loops.fast import judging
from artoo.loops.fast.correction import correction_for
from artoo.loops.fast.remedies import remedy

BAK = "data/archive/sales.csv.bak"
TABLE = ((BAK, "id,amount"),)
BY_READER = f"""import csv

with open('{BAK}', newline='') as file:
    reader = csv.reader(file)
    total = sum(int(row[1]) for row in reader)
    print(total)"""
BY_LINE = f"""with open('{BAK}') as lines:
    print(sum(int(line.split(',')[1]) for line in lines))"""
HEADER = "ValueError: invalid literal for int() with base 10: 'amount'"


def stopped(problem: str, program: str = BY_READER, tool: str = "python") -> ToolCall:
    """A program that ended with a traceback."""
    said = f'Traceback (most recent call last):\n  File "<string>", line 5, in <module>\n{problem}\n'
    return ToolCall(
        tool=tool, identity=(tool,), input=program, status=CallStatus.ERROR, exit_code=1, error_output=said
    )


def test_a_header_is_skipped_in_the_program_s_own_names() -> None:
    """The value that is no number stands in the file's first line: the program is shown with that line skipped."""
    said = remedy(stopped(HEADER), TABLE) or ""
    assert f"the first line of {BAK} is a header (id,amount)" in said
    program = said.partition("The whole program is then:\n")[2]
    assert program == BY_READER.replace("csv.reader(file)\n", "csv.reader(file)\n    next(reader)\n")
    said = remedy(stopped("ValueError: could not convert string to float: 'amount'", BY_LINE), TABLE) or ""
    assert said.endswith(BY_LINE.replace("as lines:\n", "as lines:\n    next(lines)\n"))


def test_a_missing_import_is_added() -> None:
    """A module of the standard library, or a well-known name from one, is imported and the rest is kept."""
    program = BY_READER.removeprefix("import csv\n\n")
    said = remedy(stopped("NameError: name 'csv' is not defined", program), ()) or ""
    assert said.endswith(f"import csv\n{program}")
    said = remedy(stopped("NameError: name 'Counter' is not defined", "print(Counter('aa'))"), ()) or ""
    assert said.endswith("from collections import Counter\nprint(Counter('aa'))")
    assert remedy(stopped("NameError: name 'totl' is not defined"), ()) is None


@pytest.mark.parametrize(
    ("problem", "program", "words"),
    [
        ("ValueError: could not convert string to float: '1,204.50'", BY_LINE, ".replace(',', '')"),
        ("ValueError: invalid literal for int() with base 10: '3.5'", BY_LINE, "float"),
        ("ValueError: invalid literal for int() with base 10: '\\n'", BY_LINE, "empty"),
        ("ValueError: could not convert string to float: 'N/A'", BY_LINE, "leave such a line or cell out"),
        ("KeyError: 'Amount'", "import csv\ncsv.DictReader(open('sales.csv.bak'))", "its columns are: id, amount"),
        ("IndexError: list index out of range", BY_READER, "has 2 values (id,amount)"),
    ],
)
def test_other_errors_whose_remedy_is_known(problem: str, program: str, words: str) -> None:
    """Thousands, decimals, empty lines, words, names and numbers of columns."""
    assert words in (remedy(stopped(problem, program), TABLE) or "")


@pytest.mark.parametrize(
    ("problem", "program"),
    [
        ("KeyError: 'total'", "d = {}\nd['total']"),
        ("IndexError: list index out of range", "[][1]"),
        ("ValueError: invalid literal for int() with base 10: '12a'", BY_LINE),
        ("TypeError: unsupported operand", BY_LINE),
        ("ZeroDivisionError: division by zero", BY_LINE),
    ],
)
def test_what_is_not_known_gets_no_remedy(problem: str, program: str) -> None:
    """Where the cause may be anything, the error speaks for itself."""
    assert remedy(stopped(problem, program), TABLE) is None


def test_a_file_that_is_not_known_is_not_said_to_have_a_header() -> None:
    """Without the file's first line a word is just no number."""
    said = remedy(stopped(HEADER), (("b.csv", "x,y"), ("c.csv", "z"))) or ""
    assert "header" not in said and "is no number" in said


def test_only_what_is_a_program_is_shown_changed() -> None:
    """A shell command, and a program that would not parse, get the words alone."""
    shell = stopped("NameError: name 'csv' is not defined", "python3 -c 'print(csv)'", "shell")
    assert (remedy(shell, ()) or "").endswith("Add the line `import csv`. Leave the rest as it was.")
    broken = stopped("NameError: name 'csv' is not defined", "print(csv")
    assert "whole program" not in (remedy(broken, ()) or "")


def corrected(call: ToolCall) -> str:
    result = ExecutionResult(subtask_id="s", attempt=1, status="uncertain", output="x", tool_calls=(call,))
    failed = judging.undecided(judging.Criterion(text="c"), "x")
    signal = correction_for(result, [failed], "", first_lines=TABLE)
    assert bool(signal.prior_tool_calls) is (remedy(call, TABLE) is None)
    return f"{signal.what_to_do} [{signal.switch_from}]"


def test_a_correction_carries_the_remedy() -> None:
    """The remedy replaces the traceback, the tool stays, and the program is not among the calls to leave alone."""
    said = corrected(stopped(HEADER))
    assert "next(reader)" in said and "Traceback" not in said and said.endswith("[None]")


def test_a_refused_call_is_not_to_be_mended() -> None:
    """A call that a block turned away never ran: there is nothing in it to mend."""
    refused = ToolCall(
        tool="shell", identity=("shell:grep",), input="grep x", status=CallStatus.REFUSED, reason="it is blocked"
    )
    assert corrected(refused) == "The call was refused: it is blocked [shell]"
