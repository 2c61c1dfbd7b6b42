"""What to change in a program that stopped with one of the errors whose remedy code can know.

    error + program + first lines of files ──► what is wrong, what to change, and where that is sure the program
                                               with just that change

A small model repeats a program whatever the error says, and copies what it is shown: so it is shown its own names,
never a recipe with blanks. What cannot be known gets no remedy.
"""

from __future__ import annotations

import ast
import csv
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from artoo.contracts.execution import CallStatus, ToolCall

FirstLine = tuple[str, str]
"""A file's path and its first line."""

_LONGEST_PROGRAM = 1_500
_SHOWN = 80
_NOT_DEFINED = re.compile(r"NameError: name '(\w+)' is not defined")
_NO_NUMBER = re.compile(
    r"ValueError: (?:invalid literal for int\(\) with base \d+|could not convert string to float): (['\"])(.*)\1"
)
_NO_KEY = re.compile(r"KeyError: (['\"])(.*)\1")
_NO_INDEX = re.compile(r"IndexError: list index out of range")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL = re.compile(r"[-+]?\d*\.\d+")
_READER = re.compile(r"^(?P<indent>[ \t]*)(?P<name>\w+)\s*=\s*csv\.reader\(.*\)[ \t]*$", re.MULTILINE)
_OPENED = re.compile(r"^(?P<indent>[ \t]*)with open\(.*\) as (?P<name>\w+):[ \t]*\n(?P<inner>[ \t]+)", re.MULTILINE)
_READS_TABLE = re.compile(r"\bcsv\.\w*[rR]eader\b")
_WELL_KNOWN = {
    "Counter": "collections",
    "defaultdict": "collections",
    "Path": "pathlib",
    "mean": "statistics",
    "median": "statistics",
    "Decimal": "decimal",
    "reduce": "functools",
}


def remedy(call: ToolCall, first_lines: Sequence[FirstLine]) -> str | None:
    """What to change so that this failed call succeeds; None when code does not know."""
    if call.status is not CallStatus.ERROR:
        return None
    problem = _last_line(call.error_output or call.reason or "")
    for cure in (_import, _number, _columns, _values):
        found = cure(problem, call, _about(call, first_lines))
        if found is not None:
            return f"The program stopped: {problem}\n{found}"
    return None


def _import(problem: str, call: ToolCall, known: Sequence[FirstLine]) -> str | None:
    missing = _NOT_DEFINED.search(problem)
    name = missing[1] if missing else ""
    if name in sys.stdlib_module_names:
        line = f"import {name}"
    elif name in _WELL_KNOWN:
        line = f"from {_WELL_KNOWN[name]} import {name}"
    else:
        return None
    return _with_program(f"Add the line `{line}`.", call, lambda program: f"{line}\n{program}")


def _number(problem: str, call: ToolCall, known: Sequence[FirstLine]) -> str | None:
    found = _NO_NUMBER.search(problem)
    if found is None:
        return None
    text = found[2].replace("\\n", "").replace("\\t", " ").strip()
    shown = repr(text[:_SHOWN])
    for path, line in known:
        if text and text in (line.strip(), *_cells(line)) and not _numeric(text):
            return _without_header(path, line, shown, call)
    if not text:
        return "An empty line or cell is no number: leave it out."
    if _THOUSANDS.fullmatch(text):
        return f"{shown} has a comma between the thousands: remove it with .replace(',', '') before the conversion."
    if _DECIMAL.fullmatch(text) and "int()" in problem:
        return f"{shown} is a decimal number: convert it with float, not with int."
    return f"{shown} is no number: leave such a line or cell out." if not any(map(str.isdigit, text)) else None


def _without_header(path: str, line: str, shown: str, call: ToolCall) -> str:
    said = f"{shown} is no number: the first line of {path} is a header ({line.strip()[:_SHOWN]})."
    reader = _READER.search(call.input)
    if reader is not None:
        skip = f"next({reader['name']})"
        added = f"{call.input[: reader.end()]}\n{reader['indent']}{skip}{call.input[reader.end() :]}"
        return _with_program(f"{said} Skip it: {skip} right after the reader is made.", call, lambda _: added)
    opened = _OPENED.search(call.input)
    if opened is not None and not _READS_TABLE.search(call.input):
        skip = f"next({opened['name']})"
        start = opened.end() - len(opened["inner"])
        added = f"{call.input[:start]}{opened['inner']}{skip}\n{call.input[start:]}"
        return _with_program(f"{said} Skip it: {skip} first.", call, lambda _: added)
    return f"{said} Leave that line out."


def _columns(problem: str, call: ToolCall, known: Sequence[FirstLine]) -> str | None:
    found = _NO_KEY.search(problem)
    if found is None or "DictReader" not in call.input:
        return None
    tables = [(path, cells) for path, line in known if len(cells := _cells(line)) > 1 and found[2] not in cells]
    if not tables:
        return None
    path, cells = tables[0]
    columns = ", ".join(cells)[:200]
    return f"{path} has no column {found[2][:_SHOWN]!r}; its columns are: {columns}. Use one of these names."


def _values(problem: str, call: ToolCall, known: Sequence[FirstLine]) -> str | None:
    if not _NO_INDEX.search(problem) or not known or not re.search(r"csv\.reader|\.split\(", call.input):
        return None
    path, line = known[0]
    cells = _cells(line)
    if len(cells) == 1:
        return f"A line of {path} holds one value alone, such as {line.strip()[:_SHOWN]!r}: its index is 0."
    return (
        f"A line of {path} has {len(cells)} values ({line.strip()[:_SHOWN]}), and the first has the index 0. "
        "Leave out lines that have fewer."
    )


def _with_program(said: str, call: ToolCall, change: Callable[[str], str]) -> str:
    """The words, and the program with the change made when that is sure to be a program."""
    program = change(call.input)
    if call.tool != "python" or len(program) > _LONGEST_PROGRAM or not _parses(program):
        return f"{said} Leave the rest as it was."
    return f"{said} The whole program is then:\n{program}"


def _about(call: ToolCall, first_lines: Sequence[FirstLine]) -> list[FirstLine]:
    """The files that the program names; the only one that is known when it names none of them."""
    named = [each for each in first_lines if PurePosixPath(each[0]).name in call.input]
    return named or (list(first_lines) if len(first_lines) == 1 else [])


def _cells(line: str) -> list[str]:
    delimiter = max(",;\t|", key=line.count)
    try:
        return [cell.strip() for row in csv.reader([line.strip()], delimiter=delimiter) for cell in row]
    except csv.Error:
        return []


def _numeric(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


def _parses(program: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(program)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")[:300]
