"""The stream as spans: parents, times, errors, and what is said of content."""

from __future__ import annotations

import json

import pytest
from opentelemetry.trace import SpanKind, StatusCode
from telemetry_doubles import Stage, seconds

from artoo.contracts.events import ModelCalled, ModelFailure, Usage
from artoo.contracts.execution import (
    CallStatus,
    CorrectionSignal,
    CriterionJudged,
    CriterionVerdict,
    SubTaskOutcome,
    ToolCall,
    ToolCalled,
)
from artoo.contracts.failure import FailureClass
from artoo.contracts.memory import Level, MegramState, MemoryRead, MemoryWritten
from artoo.contracts.plan import DispatchManifest, SubTask
from artoo.contracts.recording import TaskResumed
from artoo.contracts.request import UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.solution import (
    Cost,
    Decided,
    Directive,
    FinalResult,
    Loss,
    Money,
    PlanDirective,
    StoppedBy,
)
from artoo.telemetry import spans as spans_module

SECRET = "the secret words"


def request(text: str) -> UserRequest:
    return UserRequest(text=text, project="/p", workspace="/w")


def call(role: Role, tier: str = "brain", **more: object) -> ModelCalled:
    return ModelCalled.model_validate(
        {
            "role": role,
            "contract": "Plan",
            "tier": tier,
            "model": "gpt-x-0611",
            "system": SECRET,
            "user": SECRET,
            "answer": SECRET,
            "usage": Usage(prompt_tokens=100, cached_tokens=40, completion_tokens=10),
            "duration_ms": 500,
            **more,
        }
    )


def tool(status: CallStatus = CallStatus.OK) -> ToolCalled:
    record = ToolCall(
        tool="shell",
        identity=("shell:ls",),
        input=SECRET,
        output=SECRET,
        reason=SECRET,
        status=status,
        duration_ms=250,
    )
    return ToolCalled(subtask_id="s1", attempt=1, call=record)


def decided(directive: Directive, number: int) -> Decided:
    return Decided(
        round=number,
        directive=directive,
        loss=Loss(D=0.5, P=0.25, Omega=0.1, L=0.4),
        grad_equal_cost=-0.1,
        grad_paper=-0.1,
        grad_l=-0.1,
        criteria=2,
        logical_failures=1,
        environmental_failures=0,
    )


def final(directive: Directive, **more: object) -> FinalResult:
    return FinalResult.model_validate(
        {"task_id": "t1", "summary": SECRET, "directive": directive, "loss": Loss(L=0.2), "replans": 1, **more}
    )


def whole_task(stage: Stage) -> None:
    """Two rounds: the first fails its subtask, the second has nothing but a decision."""
    stage.say(Role.USER, request(SECRET))
    stage.say(Role.PLANNER, MemoryRead(space="intent:x", entity="env:local", sops=2))
    stage.say(Role.PLANNER, call(Role.PLANNER))
    stage.say(Role.DISPATCHER, DispatchManifest(task_id="t1", round=1, subtasks=()))
    stage.say(
        Role.DISPATCHER, SubTask(subtask_id="s1", parent_task_id="t1", sequence=1, intent=SECRET), subtask="s1"
    )
    stage.say(Role.EXECUTOR, call(Role.EXECUTOR, "tool", model="embedded"), subtask="s1")
    stage.say(Role.EXECUTOR, tool(), subtask="s1")
    stage.say(Role.EXECUTOR, tool(CallStatus.TIMEOUT), subtask="s1")
    verdict = CriterionVerdict(
        criterion=SECRET, verdict="fail", failure_class=FailureClass.LOGICAL, evidence=SECRET
    )
    stage.say(Role.AGENT_VALIDATOR, CriterionJudged(subtask_id="s1", verdict=verdict), subtask="s1")
    correction = CorrectionSignal(
        subtask_id="s1",
        attempt=1,
        what_was_wrong=SECRET,
        what_to_do=SECRET,
        failed_criterion=SECRET,
        failure_class=FailureClass.LOGICAL,
    )
    stage.say(Role.AGENT_VALIDATOR, correction, subtask="s1")
    stage.say(
        Role.AGENT_VALIDATOR, SubTaskOutcome(subtask_id="s1", parent_task_id="t1", status="failed"), subtask="s1"
    )
    stage.say(Role.SOLVER, decided(Directive.CHANGE_PATH, 1))
    directive = PlanDirective(
        task_id="t1", round=2, loss=Loss(), prev_directive=Directive.INIT, directive=Directive.CHANGE_PATH
    )
    stage.say(Role.SOLVER, directive)
    stage.say(Role.SOLVER, decided(Directive.ACCEPT, 2))
    written = MemoryWritten(
        megram_id="m1", level=Level.MEGRAM, state=MegramState.ACCEPT, space="a", entity="b", f=1, sigma=1, k=0
    )
    stage.say(Role.SOLVER, written)
    stage.say(Role.SOLVER, final(Directive.ACCEPT, cost=Cost(money=Money(amount=0.5, currency="EUR"))))


def test_every_span_has_its_parent() -> None:
    """Task → round → subtask → model and tool calls; what belongs to no subtask hangs below its round."""
    stage = Stage()
    whole_task(stage)
    tree = [(span.name, stage.parent_name(span)) for span in stage.spans]
    assert tree == [
        ("search_memory", "round"),
        ("chat gpt-x", "round"),
        ("chat embedded", "invoke_agent executor"),
        ("execute_tool shell", "invoke_agent executor"),
        ("execute_tool shell", "invoke_agent executor"),
        ("invoke_agent executor", "round"),
        ("round", "invoke_workflow artoo"),
        ("round", "invoke_workflow artoo"),
        ("create_memory", "round"),
        ("invoke_workflow artoo", None),
    ]
    assert len({span.context.trace_id for span in stage.spans if span.context is not None}) == 1
    assert stage.tree.open_tasks == 0


def test_times_are_those_of_the_messages() -> None:
    """A record says when its call ended and how long it took; what has two messages lasts from one to the other."""
    stage = Stage()
    whole_task(stage)
    assert seconds(stage.one("chat gpt-x")) == (2.5, 3.0)
    assert seconds(stage.one("chat embedded")) == (5.5, 6.0)
    assert [seconds(span) for span in stage.spans if span.name == "execute_tool shell"] == [(6.75, 7), (7.75, 8)]
    assert seconds(stage.one("invoke_agent executor")) == (5, 11)
    assert [seconds(span) for span in stage.spans if span.name == "round"] == [(1, 12), (13, 14)]
    assert seconds(stage.one("invoke_workflow artoo")) == (1, 16)


def test_attributes_are_those_of_the_conventions() -> None:
    """Operation, provider, models, tokens and server, as the GenAI conventions name them."""
    stage = Stage()
    whole_task(stage)
    chat = stage.one("chat gpt-x")
    assert chat.kind is SpanKind.CLIENT
    assert dict(chat.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.response.model": "gpt-x-0611",
        "gen_ai.output.type": "json",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 10,
        "gen_ai.usage.cache_read.input_tokens": 40,
        "gen_ai.agent.name": "planner",
        "server.address": "api.openai.com",
        "server.port": 443,
        "artoo.role": "planner",
        "artoo.contract": "Plan",
        "artoo.tier": "brain",
        "artoo.requests": 1,
        "artoo.repaired": False,
    }
    assert stage.one("chat embedded").kind is SpanKind.INTERNAL
    root = dict(stage.one("invoke_workflow artoo").attributes or {})
    assert root["gen_ai.operation.name"] == "invoke_workflow"
    assert (root["gen_ai.usage.input_tokens"], root["artoo.money"], root["artoo.currency"]) == (200, 0.5, "EUR")
    assert (root["artoo.directive"], root["artoo.loss.L"], root["artoo.round"]) == ("accept", 0.2, 2)
    search, create = stage.one("search_memory").attributes or {}, stage.one("create_memory").attributes or {}
    assert (search["gen_ai.memory.record.count"], create["gen_ai.memory.record.id"]) == (2, "m1")
    ended = next(span for span in stage.spans if span.name == "round")
    assert (ended.attributes or {})["artoo.loss.D"] == 0.5


def test_failures_are_errors() -> None:
    """A failed call, tool or subtask has the error status and a type out of a few; the rest have none."""
    stage = Stage()
    whole_task(stage)
    good, bad = (span for span in stage.spans if span.name == "execute_tool shell")
    assert (good.status.status_code, bad.status.status_code) == (StatusCode.UNSET, StatusCode.ERROR)
    assert (bad.attributes or {})["error.type"] == "timeout"
    subtask = stage.one("invoke_agent executor")
    assert (subtask.status.status_code, (subtask.attributes or {})["error.type"]) == (
        StatusCode.ERROR,
        "criteria_unmet",
    )
    assert [event.name for event in subtask.events] == ["gen_ai.evaluation.result", "artoo.correction"]
    assert stage.one("invoke_workflow artoo").status.status_code is StatusCode.UNSET


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (ModelFailure(nature="refused", status=429), "429"),
        (ModelFailure(nature="unreachable"), "unreachable"),
        (ModelFailure(nature="budget", budget="money"), "budget_money"),
        (None, "_OTHER"),
    ],
)
def test_the_type_of_a_model_error(failure: ModelFailure | None, expected: str) -> None:
    """Refusals are known by their HTTP status, the others by their kind."""
    stage = Stage()
    stage.say(Role.PLANNER, call(Role.PLANNER, error=SECRET, failure=failure))
    chat = stage.one("chat gpt-x")
    assert chat.status.status_code is StatusCode.ERROR
    assert (chat.attributes or {})["error.type"] == expected


def everything_said(stage: Stage) -> str:
    """All that an exporter would see of all spans."""
    return "\n".join(span.to_json() for span in stage.spans)


def test_content_stays_at_home() -> None:
    """By default no span holds a word of request, prompt, answer, command, output or criterion."""
    stage = Stage()
    whole_task(stage)
    stage.say(Role.USER, request(SECRET), task="t2")
    stage.say(Role.PLANNER, call(Role.PLANNER, error=SECRET), task="t2")
    stage.say(Role.SOLVER, final(Directive.ABANDON, task_id="t2", stopped_by=StoppedBy.NO_MODEL), task="t2")
    assert SECRET not in everything_said(stage)


def test_content_when_it_is_wanted() -> None:
    """With capture, prompts, answers, arguments and results are there, in the conventions' form."""
    stage = Stage(content=True)
    whole_task(stage)
    chat, shell = stage.one("chat gpt-x").attributes or {}, stage.spans[3].attributes or {}
    assert json.loads(str(chat["gen_ai.input.messages"])) == [
        {"role": "user", "parts": [{"type": "text", "content": SECRET}]}
    ]
    assert json.loads(str(chat["gen_ai.system_instructions"])) == [{"type": "text", "content": SECRET}]
    (answer,) = json.loads(str(chat["gen_ai.output.messages"]))
    assert (answer["role"], answer["parts"][0]["content"]) == ("assistant", SECRET)
    assert (shell["gen_ai.tool.call.arguments"], shell["gen_ai.tool.call.result"]) == (SECRET, SECRET)


def test_a_task_that_is_cut_off_closes_everything() -> None:
    """At an early end, the round and the subtasks that were under way end with it, marked, with the reason."""
    stage = Stage()
    stage.say(Role.USER, request("x"))
    stage.say(Role.DISPATCHER, SubTask(subtask_id="s1", parent_task_id="t1", sequence=1, intent="y"), subtask="s1")
    stage.say(Role.SOLVER, final(Directive.ABANDON, stopped_by=StoppedBy.TOKENS))
    root = stage.one("invoke_workflow artoo")
    assert (root.status.status_code, root.status.description) == (StatusCode.ERROR, "tokens")
    for name in ("invoke_agent executor", "round"):
        attributes = stage.one(name).attributes or {}
        assert (attributes["artoo.incomplete"], attributes["error.type"]) == (True, "tokens")
        assert seconds(stage.one(name))[1] == 3


def test_late_messages_do_not_begin_a_task_again() -> None:
    """After its result a task is over for the trace, whatever still comes."""
    stage = Stage()
    whole_task(stage)
    told = len(stage.spans)
    stage.say(Role.PLANNER, call(Role.PLANNER))
    assert (len(stage.spans), stage.tree.open_tasks) == (told, 0)


def test_a_task_that_is_resumed_after_its_end_is_followed_again() -> None:
    """In the process that ended it, as in a conversation: what it does then is a second trace."""
    stage = Stage()
    whole_task(stage)
    told = len(stage.spans)
    stage.say(Role.USER, TaskResumed(after="m1"))
    stage.say(Role.PLANNER, call(Role.PLANNER))
    stage.say(Role.SOLVER, final(Directive.ACCEPT))
    assert len([span for span in stage.spans[told:] if span.name == "chat gpt-x"]) == 1
    assert len({span.context.trace_id for span in stage.spans if span.context is not None}) == 2


def test_a_resumed_task_is_a_trace_of_its_own() -> None:
    """A task whose first message is not a request (it goes on after a crash) has its root all the same."""
    stage = Stage()
    stage.say(Role.PLANNER, call(Role.PLANNER))
    stage.say(Role.SOLVER, final(Directive.ACCEPT))
    assert stage.parent_name(stage.one("chat gpt-x")) == "round"


def test_calls_outside_any_task_stand_alone() -> None:
    """What the Dreamer asks belongs to no task: a span without parent."""
    stage = Stage()
    stage.say(Role.DREAMER, call(Role.DREAMER), task="")
    assert (stage.one("chat gpt-x").parent, stage.tree.open_tasks) == (None, 0)


def test_open_tasks_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks that never end are let go, oldest first; closing ends the rest. All are marked as incomplete."""
    monkeypatch.setattr(spans_module, "MOST_TASKS", 3)
    monkeypatch.setattr(spans_module, "MOST_ENDED", 4)
    stage = Stage()
    for number in range(10):
        stage.say(Role.USER, request("x"), task=f"t{number}")
        assert stage.tree.open_tasks <= 3
    stage.tree.close()
    roots = [span for span in stage.spans if span.name == "invoke_workflow artoo"]
    assert [(span.attributes or {})["artoo.task.id"] for span in roots] == [f"t{number}" for number in range(10)]
    assert all((span.attributes or {})["artoo.incomplete"] for span in roots)


def test_what_a_span_measures_follows_a_clock_that_jumps_back() -> None:
    """A call never begins before its task, nor ends before it begins, whatever the wall clock did."""
    stage = Stage()
    stage.say(Role.USER, request("x"))
    stage.say(Role.PLANNER, call(Role.PLANNER, duration_ms=60_000))
    stage.clock.jump(-3_600)
    stage.say(Role.PLANNER, call(Role.PLANNER))
    for span in stage.spans:
        assert span.start_time is not None and span.end_time is not None
        assert span.start_time <= span.end_time
    assert seconds(stage.spans[0]) == (1, 2)
