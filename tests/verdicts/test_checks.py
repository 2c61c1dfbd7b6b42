"""The six executable checks."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from artoo.contracts.criteria import (
    Check,
    CommandSucceeds,
    Criterion,
    FileExists,
    FileMatches,
    OutputIsJson,
    OutputMatches,
    ToolSucceeded,
)
from artoo.contracts.execution import CallStatus, ToolCall
from artoo.contracts.failure import FailureClass
from artoo.contracts.findings import Reason
from artoo.ports.evidence import CommandView, FileView, Language, Trial
from artoo.verdicts.checks import CheckResult, cannot_fail, names, run_check
from artoo.verdicts.judging import correction_for, from_check
from records import result


@dataclass
class Source:
    """Files and command results from dictionaries."""

    files: dict[str, FileView] = field(default_factory=dict[str, FileView])
    commands: dict[str, CommandView] = field(default_factory=dict[str, CommandView])

    async def file(self, path: str) -> FileView:
        return self.files.get(path, FileView(exists=False))

    async def command(self, command: str) -> CommandView:
        return self.commands[command]

    async def trial(self, language: Language, program: str) -> Trial:
        raise NotImplementedError  # no check needs one

    async def difference(self, limit: int = 0) -> str:
        raise NotImplementedError  # no check looks at it


async def check(it: Check, output: str = "", *calls: ToolCall, source: Source | None = None) -> CheckResult:
    return await run_check(it, output=output, tool_calls=calls, source=source or Source())


def call(tool: str = "shell", status: CallStatus = CallStatus.OK, **more: object) -> ToolCall:
    return ToolCall.model_validate({"tool": tool, "identity": (tool,), "status": status, **more})


async def test_tool_succeeded_wants_a_call() -> None:
    """Without a call, or without one of the named tool, the check fails."""
    assert not (await check(ToolSucceeded())).passed
    assert not (await check(ToolSucceeded(tool="glob"), "", call())).passed


@pytest.mark.parametrize(
    ("last", "passed", "why"),
    [
        (call(), True, None),
        (call(status=CallStatus.TIMEOUT), False, FailureClass.ENVIRONMENTAL),
        (call(exit_code=2, error_output="usage: x"), False, FailureClass.LOGICAL),
        (call(status=CallStatus.ERROR, reason="Permission denied"), False, FailureClass.ENVIRONMENTAL),
        (call(dropped=("a.txt",)), False, FailureClass.ENVIRONMENTAL),
    ],
)
async def test_tool_succeeded_judges_the_last_call(last: ToolCall, passed: bool, why: FailureClass | None) -> None:
    """The last call decides; a withheld change is a failed act; the failing call's identities are cited."""
    result = await check(ToolSucceeded(), "", call(), last)
    assert (result.passed, result.failure_class) == (passed, why)
    assert result.identities == (() if passed else ("shell",))


@pytest.mark.parametrize(
    ("regex", "passed"), [("b+", True), ("^z", False), ("(", False), ("(?:a|aa)+$", False), ("a" * 3000, False)]
)
async def test_output_matches_is_bounded(regex: str, passed: bool) -> None:
    """A bad, endless or oversized expression gives no verdict, never an exception or a hang."""
    result = await check(OutputMatches(regex=regex), "a" * 40 + "b!")
    assert (result.passed, result.decided) == (passed, passed or regex == "^z")
    assert result.evidence
    assert passed or result.failure_class is FailureClass.LOGICAL


@pytest.mark.parametrize(
    ("regex", "passed"),
    [
        ("^Miete 920 im Monat$", True),
        ("^Strom 80$", True),
        ("^Miete 920$", False),
        (r"\AMiete 920 im Monat\Z", False),
        (r"\A.*\n.*\Z", True),
    ],
)
async def test_a_regex_is_of_lines(regex: str, passed: bool) -> None:
    """`^` and `$` are those of a line, in an answer and in a file of either line end; \\A and \\Z are of it all."""
    text = "Miete 920 im Monat\nStrom 80"
    assert (await check(OutputMatches(regex=regex), text)).passed is passed
    for written in (text, text.replace("\n", "\r\n")):
        source = Source({"f": FileView(exists=True, text=written)})
        assert (await check(FileMatches(path="f", regex=regex), source=source)).passed is passed


SCHEMA: dict[str, object] = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("output", "schema", "passed"),
    [
        (' {"n": 1}\n', None, True),
        ("```json\n{}\n```", None, False),
        ("NaN", None, False),
        ("[" * 100_000, None, False),
        ("x" * 1_000_001, None, False),
        ('{"n": 1}', SCHEMA, True),
        ('{"n": "1"}', SCHEMA, False),
        ("{}", SCHEMA, False),
        ('"abc"', {"type": "string", "pattern": "^a"}, True),
        ('"xbc"', {"type": "string", "pattern": "^a"}, False),
        ("1", {"pattern": "^a"}, True),
        (f'"{"a" * 60}!"', {"pattern": "(a+)+$"}, False),
        ('"a"', {"pattern": "("}, False),
        ("{}", {"patternProperties": {"^a": {}}}, False),
        ("1", {"type": "nonsense"}, False),
        ("1" * 400, {"multipleOf": 0.1}, False),
        ("1", {"$ref": "http://example.invalid/schema.json"}, False),
    ],
)
async def test_output_is_json(output: str, schema: dict[str, object] | None, passed: bool) -> None:
    """One JSON value and nothing round it; schemas are applied offline and within bounds."""
    result = await check(OutputIsJson(schema=schema), output)
    assert result.passed is passed, result.evidence


@pytest.mark.parametrize(
    ("view", "exists", "matches", "why"),
    [
        (FileView(exists=True, size=3, text="abc"), True, True, None),
        (FileView(exists=True, size=3, text="xyz"), True, False, FailureClass.LOGICAL),
        (FileView(exists=True, is_directory=True), True, False, FailureClass.LOGICAL),
        (FileView(exists=True, size=9), True, False, FailureClass.LOGICAL),
        (FileView(exists=True, size=9, problem="it is not text"), True, False, FailureClass.ENVIRONMENTAL),
        (FileView(exists=False), False, False, FailureClass.LOGICAL),
        (FileView(exists=False, problem="permission denied"), False, False, FailureClass.ENVIRONMENTAL),
    ],
)
async def test_files(view: FileView, exists: bool, matches: bool, why: FailureClass | None) -> None:
    """Missing, unreadable, binary files and directories each give a verdict of their own."""
    source = Source(files={"f": view})
    assert (await check(FileExists(path="f"), source=source)).passed is exists
    result = await check(FileMatches(path="f", regex="b"), source=source)
    assert (result.passed, result.failure_class) == (matches, why)


@pytest.mark.parametrize(("regex", "passed"), [("(?m)^a$", True), ("a\nb", True), ("a\r\nb", True), ("a.b", False)])
async def test_the_end_of_a_line_is_one_in_a_file_with_crlf_too(regex: str, passed: bool) -> None:
    """A file keeps its line ends, and a pattern is written without knowing them."""
    source = Source({"f": FileView(exists=True, text="a\r\nb\r\n")})
    assert (await check(FileMatches(path="f", regex=regex), source=source)).passed is passed


@pytest.mark.parametrize(
    ("view", "passed", "why"),
    [
        (CommandView(0, "fine"), True, None),
        (CommandView(1, "assertion failed"), False, FailureClass.LOGICAL),
        (CommandView(1, "x: Permission denied"), False, FailureClass.ENVIRONMENTAL),
        (CommandView(None, "", "timed out"), False, FailureClass.ENVIRONMENTAL),
        (CommandView(127, "bash: lint: command not found"), False, FailureClass.ENVIRONMENTAL),
    ],
)
async def test_command_succeeds(view: CommandView, passed: bool, why: FailureClass | None) -> None:
    """The exit code decides; one that did not end by itself, or cannot run, is the world's fault."""
    result = await check(CommandSucceeds(command="c"), source=Source(commands={"c": view}))
    assert (result.passed, result.failure_class) == (passed, why)


async def test_a_failed_check_alone_is_corrected_with_both_ends_of_both_streams() -> None:
    """A test tells what failed at the end of its output, and what it warned of among the errors."""
    output, errors = "first\n" + "x\n" * 2_000 + "E assert 3 == 2\n", "warned\n" + "w\n" * 2_000 + "the last\n"
    view = CommandView(1, output + errors, errors=errors)
    failed = from_check(
        Criterion(text="c"), await check(CommandSucceeds(command="c"), source=Source(commands={"c": view}))
    )
    told = correction_for(result(), [failed]).what_was_wrong
    assert all(each in told for each in ("first", "E assert 3 == 2", "warned", "the last"))
    two = correction_for(result(), [failed, from_check(Criterion(text="d"), CheckResult(False, "x " * 2_500))])
    assert len(two.what_was_wrong) < 1_800


async def test_of_a_long_output_the_cause_at_its_end_is_kept() -> None:
    """A test runner says first what it runs and last what failed."""
    view = CommandView(1, "begun\n" + "collecting things\n" * 200 + "NameError: rabatt\n")
    evidence = (await check(CommandSucceeds(command="c"), source=Source(commands={"c": view}))).evidence
    assert isinstance(evidence, Reason)
    assert "1: begun" in evidence.text and "NameError: rabatt" in evidence.text and len(evidence.text) < 900


async def test_a_warning_beside_a_failure_does_not_hide_it() -> None:
    """The end of what was printed and the end of what was printed as errors are two places."""
    printed = "collecting\n" * 200 + "E assert 1 == 2\n"
    warned = "warnings.warn(\n" * 100 + "DeprecationWarning: old\n"
    view = CommandView(1, printed + warned, errors=warned)
    evidence = (await check(CommandSucceeds(command="c"), source=Source(commands={"c": view}))).evidence
    assert isinstance(evidence, Reason)
    assert "E assert 1 == 2" in evidence.text and "DeprecationWarning: old" in evidence.text


@pytest.mark.parametrize(
    ("said", "met", "never_made", "why"),
    [
        ("cat: data.csv: No such file or directory", True, (), FailureClass.ENVIRONMENTAL),
        ("cat: data.csv: No such file or directory", False, (), FailureClass.LOGICAL),
        ("cat: data.csv: No such file or directory", True, ("out.csv",), FailureClass.ENVIRONMENTAL),
        ("FileNotFoundError: [Errno 2] x: '/tmp/p/out.csv'", True, ("out.csv",), FailureClass.LOGICAL),
        ("cat: out.csv: Permission denied", False, ("out.csv",), FailureClass.ENVIRONMENTAL),
    ],
)
async def test_what_a_command_does_not_find(
    said: str, met: bool, never_made: tuple[str, ...], why: FailureClass
) -> None:
    """It is the world's lack where a call has met one too; what was to be made, or nobody missed, was left out."""
    calls = [call(status=CallStatus.ERROR, error_output="cat: data.csv: No such file or directory")] if met else []
    result = await run_check(
        CommandSucceeds(command="c"),
        output="",
        tool_calls=calls,
        source=Source(commands={"c": CommandView(1, said)}),
        never_made=never_made,
    )
    assert result.failure_class is why


@pytest.mark.parametrize(
    ("text", "path", "named"),
    [
        ("cat: /tmp/p/out.csv: absent", "out.csv", True),
        ("cat: out.csv: absent", "./out.csv", True),
        ("cat: old/out.csv: absent", "new/out.csv", False),
        ("there is no new/out.csv", "new/out.csv", True),
        ("Write out.csv.", "/p/out.csv", True),
        ("Write data/out.csv.", "/p/out.csv", False),
        ("Write out.csv, please", "/p/data/out.csv", True),
        ("Schreibe ~/w/out.csv", "/home/a/w/out.csv", True),
        ("把结果写入out.csv。", "/p/out.csv", True),
        ("Write layout.csv", "/p/out.csv", False),
        ("Write out.csv.bak", "/p/out.csv", False),
        ("compile `prog`", "/p/prog", True),
        ("programs", "/p/prog", False),
        ("Fix the build", "/p/build/", False),
        ("put it into build/", "/p/build/", True),
        ("install it into ./lib", "/p/lib/", True),
        ("see https://x.org/out.csv", "/p/out.csv", False),
        ("", "/p/out.csv", False),
    ],
)
def test_what_a_text_names(text: str, path: str, named: bool) -> None:
    """A path by as much of its end as the text says; a directory only where it is written as a path."""
    assert names(text, path) is named


async def test_a_check_that_does_the_work_itself_has_no_verdict() -> None:
    """It would succeed without the work. Whatever else it writes is its own affair; that it fails is a verdict; and
    a person's own check counts.
    """
    made, other = CommandView(0, "", written=("/p/out.csv",)), CommandView(0, "", written=("/p/main.o",))
    bad = CommandView(1, "", written=("/p/out.csv",))
    source = Source(commands={"makes": made, "builds": other, "fails": bad})

    async def found(command: str, asked: str) -> str | bool:
        it = CommandSucceeds(command=command)
        result = await run_check(it, output="", tool_calls=(), source=source, asked=asked)
        return result.passed or (result.evidence.found if isinstance(result.evidence, Reason) else "")

    assert await found("makes", "Write out.csv") == "no_verdict"
    assert await found("builds", "Write out.csv") is True
    assert await found("fails", "Write out.csv") == "command_failed"
    assert await found("makes", "") is True


@pytest.mark.parametrize(
    "regex",
    [".", ".*", ".+", r"\S", r"\w", "^", "", r"[\s\S]+", "(?s).*", r"^.+$", "x|7|.", r"\A\s*\S", "[^\\0]"],
)
def test_an_expression_that_matches_whatever_is_said_cannot_fail(regex: str) -> None:
    """Such a check decides nothing."""
    assert cannot_fail(OutputMatches(regex=regex))


@pytest.mark.parametrize(
    "regex",
    [
        r"\d",
        "840",
        "[A-Za-z]",
        "^[^,]+$",
        r"\A\D+\Z",
        r"\A.{1,80}\Z",
        r"\A[\s\S]{1,200}\Z",
        r".{20,}",
        r"\A[^\n]+\Z",
        r"\A(?![\s\S]*TODO)",
        r"\A(?![\s\S]*\bTODO\b)",
        "(",
        "(x+x+)+y",
        "a" * 2_001,
    ],
)
def test_a_check_of_form_and_one_for_what_must_not_be_there_can_fail(regex: str) -> None:
    """A length, one line, a figure, a word that must not stand there; and what is no expression always fails."""
    assert not cannot_fail(OutputMatches(regex=regex))


def test_a_check_that_looks_at_the_world_can_fail() -> None:
    """Whatever a file must hold, it has to be there."""
    assert not cannot_fail(FileMatches(path="a.txt", regex=r"\S"))
    assert not cannot_fail(ToolSucceeded())
