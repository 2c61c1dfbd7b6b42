"""`artoo log` shows what a log holds: to a person, to a program, and as a file of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from log_doubles import TASK, call, final, message, request, task, write

from artoo.cli.commands.log_command import log
from artoo.contracts import codec
from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.events import MessagesDropped, ModelCalled, RouteViolation, Usage
from artoo.contracts.execution import (
    CallStatus,
    CorrectionSignal,
    CriterionJudged,
    CriterionVerdict,
    DecidedBy,
    SubTaskOutcome,
    ToolCall,
    ToolCalled,
)
from artoo.contracts.failure import FailureClass
from artoo.contracts.memory import Level, MegramState, MemoryRead, MemoryWritten
from artoo.contracts.plan import PlanRefused, SubTask
from artoo.contracts.roles import Role
from artoo.contracts.settling import ChangeClass, ClassCount, Settled
from artoo.contracts.solution import (
    Decided,
    Directive,
    FinalResult,
    Loss,
    PlanDirective,
    RoleFailure,
    StoppedBy,
    UnmetCriterion,
)
from artoo.ports.spool import Gap
from artoo.tasklog.layout import LogLimits
from artoo.tasklog.lock import TaskLock
from artoo.workspace.settlement.history import SettledRecord, note_settled


def planned(name: str, intent: str) -> SubTask:
    return SubTask(subtask_id=name, parent_task_id=TASK, sequence=1, intent=intent)


def decided(number: int, directive: Directive, loss: Loss, gradient: float) -> Decided:
    return Decided(
        round=number,
        directive=directive,
        loss=loss,
        grad_equal_cost=gradient,
        grad_paper=gradient,
        grad_l=gradient,
        criteria=2,
        logical_failures=1,
        environmental_failures=0,
    )


def model_call(role: Role, contract: str, error: str | None = None) -> ModelCalled:
    usage = Usage(prompt_tokens=420, completion_tokens=31, cached_tokens=200)
    return ModelCalled(
        role=role,
        contract=contract,
        tier="brain",
        model="m",
        system="the system prompt",
        user="the user prompt",
        answer="the answer",
        usage=usage,
        duration_ms=1_240,
        repaired=True,
        error=error,
    )


def judged(verdict: CriterionVerdict) -> CriterionJudged:
    return CriterionJudged(subtask_id="s1", verdict=verdict)


def story() -> list[Envelope | Gap]:
    """A task of two rounds in which much goes wrong."""
    failed = CriterionVerdict(
        criterion="the count is right",
        verdict="fail",
        failure_class=FailureClass.LOGICAL,
        evidence="the output has no number",
        decided_by=DecidedBy.CHECK,
    )
    passed = CriterionVerdict(criterion="it is there", verdict="pass")
    shell = ToolCall(
        tool="shell",
        identity=("shell:find",),
        input="find . -name '*.py'",
        status=CallStatus.ERROR,
        exit_code=1,
        error_output="find: no such directory",
    )
    glob = ToolCall(tool="glob", identity=("glob",), target="src/**/*.py", output="12 files")
    outcome = SubTaskOutcome(subtask_id="s1", parent_task_id=TASK, status="failed", failure_reason="no number")
    matched = SubTaskOutcome(subtask_id="s2", parent_task_id=TASK, status="matched")
    correction = CorrectionSignal(
        subtask_id="s1",
        attempt=1,
        what_was_wrong="nothing was counted",
        what_to_do="count",
        failed_criterion="the count is right",
        failure_class=FailureClass.LOGICAL,
    )
    result = FinalResult(
        task_id="count",
        summary="Counted \x1b[31mpartly.",
        directive=Directive.ABANDON,
        stopped_by=StoppedBy.REPLANS,
        unmet=(UnmetCriterion(criterion="the count is right", reason="no number"),),
    )
    spoken: list[tuple[Contract, str | None]] = [
        (request("count the files"), None),
        (MemoryRead(space="tool:glob", entity="env:local", sops=1), None),
        (model_call(Role.PLANNER, "Plan"), None),
        (PlanRefused(reasons=("no criteria",), round=1), None),
        (planned("s1", "count them"), "s1"),
        (model_call(Role.EXECUTOR, "ExecutorStep", "it timed out"), "s1"),
        (ToolCalled(subtask_id="s1", attempt=1, call=shell), "s1"),
        (judged(failed), "s1"),
        (judged(passed), "s1"),
        (correction, "s1"),
        (outcome, "s1"),
        (decided(1, Directive.BREAK_SYMMETRY, Loss(D=1.0, P=1.0, Omega=0.2, L=0.9), 0.0), None),
        (
            PlanDirective(
                task_id=TASK,
                round=2,
                loss=Loss(),
                prev_directive=Directive.INIT,
                directive=Directive.BREAK_SYMMETRY,
            ),
            None,
        ),
        (planned("s2", "another way"), "s2"),
        (ToolCalled(subtask_id="s2", attempt=1, call=glob), "s2"),
        (matched, "s2"),
        (planned("s3", "never started"), "s3"),
        (RoleFailure(role=Role.META_VALIDATOR, stopped_by=StoppedBy.INTERNAL, reason="no model"), None),
        (RouteViolation(offender=Role.EXECUTOR, refused_kind="FinalResult", reason="not its to say"), None),
        (MessagesDropped(subscriber="display", count=7), None),
        (
            MemoryWritten(
                megram_id="m",
                level=Level.MEGRAM,
                state=MegramState.ABANDON,
                space="intent:count",
                entity="env:local",
                f=0.95,
                sigma=-1,
                k=0.05,
            ),
            None,
        ),
        (decided(2, Directive.ABANDON, Loss(D=0.5, P=0.0, Omega=0.85, L=0.64), -0.26), None),
        (result, None),
    ]
    items: list[Envelope | Gap] = [
        message(payload, number)._replace(subtask_id=subtask_id)
        for number, (payload, subtask_id) in enumerate(spoken)
    ]
    return [*items[:7], Gap(3, ((TASK, 3),), "disk full"), *items[7:]]


def artoo_log(home: Path, *arguments: str) -> Result:
    result = CliRunner().invoke(
        log, arguments, env={"ARTOO_HOME": str(home), "COLUMNS": "100"}, catch_exceptions=False
    )
    assert result.exit_code == 0
    return result


async def test_one_unreadable_log_hides_no_other(tmp_path: Path) -> None:
    """The list leaves out what cannot be read, and shows the rest."""
    await write(tmp_path, task())
    (tmp_path / "tasks" / "broken" / "log.jsonl").mkdir(parents=True)
    assert TASK[:13] in artoo_log(tmp_path, "list").output


async def test_a_line_that_cannot_be_read_hides_nothing_behind_it(tmp_path: Path) -> None:
    """It is left out and named, by `show`, by its JSON and by `export`."""
    await write(tmp_path, story())
    path = tmp_path / "tasks" / TASK / "log.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    whole = artoo_log(tmp_path, "show", "--json").output
    path.write_bytes(
        b"".join([*lines[:3], b'{"v":1,"x":"a\\[redacted]"}\n', b'{"v":1,"kind":"Gossip"}\n', *lines[3:]])
    )
    shown = artoo_log(tmp_path, "show").output
    assert "Lines that cannot be read: 2" in shown and "log.jsonl" in shown
    told = json.loads(artoo_log(tmp_path, "show", "--json").output)
    first, second = told.pop("unreadable")
    assert ("line 4: not a line of JSON" in first, "line 5: no message is of kind 'Gossip'" in second) == (
        True,
        True,
    )
    assert {**told, "unreadable": []} == json.loads(whole)
    exported = artoo_log(tmp_path, "export")
    assert len(exported.stdout.splitlines()) == len(lines)
    assert exported.stderr.count("left out:") == 1 and "line 4" in exported.stderr


async def test_show_tells_the_whole_story(tmp_path: Path) -> None:
    """Rounds, subtasks, calls with cost, verdicts with evidence, the loss of each round, the result."""
    await write(tmp_path, story())
    shown = artoo_log(tmp_path, "show", TASK[:9]).output
    for part in (
        "count the files",
        "round 1",
        "planner Plan · 420 + 31 tokens · 200 cached · 1.2 s · repaired",
        "plan refused: no criteria",
        "✗ count them",
        "executor ExecutorStep · 420 + 31 tokens · 200 cached · 1.2 s · repaired · it timed out",
        "shell: find . -name '*.py' · error, exit 1 · 0 ms",
        "✗ the count is right (check: the output has no number)",
        "✓ it is there",
        "correction signal: nothing was counted",
        "∇L +0.00  → ",
        "round 2",
        "✓ another way",
        "glob: src/**/*.py · ok · 0 ms",
        "· never started",
        "role failure: meta_validator: no model",
        "route violation: not its to say",
        "messages dropped: display: 7",
        "memory read: tool:glob env:local",
        "memory written: -1 intent:count env:local",
        "3 messages are missing in this log.",
        "abandon (replans)",
        "Not met: the count is right (no number)",
    ):
        assert part in shown, part
    rows = {
        line.split()[0]: line.split()[1:]
        for line in shown.splitlines()
        if line[:2] in ("D ", "P ", "L ", "Ω ", "∇L")
    }
    assert rows["D"] == ["1.00", "0.50"]
    assert rows["P"] == ["1.00", "0.00"]
    assert rows["∇L"] == ["+0.00", "-0.26"]
    assert "\x1b[31m" not in shown


async def test_a_story_as_json(tmp_path: Path) -> None:
    """Every event whole, nested as in the tree."""
    await write(tmp_path, story())
    found = json.loads(artoo_log(tmp_path, "show", "--json").output)
    assert [part["number"] for part in found["rounds"]] == [1, 2]
    assert found["rounds"][0]["subtasks"][0]["events"][1]["call"]["tool"] == "shell"
    assert found["rounds"][0]["decided"]["loss"]["D"] == 1.0
    assert (found["missing"], found["result"]["directive"]) == (3, "abandon")


async def test_the_list_of_tasks(tmp_path: Path) -> None:
    """When, how it ended, what was asked; `artoo log` alone shows the same."""
    assert "No task has been logged yet." in artoo_log(tmp_path, "list").output
    with pytest.raises(ConfigurationError, match="no task has been logged"):
        artoo_log(tmp_path, "show")
    await write(tmp_path, [*task("abc"), message(request("second"), 9, task_id="abd")])
    for arguments in (("list",), ()):
        lines = artoo_log(tmp_path, *arguments).output.splitlines()
        assert lines[1].split() == ["abd", "2026-05-04", "03:02", "not", "ended", "second"]
        assert lines[2].split() == ["abc", "2026-05-04", "03:02", "accept", "count", "the", "files"]
    found = json.loads(artoo_log(tmp_path, "list", "--json", "-n", "5").output)
    assert [(one["task_id"], one["ending"]) for one in found] == [("abd", "not ended"), ("abc", "accept")]
    with TaskLock(tmp_path, "abd"):
        assert artoo_log(tmp_path, "list").output.splitlines()[1].split()[3] == "running"


async def test_a_task_that_goes_on_is_shown(tmp_path: Path) -> None:
    """A log without an ending says so; one without any request is shown too."""
    await write(tmp_path, [message(call("{}"))])
    shown = artoo_log(tmp_path, "show").output
    assert "(no request)" in shown
    assert "The task has not ended" in shown


async def test_an_export_stands_alone(tmp_path: Path) -> None:
    """The exported lines are the messages, long strings included, in a file that needs nothing beside it."""
    long = message(call("x" * 3_000), 1)
    await write(tmp_path, [*task()[:1], long, *task()[2:]], limits=LogLimits(inline=1_000))
    target = tmp_path / "export.jsonl"
    artoo_log(tmp_path, "export", TASK, "-o", str(target))
    assert [codec.decode(line) for line in target.read_bytes().splitlines()] == [task()[0], long, task()[2]]


def note(entity: str, space: str) -> MemoryWritten:
    return MemoryWritten(
        megram_id="m",
        level=Level.MEGRAM,
        state=MegramState.ACCEPT,
        space=space,
        entity=entity,
        f=0.9,
        sigma=1,
        k=0.1,
    )


async def test_show_and_list_tell_what_became_of_the_changes(tmp_path: Path) -> None:
    """The answer is of the task's end; what was applied and put back since stands below it, and in the list."""
    changes = Settled(state="pending", counts=(ClassCount(change_class=ChangeClass.DELETION, count=1),))
    await write(tmp_path, [*task()[:-1], message(final().model_copy(update={"changes": changes}), 9)])
    assert "Pending approval when it ended: 1 deleted" in artoo_log(tmp_path, "show").output
    assert artoo_log(tmp_path, "list").output.splitlines()[1].split()[3:5] == ["accept", "waited"]
    gone = SettledRecord(
        at=1e9, task_id=TASK, what="applied", by="person", count=8, paths=("/p/a.txt", "/p/.git/x")
    )
    note_settled(tmp_path, gone)
    applied = artoo_log(tmp_path, "show").output
    assert "Waited" not in applied and re.search(
        r"Applied 2001-09-0\d .*: /p/a.txt, and 6 more, git's own files \(1\)", applied
    )
    note_settled(
        tmp_path, gone.model_copy(update={"what": "undone", "count": 1, "paths": ("/p/a.txt",), "left": 1})
    )
    assert re.search(
        r"Undone 2001-09-0\d .*: /p/a.txt; 1 not restored, because changed since",
        artoo_log(tmp_path, "show").output,
    )
    head, row = artoo_log(tmp_path, "list").output.splitlines()
    assert "changes" in head and row.split()[4:6] == ["put", "back"]
    assert json.loads(artoo_log(tmp_path, "list", "--json").output)[0]["changes"] == "put back"
    told = json.loads(artoo_log(tmp_path, "show", "--json").output)["changes"]
    assert (told["state"], [one["act"] for one in told["became"]]) == ("put back", ["applied", "undone"])


async def test_notes_of_memory_are_one_line_after_the_work(tmp_path: Path) -> None:
    """Counted by what they are about; with --full each is there, and a script as a target is cut."""
    script = "path:" + "echo a long script; " * 20
    spoken: list[tuple[Contract, str | None]] = [
        (request(), None),
        (planned("s1", "count them"), "s1"),
        (SubTaskOutcome(subtask_id="s1", parent_task_id=TASK, status="matched"), "s1"),
        *((note(script, f"tool:shell:{name}"), None) for name in ("cat", "sed")),
        (note("env:local", "intent:count"), None),
        (final(), None),
    ]
    await write(tmp_path, [message(one, number)._replace(subtask_id=of) for number, (one, of) in enumerate(spoken)])
    lines = artoo_log(tmp_path, "show").output.splitlines()
    (folded,) = [number for number, line in enumerate(lines) if "memory written" in line]
    assert lines[folded].endswith("memory written: 3 notes on 2 tools, 1 kind of request")
    assert folded > next(number for number, line in enumerate(lines) if "count them" in line)
    full = artoo_log(tmp_path, "show", "--full").output
    assert full.count("memory written: ") == 3 and script not in full.replace("\n", "")
