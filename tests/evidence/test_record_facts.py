"""What the records of calls say against an answer, and what of it is past."""

from __future__ import annotations

import pytest

from artoo.contracts.execution import CallStatus, ExecutionResult, ToolCall, standing_failure
from artoo.contracts.findings import Found, Reason
from artoo.evidence.facts import broken_act, told_files
from artoo.ports.evidence import CommandView, FileView, Language, Trial
from artoo.tools.shell.parser import parse_command


def ran(command: str, output: str = "", error: str = "", code: int = 0, **more: object) -> ToolCall:
    """A shell command as the shell tool records it."""
    parsed = parse_command(command)
    given: dict[str, object] = {
        "tool": "shell",
        "identity": parsed.identities,
        "target": parsed.normal,
        "input": command,
        "status": CallStatus.OK if code == 0 else CallStatus.ERROR,
        "exit_code": code,
        "output": output,
        "error_output": error,
        "masked": parsed.masks,
    }
    return ToolCall.model_validate({**given, **more})


def found(answer: str, *calls: ToolCall, request: str = "") -> Found | None:
    """What stands against an answer after these calls."""
    result = ExecutionResult(subtask_id="s", attempt=1, status="completed", output=answer, tool_calls=calls)
    fact = broken_act(result, (request,))
    return fact.message.found if fact is not None and isinstance(fact.message, Reason) else None


GENERATOR = ran("python gen.py --out report.pdf", error="MemoryError", code=1)
LISTED = ran("ls -l report.pdf", "-rw-r--r-- 1 u u 0 Nov 21 10:00 report.pdf")
NO_RULE = ran("make all", error="make: *** No rule", code=2)


@pytest.mark.parametrize(
    ("answer", "calls", "against"),
    [
        ("report.pdf was generated.", (GENERATOR, LISTED), Found.FAILED),
        ("It was copied.", (ran("cp a b; exit 3", code=3), ran("ls", "a\nb")), Found.FAILED),
        ("Pushed.", (ran("git push", error="no", code=1), ran("git status", "clean")), Found.FAILED),
        ("Deployed.", (ran("npm run deploy || true", error="npm ERR! 403"),), Found.SAYS_ONLY),
        ("It was migrated.", (ran("./migrate.sh | tail -1", "psql: connection refused"),), Found.SAYS_ONLY),
        (
            "It is changed.",
            (ran("sed s/a/b/ c; echo ok", "ok", "No such file or directory"),),
            Found.SAYS_ONLY,
        ),
        ("It was built.", (ran("make all", "[ 40%]", status=CallStatus.TIMEOUT),), Found.CUT_SHORT),
        ("All is well.", (ran("pytest -q", "3 failed", code=1),), Found.FAILED),
        ("cmake is not installed.", (ran("which cmake", code=1),), None),
        ("It ran well.", (ran("echo running; exit 1", "running", code=1),), Found.FAILED),
        ("It ran well.", (ran("(cat a; exit 3)", "running", code=3), ran("ls", "a")), Found.FAILED),
        ("The line is in f.", (ran("grep -q x f || echo x >> f"),), None),
        ("The line is in f.", (ran("grep -q x f || echo x >> f; cat f", "x"),), None),
        ("It is pushed.", (ran("git push; git status", error="no", code=1), ran("git status", "a")), Found.FAILED),
        ("3 tests failed.", (ran("pytest -q", "3 failed", code=1),), None),
        ("The build stops at 40%.", (ran("make all", "[ 40%]", status=CallStatus.TIMEOUT),), None),
        ("report.pdf has 0 bytes.", (GENERATOR, LISTED), None),
        ("nginx runs.", (ran("node s.js", status=CallStatus.TIMEOUT), ran("pgrep -a nginx", "12 nginx")), None),
        ("It is built.", (NO_RULE, ran("make all", "cc")), None),
        ("It is written.", (NO_RULE, ran("cp a b", changes=("/p/b",))), None),
        (
            "It says hi.",
            (ran("cat gone", error="No such file or directory", code=1), ran("ls", "x")),
            None,
        ),
    ],
)
def test_an_act_that_fell_short_stands_against_an_answer_that_takes_nothing_of_it_up(
    answer: str, calls: tuple[ToolCall, ...], against: Found | None
) -> None:
    """A later look is no proof; the same kind of call that ends well is, or one that changes something."""
    assert found(answer, *calls) == against


def test_a_persons_no_contradicts_nothing() -> None:
    """The task is not done, and an answer that says so is true."""
    call = ran("rm a", status=CallStatus.REFUSED, withheld_by="person", exit_code=None)
    fact = broken_act(
        ExecutionResult(subtask_id="s", attempt=1, status="completed", output="Not deleted.", tool_calls=(call,))
    )
    assert fact is not None and not fact.contradicts


def test_work_goes_on_without_what_a_person_refused() -> None:
    """What was done after the no is judged by its criteria; a look alone is no work."""
    no = ran("rm a", status=CallStatus.REFUSED, withheld_by="person", exit_code=None)
    assert found("b is written, and a stays.", no, ran("cp c b", changes=("/p/b",))) is None
    assert found("b is there.", no, ran("ls", "b")) is Found.WITHHELD


def test_each_program_of_a_small_model_is_a_way_by_itself() -> None:
    """What failed after the call whose output it delivers is nothing against it."""
    calls = (ran("sort n", "an"), ran("python x.py", error="no", code=2))
    given = {"subtask_id": "s", "attempt": 1, "status": "completed", "output": "an"}
    said = {**given, "verbatim": True, "sources": (1,)}
    for small in (True, False):
        result = ExecutionResult.model_validate({**said, "tool_calls": calls, "small_model": small})
        assert (broken_act(result) is None) is small


def test_a_process_is_looked_after_by_its_id() -> None:
    """A command that goes on falls short until somebody waits for it."""
    goes_on = ran("make", status=CallStatus.RUNNING, process="p3", exit_code=None)
    waited = ToolCall(tool="process", identity=("process",), input='{"id": "p3", "action": "wait"}', output="built")
    assert standing_failure((goes_on,)) == 1
    assert standing_failure((goes_on, waited)) == 0


@pytest.mark.parametrize(
    ("command", "masks"),
    [
        ("a", False),
        ("a && b", False),
        ("set -e; a; b", False),
        ("set -eo pipefail\na | b\nc", False),
        ("a; b", True),
        ("a || true", True),
        ("a | tail", True),
        ("if a; then b; fi", True),
        ("for x in 1 2; do a $x; done", True),
    ],
)
def test_a_commands_form_says_whether_its_exit_code_tells_of_every_error(command: str, masks: bool) -> None:
    """Bash goes on after an error in a list, behind a pipe, and in a loop."""
    assert parse_command(command).masks is masks


class _Files:
    """A machine with these files and no others."""

    def __init__(self, *names: str) -> None:
        self._names = names

    async def file(self, path: str) -> FileView:
        return FileView(exists=path in self._names, size=1)

    async def command(self, command: str) -> CommandView:
        return CommandView(exit_code=None, output="")

    async def trial(self, language: Language, program: str) -> Trial:
        return Trial(CommandView(exit_code=None, output=""))

    async def difference(self, limit: int = 0) -> str:
        return ""


@pytest.mark.parametrize(
    ("asked", "answer", "calls", "gone"),
    [
        ("Make a.txt.", "a.txt is made.", (ran("date", "Sat"),), ["a.txt"]),
        ("Delete all *.tmp files.", "All .tmp files are deleted.", (ran("rm *.tmp"),), []),
        ("Where is ./a/x.txt?", "./a/x.txt is here.", (ran("find", "./a/x.txt"),), []),
        ("Is a/x.txt there?", "./a/x.txt is here.", (ran("find a", "a/x.txt"),), []),
        ("Use ctx.get_source.", "ctx.get_source is used.", (ran("true"),), []),
        ("Delete a.txt.", "a.txt is deleted.", (ran("rm a.txt", changes=("/p/a.txt",)),), []),
    ],
)
async def test_a_file_that_is_not_there_is_told(
    asked: str, answer: str, calls: tuple[ToolCall, ...], gone: list[str]
) -> None:
    """Not what a pattern ends with, what a call has shown under another writing, or what a call deleted."""
    result = ExecutionResult(subtask_id="s", attempt=1, status="completed", output=answer, tool_calls=calls)
    assert (await told_files(result, asked, _Files()))[0] == gone
