"""Logs of tasks for the page's tests: what a task says, written as the task log writes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from artoo.contracts.base import Contract
from artoo.contracts.conversation import ModelTurn, Said
from artoo.contracts.criteria import Assurance, Criterion
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import ModelCalled, Usage
from artoo.contracts.execution import (
    CallEffects,
    CallStatus,
    CorrectionSignal,
    CriterionJudged,
    CriterionVerdict,
    DecidedBy,
    ExecutionResult,
    SubTaskOutcome,
    ToolCall,
    ToolCalled,
    ToolStarted,
)
from artoo.contracts.failure import FailureClass
from artoo.contracts.findings import Unconfirmed
from artoo.contracts.plan import DispatchManifest, ManifestEntry, Plan, PlannedSubTask, SubTask
from artoo.contracts.recording import Observed, Source, TaskOpened
from artoo.contracts.request import TaskSpec, UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.solution import (
    Cost,
    Decided,
    Directive,
    FinalResult,
    Loss,
    OutcomeSummary,
    PlanDirective,
    ReplanRequest,
    StoppedBy,
)
from artoo.redaction import Redactor
from artoo.tasklog.file import TaskFile
from artoo.tasklog.layout import LogLimits, task_directory

Step = tuple[Role, Contract]

TASK = "0198f000-0000-7000-8000-00000000000a"
BEGAN = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
REQUEST = "Which module of src imports the most others? Write the ten largest importers into importers.md"


class Writer:
    """Writes messages into one task's log, as another process would: `say` is on disk when it returns."""

    def __init__(self, home: Path, task_id: str = TASK, limits: LogLimits | None = None) -> None:
        self._task_id = task_id
        self.directory = task_directory(home, task_id)
        self._file = TaskFile(self.directory, task_id, limits or LogLimits(), Redactor())
        self.count = 0

    def say(self, steps: Iterable[Step]) -> None:
        """Each step is a message a second after the one before."""
        envelopes: list[Envelope] = []
        for role, payload in steps:
            subtask = getattr(payload, "subtask_id", None)
            moment = BEGAN + timedelta(milliseconds=740 * self.count)
            envelopes.append(Envelope(f"id-{self.count}", role, self._task_id, moment, payload, subtask))
            self.count += 1
        self._file.append(envelopes)

    def close(self) -> None:
        """Lets go of the file."""
        self._file.close()


def asked_model(role: Role, contract: str, answer: str = "{}") -> Step:
    """A model call; an executor's is a turn of its conversation."""
    usage = Usage(prompt_tokens=1_830, completion_tokens=214)
    talks = role is Role.EXECUTOR
    return role, ModelCalled(
        role=role, contract=contract, tier="brain", model="stand-in", system="You are …", answer=answer,
        usage=usage, user="" if talks else "The request: …", added=(Said(text="The request: …"),) if talks else (),
        turn=ModelTurn(text=answer) if talks else None, duration_ms=2_140,
    )  # fmt: skip


def used(subtask_id: str, command: str, output: str, *, exit_code: int = 0, attempt: int = 1) -> Iterator[Step]:
    """A shell call from its start to its end."""
    act = f"{subtask_id}-{attempt}-{command[:8]}"
    yield (
        Role.EXECUTOR,
        ToolStarted(
            subtask_id=subtask_id, attempt=attempt, act=act, tool="shell", input=command, effects=CallEffects.STAGED
        ),
    )
    status = CallStatus.OK if exit_code == 0 else CallStatus.ERROR
    call = ToolCall(
        tool="shell", identity=(f"shell:{command.split()[0]}",), target=command, input=command, output=output,
        exit_code=exit_code, status=status, duration_ms=184,
    )  # fmt: skip
    yield Role.EXECUTOR, ToolCalled(subtask_id=subtask_id, attempt=attempt, call=call, act=act)


def verdict(criterion: str, how: str, evidence: str) -> CriterionVerdict:
    """A verdict that a check gave."""
    return CriterionVerdict.model_validate(
        {"criterion": criterion, "verdict": how, "evidence": evidence, "decided_by": DecidedBy.CHECK}
    )


def opening(request: str = REQUEST) -> Iterator[Step]:
    """From the request to how it was understood."""
    yield Role.USER, TaskOpened(artoo="0.1.0", hyperparameters={"theta": 0.8})
    yield Role.USER, UserRequest(text=request, project="/home/ada/project", workspace="/home/ada/artoo_workspace")
    yield asked_model(Role.PERCEIVER, "TaskSpec")
    yield Role.PERCEIVER, TaskSpec(task_id="importers", intent=request, raw_input=request)
    yield asked_model(Role.PLANNER, "Plan")
    yield Role.PLANNER, Observed(source=Source.SURROUNDINGS, question="src", answer=["a.py", "b.py"])


def planned(number: int, intents: list[str], carried: tuple[str, ...] = ()) -> Iterator[Step]:
    """A round's plan, and its subtasks begun."""
    subtasks = tuple(PlannedSubTask(intent=intent) for intent in intents)
    yield Role.PLANNER, Plan(subtasks=subtasks, round=number, carried=carried)
    entries = tuple(
        ManifestEntry(
            subtask_id=f"{number}.{place}", sequence=1, intent=intent, success_criteria=(Criterion(text=intent),)
        )
        for place, intent in enumerate(intents, 1)
    )
    yield Role.DISPATCHER, DispatchManifest(task_id=TASK, round=number, subtasks=entries, carried=carried)
    for entry in entries:
        yield (
            Role.DISPATCHER,
            SubTask(subtask_id=entry.subtask_id, parent_task_id=TASK, sequence=1, intent=entry.intent),
        )


def ended(subtask_id: str, intent: str, verdicts: tuple[CriterionVerdict, ...], why: str = "") -> Iterator[Step]:
    """A subtask leaves the fast loop."""
    yield Role.EXECUTOR, ExecutionResult(subtask_id=subtask_id, attempt=1, status="completed", output="…")
    for one in verdicts:
        yield Role.AGENT_VALIDATOR, CriterionJudged(subtask_id=subtask_id, verdict=one)
    yield (
        Role.AGENT_VALIDATOR,
        SubTaskOutcome(
            subtask_id=subtask_id, parent_task_id=TASK, status="failed" if why else "matched", intent=intent,
            failure_reason=why or None, criteria_verdicts=verdicts,
        ),
    )  # fmt: skip


ANSWER = "src/app.py imports the most: 23 other modules. importers.md lists the ten largest."
COUNT = "Count the imports of every module under src"
WRITE = "Write the ten largest importers into importers.md"
LESSON = "relative imports (from . import x) are not counted: 14 modules have none according to the table"


def first_round() -> Iterator[Step]:
    """One subtask holds, one does not: its approach was wrong."""
    yield from planned(1, [COUNT, WRITE])
    yield asked_model(Role.EXECUTOR, "ExecutorStep", "I count the lines that begin with an import.")
    yield from used("1.1", "grep -rc '^import' src --include=*.py | sort -t: -k2 -nr | head", "src/app.py:9\n")
    yield Role.EXECUTOR, ExecutionResult(subtask_id="1.1", attempt=1, status="completed", output="app.py")
    yield (
        Role.AGENT_VALIDATOR,
        CorrectionSignal(
            subtask_id="1.1", attempt=1, what_was_wrong=LESSON, what_to_do="parse the modules",
            failed_criterion=COUNT, failure_class=FailureClass.LOGICAL,
        ),
    )  # fmt: skip
    yield asked_model(Role.EXECUTOR, "ExecutorStep", "")
    yield from used("1.1", "grep -rcE '^(import|from)' src --include=*.py | sort -t: -k2 -nr", "src/app.py:14\n")
    failing = verdict(COUNT, "fail", "pytest checks/test_count.py: 2 failed, 1 passed")
    yield from ended("1.1", COUNT, (failing,), "imports inside functions and in parentheses are counted wrongly")
    yield from used("1.2", "tee importers.md", "")
    yield from ended("1.2", WRITE, (verdict("importers.md exists", "pass", "importers.md: 412 bytes"),))
    yield Role.META_VALIDATOR, ReplanRequest(task_id=TASK, gap_summary="The counts are wrong.")
    loss = Loss(D=0.5, P=1.0, Omega=0.09, L=0.61)
    yield decided(1, Directive.CHANGE_APPROACH, loss, 0.0, logical=2)
    yield (
        Role.SOLVER,
        PlanDirective(
            task_id=TASK, round=2, loss=loss, prev_directive=Directive.INIT, directive=Directive.CHANGE_APPROACH,
            blocked_tools=("shell:grep",), failed_criterion=COUNT, failure_class="logical",
            rationale="Both failures come from matching lines of text; read the syntax tree instead",
        ),
    )  # fmt: skip


def decided(number: int, directive: Directive, loss: Loss, slope: float, logical: int = 0) -> Step:
    """The control law's record."""
    return Role.SOLVER, Decided(
        round=number, directive=directive, loss=loss, grad_equal_cost=slope, grad_paper=slope, grad_l=slope,
        criteria=2, logical_failures=logical, environmental_failures=0, reason="signal, logical" if logical else "",
    )  # fmt: skip


def second_round() -> Iterator[Step]:
    """Another approach, which holds."""
    yield asked_model(Role.PLANNER, "Plan")
    yield from planned(2, ["Count the imports with the ast module"], carried=("1.2",))
    yield asked_model(Role.EXECUTOR, "ExecutorStep", "The syntax tree names every import, wherever it is.")
    yield from used("2.1", "python count_imports.py src > importers.md", "src/app.py 23\nsrc/views.py 19\n")


def holds() -> Iterator[Step]:
    """The second round's end, and the task's."""
    yield from ended("2.1", "Count the imports with the ast module", (verdict(COUNT, "pass", "3 passed"),))
    yield Role.META_VALIDATOR, OutcomeSummary(task_id=TASK, merged_output=ANSWER, summary="All of it holds")
    yield decided(2, Directive.ACCEPT, Loss(Omega=0.27, L=0.11), -0.52)
    yield (
        Role.SOLVER,
        FinalResult(
            task_id=TASK,
            summary=ANSWER,
            output=ANSWER,
            directive=Directive.ACCEPT,
            assurance=Assurance.CHECKED,
            replans=1,
            facts=(Unconfirmed(looked=True),),
            cost=Cost(llm_calls=6, prompt_tokens=10_980, completion_tokens=1_284, tool_calls=4, elapsed_ms=41_200),
        ),
    )  # fmt: skip


def stopped_by(why: StoppedBy) -> Step:
    """The result of a task that was given up."""
    words = "The pages could not be read."
    return Role.SOLVER, FinalResult(task_id=TASK, summary=words, directive=Directive.ABANDON, stopped_by=why)


def whole() -> Iterator[Step]:
    """The task from its request to its result."""
    for scene in (opening(), first_round(), second_round(), holds()):
        yield from scene


def crowd(count: int) -> Iterator[Step]:
    """A very long round: calls by the thousand, of which some fail, and records of looks between them."""
    yield from opening("Rename the field in every file of a very large tree")
    yield from planned(1, ["Rename it everywhere"])
    for number in range(count // 4):
        yield from used("1.1", f"sed -i s/old/new/ src/part_{number}.py", "", exit_code=int(number % 97 == 0))
        yield Role.EXECUTOR, Observed(source=Source.FILE, question=f"src/part_{number}.py", answer="…")
        yield asked_model(Role.EXECUTOR, "ExecutorStep")
