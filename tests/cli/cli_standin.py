"""A runtime for the command line's tests: it plays written stories instead of asking a model.

Run as a program (`python cli_standin.py STORY ARGUMENTS…`), it is `artoo` with that runtime, for tests
in a pseudo-terminal.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from review_cases import crowded_review, long_review, small_review

from artoo.cli.display import run_task as running
from artoo.cli.display.side_channel import Aside
from artoo.cli.main import main
from artoo.contracts.base import Contract
from artoo.contracts.changes import ChangeKind
from artoo.contracts.confirmation import AskedAct, ConfirmationAnswer, ConfirmationRequest, Consent
from artoo.contracts.conversation import ChecklistItem, ChecklistUpdated, TextDelta
from artoo.contracts.criteria import Assurance, Criterion
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError, ModelUnreachable
from artoo.contracts.events import ModelCalled, Usage
from artoo.contracts.execution import (
    CallStatus,
    CorrectionSignal,
    CriterionJudged,
    CriterionVerdict,
    ExecutionResult,
    SubTaskOutcome,
    ToolCall,
    ToolCalled,
)
from artoo.contracts.failure import FailureClass
from artoo.contracts.plan import DispatchManifest, ManifestEntry, Plan, PlannedSubTask, SubTask
from artoo.contracts.request import TaskSpec, Turn, UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.settling import ChangeClass, ClassifiedChange, Review, Settled, SettledState
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
    UnmetCriterion,
)
from artoo.ports.confirm import Confirm, answer_of
from artoo.runtime.app.run_options import RunOptions
from artoo.runtime.config.model import Config

TASK = "0198f000-0000-7000-8000-000000000000"
Step = tuple[Role, Contract]


def called(role: Role, contract: str) -> Step:
    """A model call of 100 prompt tokens, 50 of them cached, and 10 of an answer."""
    usage = Usage(prompt_tokens=100, completion_tokens=10, cached_tokens=50)
    return role, ModelCalled(
        role=role, contract=contract, tier="brain", model="stand-in", system="", user="", usage=usage
    )


def criterion(text: str, verdict: bool) -> CriterionVerdict:
    """A verdict on a criterion."""
    return CriterionVerdict(criterion=text, verdict="pass" if verdict else "fail")


def subtask_story(
    subtask_id: str, intent: str, call: ToolCall, *, matched: bool = True, reason: str = ""
) -> Iterator[Step]:
    """One subtask from its start to its outcome."""
    yield Role.DISPATCHER, SubTask(subtask_id=subtask_id, parent_task_id=TASK, sequence=1, intent=intent)
    yield called(Role.EXECUTOR, "ExecutorStep")
    yield Role.EXECUTOR, ToolCalled(subtask_id=subtask_id, attempt=1, call=call)
    yield (
        Role.EXECUTOR,
        ExecutionResult(
            subtask_id=subtask_id, attempt=1, status="completed", output=call.output, tool_calls=(call,)
        ),
    )
    verdict = criterion(intent, matched)
    yield Role.AGENT_VALIDATOR, CriterionJudged(subtask_id=subtask_id, verdict=verdict)
    outcome = SubTaskOutcome(
        subtask_id=subtask_id,
        parent_task_id=TASK,
        status="matched" if matched else "failed",
        intent=intent,
        output=call.output,
        failure_reason=reason or None,
        criteria_verdicts=(verdict,),
        tool_calls=(call,),
    )
    yield Role.AGENT_VALIDATOR, outcome


def opening(text: str, language: str, round_intents: Sequence[str]) -> Iterator[Step]:
    """The request, its TaskSpec, and the first plan."""
    yield Role.USER, UserRequest(text=text, project="/project", workspace="/workspace")
    yield Role.PERCEIVER, TaskSpec(task_id="the_task", intent=text, raw_input=text, language=language)
    yield called(Role.PLANNER, "Plan")
    yield from round_opening(1, round_intents)


def round_opening(number: int, intents: Sequence[str], carried: Sequence[str] = ()) -> Iterator[Step]:
    """A plan and its manifest. Subtasks are `<round>.<position>`."""
    planned = tuple(PlannedSubTask(intent=intent) for intent in intents)
    yield Role.PLANNER, Plan(subtasks=planned, round=number, carried=tuple(carried))
    entries = tuple(
        ManifestEntry(
            subtask_id=f"{number}.{position}",
            sequence=1,
            intent=intent,
            success_criteria=(Criterion(text=intent),),
        )
        for position, intent in enumerate(intents, start=1)
    )
    yield (
        Role.DISPATCHER,
        DispatchManifest(task_id=TASK, round=number, subtasks=entries, carried=tuple(carried)),
    )


def decision(number: int, directive: Directive, loss: Loss, grad_l: float = 0.0) -> Step:
    """The control law's record of a round."""
    return Role.SOLVER, Decided(
        round=number,
        directive=directive,
        loss=loss,
        grad_equal_cost=grad_l,
        grad_paper=grad_l,
        grad_l=grad_l,
        criteria=1,
        logical_failures=int(loss.D > 0),
        environmental_failures=0,
    )


def shell(command: str, output: str, **fields: object) -> ToolCall:
    """A shell call that went well, unless `fields` say otherwise."""
    call = ToolCall(
        tool="shell", identity=("shell:" + command.split()[0],), target=command, input=command, output=output
    )
    return call.model_copy(update=fields)


def accepted(text: str) -> Iterator[Step]:
    """One subtask, at once right."""
    yield from opening(text, "en", ["Count the Python files"])
    yield from subtask_story("1.1", "Count the Python files", shell("find src -name '*.py' | wc -l", "23"))
    yield Role.META_VALIDATOR, OutcomeSummary(task_id=TASK, merged_output="23", summary="23 files")
    yield decision(1, Directive.ACCEPT, Loss(Omega=0.01))
    cost = Cost(
        llm_calls=2, prompt_tokens=200, cached_tokens=100, completion_tokens=20, tool_calls=1, elapsed_ms=4_100
    )
    yield (
        Role.SOLVER,
        FinalResult(
            task_id=TASK,
            summary="There are 23 Python files.",
            output="There are 23 Python files.",
            directive=Directive.ACCEPT,
            assurance=Assurance.CHECKED,
            done=("Count the Python files",),
            cost=cost,
        ),
    )


def made_file(path: str) -> ClassifiedChange:
    """A new ordinary file."""
    return ClassifiedChange(path=path, change_class=ChangeClass.SILENT, kind=ChangeKind.CREATED)


def chinese(text: str) -> Iterator[Step]:
    """Two subtasks in Chinese; one fails, the second round mends it."""
    first, second = "统计源代码目录里的文件数量并按类型分组列出每一种类型的文件总数", "写入报告"
    yield from opening(text, "zh", [first, second])
    yield from subtask_story("1.1", first, shell("find src -type f", "23"))
    call = shell("cat 报告.md", "", status=CallStatus.ERROR, exit_code=1)
    yield from subtask_story("1.2", second, call, matched=False, reason="没有写入任何文件")
    yield Role.META_VALIDATOR, ReplanRequest(task_id=TASK)
    loss = Loss(D=0.5, P=1.0, Omega=0.12, L=0.61)
    yield decision(1, Directive.CHANGE_APPROACH, loss)
    yield (
        Role.SOLVER,
        PlanDirective(
            task_id=TASK, round=2, loss=loss, prev_directive=Directive.INIT, directive=Directive.CHANGE_APPROACH
        ),
    )
    yield from round_opening(2, ["写入报告"], carried=["1.1"])
    made = ToolCall(
        tool="write_file", identity=("write_file",), target="/workspace/报告.md", changes=("/workspace/报告.md",)
    )
    yield from subtask_story("2.1", "写入报告", made)
    yield Role.META_VALIDATOR, OutcomeSummary(task_id=TASK, merged_output="23", summary="完成")
    yield decision(2, Directive.ACCEPT, Loss(Omega=0.24, L=0.1), grad_l=-0.4)
    yield (
        Role.SOLVER,
        FinalResult(
            task_id=TASK,
            summary="报告已写好，共有 23 个文件。",
            output="报告已写好，共有 23 个文件。",
            changes=Settled(state="applied", changes=(made_file("/workspace/报告.md"),)),
            directive=Directive.ACCEPT,
            replans=1,
            cost=Cost(llm_calls=5, prompt_tokens=500, completion_tokens=50, tool_calls=3, elapsed_ms=61_000),
        ),
    )


def gaps(text: str) -> Iterator[Step]:
    """A success with one criterion unmet, after a correction."""
    yield from opening(text, "en", ["Write the table"])
    yield Role.DISPATCHER, SubTask(subtask_id="1.1", parent_task_id=TASK, sequence=1, intent="Write the table")
    yield (
        Role.AGENT_VALIDATOR,
        CorrectionSignal(
            subtask_id="1.1",
            attempt=1,
            what_was_wrong="the header is missing",
            what_to_do="write a header",
            failed_criterion="has a header",
            failure_class=FailureClass.LOGICAL,
        ),
    )
    yield from subtask_story("1.1", "Write the table", shell("cat table.csv", "a,b"))
    yield decision(1, Directive.SUCCESS, Loss(D=0.2, Omega=0.02, L=0.13))
    unmet = UnmetCriterion(criterion="rows are sorted", reason="row 3 is before row 2", accountable=Role.EXECUTOR)
    yield (
        Role.SOLVER,
        FinalResult(
            task_id=TASK,
            summary="The table is written.",
            assurance=Assurance.JUDGED,
            output="The table is written.\na,b\x1b]0;gotcha\x07",
            directive=Directive.SUCCESS,
            unmet=(unmet,),
            next_moves=("sort the rows",),
        ),
    )


def abandoned(text: str, stopped_by: StoppedBy = StoppedBy.REPLANS) -> Iterator[Step]:
    """Nothing worked."""
    yield from opening(text, "en", ["Find the file"])
    call = shell("find /nowhere", "", status=CallStatus.ERROR, exit_code=1)
    yield from subtask_story("1.1", "Find the file", call, matched=False, reason="no such directory")
    yield decision(1, Directive.ABANDON, Loss(D=1, P=0, Omega=0.9, L=0.96))
    yield final_abandon(stopped_by)


def final_abandon(stopped_by: StoppedBy) -> Step:
    """The honest end of a task that did not get there."""
    return Role.SOLVER, FinalResult(
        task_id=TASK,
        summary="The file could not be found.",
        directive=Directive.ABANDON,
        unmet=(UnmetCriterion(criterion="the file is named", reason="no such directory"),),
        tried=("find /nowhere",),
        next_moves=("say where the file might be",),
        stopped_by=stopped_by,
    )


def no_model(text: str) -> Iterator[Step]:
    """The model went away while the task ran."""
    return abandoned(text, StoppedBy.NO_MODEL)


def crowd(text: str) -> Iterator[Step]:
    """Thirty subtasks at once."""
    intents = [f"Part {number} of a piece of work with a rather long description" for number in range(1, 31)]
    yield from opening(text, "en", intents)
    for position, intent in enumerate(intents, start=1):
        yield from subtask_story(f"1.{position}", intent, shell("true", "ok"))
    yield decision(1, Directive.ACCEPT, Loss())
    yield (
        Role.SOLVER,
        FinalResult(
            task_id=TASK, summary="All parts are done.", output="All parts are done.", directive=Directive.ACCEPT
        ),
    )


def endless(text: str) -> Iterator[Step]:
    """Begins, and waits to be interrupted."""
    yield from opening(text, "en", ["Wait"])
    yield Role.DISPATCHER, SubTask(subtask_id="1.1", parent_task_id=TASK, sequence=1, intent="Wait")


def steered(text: str) -> Iterator[Step]:
    """A task that shows a checklist and words, and waits for a message."""
    yield from endless(text)
    items = (ChecklistItem(text="look around", status="done"), ChecklistItem(text="wait", status="in_progress"))
    yield Role.EXECUTOR, ChecklistUpdated(subtask_id="1.1", items=items)
    yield Role.EXECUTOR, TextDelta(contract="ExecutorStep", text="I am thinking\nabout", subtask_id="1.1")


def answered(text: str) -> Step:
    """An end with these words."""
    result = FinalResult(
        task_id=TASK, summary=text, output=text, directive=Directive.ACCEPT, assurance=Assurance.CHECKED
    )
    return Role.SOLVER, result


def endings_missing(text: str) -> Iterator[Step]:
    """A stream that breaks off."""
    yield Role.USER, UserRequest(text=text, project="/project", workspace="/workspace")


def unreachable(text: str) -> Iterator[Step]:
    """No model before anything began."""
    raise ModelUnreachable("no model answers at http://localhost:1; start it, or run artoo doctor")


def asks(text: str) -> Iterator[Step]:
    """Law 1 asks about many changes, one with a name that would forge a line; then the task waits."""
    yield from opening(text, "en", ["Tidy up"])
    details = ("$ rm *.tmp", *(f"delete /project/{number:03d}.tmp (3 B): is deleted" for number in range(120)))
    hostile = "delete /project/a\x1b[2Jb.tmp: is deleted"
    yield (
        Role.GATE,
        ConfirmationRequest(
            digest="d",
            title="shell: delete 121",
            details=(*details, hostile),
            source="read_file notes.txt",
            language="zh" if "清" in text else "en",
        ),
    )


def asks_short(text: str) -> Iterator[Step]:
    """Law 1 asks about something that is seen at once; then the task waits."""
    yield from opening(text, "en", ["Tidy up"])
    language = "zh" if "清" in text else "en"
    yield (
        Role.GATE,
        ConfirmationRequest(digest="d", title="shell: delete 1", details=("$ rm *.tmp",), language=language),
    )


def asks_network(text: str) -> Iterator[Step]:
    """Law 1 asks about a host that a line of permission can name; then the task waits."""
    yield from opening(text, "en", ["Fetch it"])
    acts = (AskedAct(verb="network", target="pypi.org:443"),)
    yield Role.GATE, ConfirmationRequest(digest="d", title="network pypi.org", details=("pypi.org:443",), acts=acts)


def asks_mail(text: str) -> Iterator[Step]:
    """Law 1 asks about a long letter whose end is written like a question of its own; then the task waits."""
    yield from opening(text, "en", ["Mail the report"])
    letter = [f"  line {number} of the report" for number in range(300)]
    forged = ("  ? tool mcp:x:mail", "  recipient: boss@company.example")
    details = (
        "recipient: evil@x",
        "text: Hello,",
        *letter,
        *forged,
        "x.mail: the server does not say that it only reads",
    )
    yield Role.GATE, ConfirmationRequest(digest="d", title="tool mcp:x:mail", details=details)


def reviews(text: str, shown: Review | None = None) -> Iterator[Step]:
    """The end of a task whose difference needs a yes. What was answered decides how it ends."""
    yield from opening(text, "zh" if "清" in text else "en", ["Tidy up"])
    yield (
        Role.GATE,
        ConfirmationRequest(
            digest="d", title="apply", language="zh" if "清" in text else "en", review=shown or small_review()
        ),
    )


def reviews_much(text: str) -> Iterator[Step]:
    """The same with diffs that need several screens."""
    return reviews(text, long_review())


def reviews_many(text: str) -> Iterator[Step]:
    """The same with one deletion among hundreds of other changes."""
    return reviews(text, crowded_review())


STORIES: dict[str, Callable[[str], Iterator[Step]]] = {
    "accepted": accepted,
    "chinese": chinese,
    "gaps": gaps,
    "abandoned": abandoned,
    "no_model": no_model,
    "crowd": crowd,
    "endless": endless,
    "steered": steered,
    "deaf": endless,
    "asks": asks,
    "asks_short": asks_short,
    "asks_mail": asks_mail,
    "asks_network": asks_network,
    "reviews": reviews,
    "reviews_many": reviews_many,
    "reviews_much": reviews_much,
    "stuck": endless,
    "endings_missing": endings_missing,
    "unreachable": unreachable,
}


UNENDING = (endless, steered, asks, asks_short, asks_mail, asks_network)


class StandIn:
    """Plays one story for every request. `pause` is the seconds between two messages.

    The stories `endless`, `deaf` and `stuck` do not end by themselves; `endless` ends when interrupted, `deaf` when
    it is cancelled, and `stuck` holds on to its thread even then.
    """

    def __init__(self, story: str, *, pause: float = 0.0) -> None:
        self.story = story
        self.pause = pause
        self.requests: list[tuple[str, tuple[Turn, ...], RunOptions | None]] = []
        self.closed = False
        self._stopped = asyncio.Event()
        self.messages: list[str] = []

    def __call__(self, config: Config, aside: Aside, confirm: Confirm | None = None) -> Self:
        self.config, self.aside, self.confirm = config, aside, confirm
        return self

    async def __aenter__(self) -> Self:
        self.closed = False
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.story == "stuck":
            time.sleep(60)  # noqa: ASYNC251 - what a blocked clean-up does
        self.closed = True

    def interrupt(self) -> None:
        """Ends `endless`."""
        if self.story != "deaf" and STORIES[self.story] in UNENDING:
            self._stopped.set()

    async def _answered(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        said = Consent.NO if self.confirm is None else await self.confirm(request)
        return answer_of(request, said, "person")

    async def stream(
        self, text: str, *, history: Sequence[Turn] = (), options: RunOptions | None = None
    ) -> AsyncGenerator[Envelope]:
        """The story as envelopes."""
        self.requests.append((text, tuple(history), options))
        self._stopped.clear()
        for number, (role, payload) in enumerate(STORIES[self.story](text)):
            await asyncio.sleep(self.pause)
            yield envelope(number, role, payload)
            if isinstance(payload, ConfirmationRequest):
                answer = await self._answered(payload)
                yield envelope(98, Role.USER, answer)
                if payload.review is not None:
                    yield envelope(99, Role.SOLVER, settled(payload.review, answer))
        if STORIES[self.story] in UNENDING:
            await self._stopped.wait()
            if self.messages:
                yield envelope(99, *answered(f"heard: {', '.join(self.messages)}"))
                return
            yield envelope(99, *final_abandon(StoppedBy.INTERRUPTED))

    def send(self, text: str, task_id: str | None = None, *, by: str = "library") -> None:
        """Keep a message; `steered` ends with it as its answer."""
        assert task_id == TASK and by == "terminal"
        self.messages.append(text)
        self._stopped.set()

    def hold(self, task_id: str | None = None, *, by: str = "library") -> None:
        """Note that the turn was interrupted. Only `steered` can be."""
        assert task_id == TASK and by == "terminal"
        if self.story != "steered":
            raise ConfigurationError("no such task runs")
        self.messages.append("(held)")

    async def dream_briefly(self) -> None:
        """There is no memory to tidy up."""


def settled(review: Review, answer: ConfirmationAnswer) -> FinalResult:
    """The end of `reviews`: what the answer made of the difference."""
    state: SettledState = "pending"
    if answer.consent.is_yes:
        state = "partly" if answer.paths else "applied"
    elif answer.consent is Consent.DISCARD:
        state = "discarded"
    changes = Settled(state=state, counts=review.counts, changes=review.changes, applied=answer.paths)
    return FinalResult(
        task_id=TASK,
        summary="It is tidy.",
        output="It is tidy.",
        directive=Directive.ACCEPT,
        assurance=Assurance.CHECKED,
        changes=changes,
    )


def envelope(number: int, role: Role, payload: Contract) -> Envelope:
    """A message as the bus would have wrapped it."""
    return Envelope(
        id=f"0198f000-0000-7000-8000-{number:012d}",
        sender=role,
        task_id=TASK,
        at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        payload=payload,
    )


if __name__ == "__main__":
    pause = float(os.environ.get("STANDIN_PAUSE", "0.01"))
    running.__dict__["open_runtime"] = StandIn(sys.argv[1], pause=pause)
    sys.exit(main(sys.argv[2:]))
