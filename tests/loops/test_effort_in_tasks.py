"""Effort and budgets, plan approval, messages to a plan, and how many model calls a task needs."""

from __future__ import annotations

from collections import deque

from scenario import Ended, Json, World, exists, matches, plan, reply, says, shell, subtask

from artoo import Artoo, Budgets
from artoo.contracts.confirmation import ConfirmationRequest, Consent, Words
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import ToolStarted
from artoo.contracts.findings import Unheard
from artoo.contracts.plan import Plan, SubTask
from artoo.contracts.recording import TaskOpened
from artoo.contracts.request import TaskSpec
from artoo.contracts.solution import Directive, FinalResult, PlanDirective, StoppedBy
from artoo.contracts.steering import CourseDirective, EffortChosen, PlanAnswered, SampleMeasured
from artoo.testing import ScriptedServer, slow

COUNT = "How many lines has a.txt?"
ONE = plan(subtask("count the lines of a.txt", matches(r"\d")))


def large(effort: str) -> Json:
    """The same plan, of a task that is as large as this."""
    return {**ONE, "effort": effort}


async def test_a_task_has_the_budgets_of_its_plans_effort(world: World) -> None:
    """Until there is a plan it is quick; then R7 adopts the effort's budgets, and says so."""
    world.file("a.txt", "x\n")
    ended = await world.play(COUNT, {"Plan": large("normal"), "ExecutorStep": shell("wc -l < a.txt")})
    opened = ended.one(TaskOpened)
    assert (opened.max_calls, opened.hyperparameters["time_budget_ms"], opened.fixed) == (40, 300_000, ())
    assert ended.one(EffortChosen) == EffortChosen(effort="normal", seconds=1_800.0, calls=200, tokens=4_000_000)
    assert ended.result.loss.Omega < 0.01


async def test_the_users_word_goes_before_the_plans(world: World) -> None:
    """An effort that was chosen, a budget and the configuration hold whatever the plan says."""
    world.file("a.txt", "x\n")
    script = {"Plan": large("normal"), "ExecutorStep": shell("wc -l < a.txt")}
    options = world.options(effort="long", budgets=Budgets(calls=7))
    ended = await world.play(COUNT, script, options=options, config=world.config(limits={"tokens": 90_000}))
    chosen = EffortChosen(effort="long", seconds=14_400.0, calls=7, tokens=90_000)
    assert ended.one(EffortChosen) == chosen
    assert (ended.one(TaskOpened).fixed, ended.one(TaskOpened).effort) == (("calls", "tokens"), "long")


async def test_looking_changing_testing_and_reporting_takes_three_calls(world: World) -> None:
    """The plan names the look, which is made before the first turn; then R3 changes and tests, and answers."""
    world.file("a.txt", "one\n")
    look = {"tool": "search_text", "arguments": {"pattern": "one"}}
    part = {**subtask("put two into a.txt"), "first_calls": [look]}
    holds: Json = {"text": "a.txt says two", "check": {"check": "file_matches", "path": "a.txt", "regex": "^two$"}}
    script = {
        "Plan": plan(part, criteria=[holds]),
        "ExecutorStep": [shell("echo two > a.txt && grep -c two a.txt", final=False), says("a.txt says two.", 2)],
    }
    ended = await world.play("Put two into a.txt and test it.", script)
    assert (ended.contracts, ended.directive) == (["Plan", "ExecutorStep", "ExecutorStep"], "accept")
    assert [call.tool for call in ended.calls] == ["search_text", "shell"]
    assert "one" in ended.calls[0].output


# --- approval of a plan -----------------------------------------------------------------------------------------


class Person:
    """Answers each proposed plan with the next of these; consents to everything else."""

    def __init__(self, *answers: Words | Consent) -> None:
        self.answers = deque(answers)
        self.shown: list[ConfirmationRequest] = []

    async def __call__(self, request: ConfirmationRequest) -> Words | Consent:
        if request.wants != "plan":
            return Consent.ONCE
        self.shown.append(request)
        return self.answers.popleft()


async def approved(world: World, person: Person, *plans: Json, steps: object = None) -> Ended:
    world.file("a.txt", "x\n")
    script = {"Plan": list(plans)} | ({} if steps is None else {"ExecutorStep": steps})
    return await world.play(COUNT, script, options=world.options(plan=True), confirm=person)  # pyright: ignore[reportArgumentType]


async def test_a_plan_is_approved_before_anything_runs(world: World) -> None:
    """It is shown with its criteria, and runs after the user's yes."""
    person = Person(Consent.ONCE)
    ended = await approved(world, person, ONE, steps=shell("wc -l < a.txt"))
    kinds = [envelope.kind for envelope in ended.envelopes]
    assert kinds.index("PlanProposed") < kinds.index("PlanAnswered") < kinds.index("Plan") < kinds.index("SubTask")
    assert "count the lines of a.txt" in "\n".join(person.shown[0].details)
    assert ended.directive == "accept"


async def test_remarks_change_the_plan(world: World) -> None:
    """R2 plans once more, with its plan and the remarks before it, and the worker is shown them."""
    person = Person(Words(text="Use wc, and say the file's name."), Consent.ONCE)
    second = plan(subtask("count with wc", matches(r"\d")))
    ended = await approved(world, person, ONE, second, steps=shell("wc -l a.txt"))
    assert [answer.decision for answer in ended.all(PlanAnswered)] == ["change", "approve"]
    asked = ended.asked("Plan")[1].user
    assert "Use wc, and say the file's name." in asked and "count the lines of a.txt" in asked
    assert [each.intent for each in ended.one(Plan).subtasks] == ["count with wc"]
    assert "Use wc, and say the file's name." in ended.asked("ExecutorStep")[0].user


async def test_a_rejected_plan_ends_the_task(world: World) -> None:
    """As interrupted by the user; nothing has run."""
    ended = await approved(world, Person(Consent.NO), ONE)
    assert (ended.directive, ended.result.stopped_by) == ("abandon", StoppedBy.INTERRUPTED)
    assert ended.result.detail == "the user rejected the plan"
    assert not ended.all(SubTask) and not ended.all(Plan)


# --- messages of the user ---------------------------------------------------------------------------------------


async def test_a_message_reaches_the_next_plan_and_later_subtasks(world: World) -> None:
    """R2 reads it before it plans again, and a subtask that starts later has it in its first message."""
    world.file("a.txt", "x\n")
    parts = (subtask("make b.txt", exists("b.txt")), subtask("count the lines of a.txt", sequence=2))
    script = {
        "Plan": [plan(*parts), plan(subtask("make b.txt another way"), subtask("count", sequence=2), criteria=())],
        "ExecutorStep": [shell("echo no"), shell("echo > b.txt"), shell("wc -l < a.txt")],
    }
    sent = False

    async def during(artoo: Artoo, envelope: Envelope) -> None:
        nonlocal sent
        if not sent and isinstance(envelope.payload, SubTask):
            sent = True
            artoo.send("b.txt may be empty", envelope.task_id)

    config = world.config(control={"max_retries": 0})
    ended = await world.play("Make b.txt and count.", script, config=config, during=during)  # pyright: ignore[reportArgumentType]
    assert ended.one(PlanDirective) and "b.txt may be empty" in ended.asked("Plan")[1].user
    assert ended.all(Plan)[-1].heard and ended.all(SubTask)[-1].said == ("b.txt may be empty",)
    assert not [fact for fact in ended.result.facts if isinstance(fact, Unheard)]


async def test_a_message_that_no_model_read_is_told(world: World) -> None:
    """It came while the only call was under way: the result names it, so that it can be sent again."""

    async def during(artoo: Artoo, envelope: Envelope) -> None:
        if isinstance(envelope.payload, TaskSpec):
            artoo.send("and in French, please", envelope.task_id)

    ended = await world.play("Say hello.", {"Plan": slow(reply("Hello!"), 0.5)}, during=during)
    assert Unheard(texts=("and in French, please",)) in ended.result.facts


# --- in flight --------------------------------------------------------------------------------------------------


async def test_a_long_attempt_that_comes_no_closer_is_directed(world: World) -> None:
    """Samples every eight turns: the first is the baseline, the second finds a plateau and tells the executor."""
    steps = [shell(f"echo looked at {number}", final=False) for number in range(17)]
    part = subtask("make done.txt", exists("done.txt"))
    script = {"Plan": plan(part), "ExecutorStep": [*steps, shell("echo > done.txt")]}
    ended = await world.play("Make done.txt.", script)  # pyright: ignore[reportArgumentType]
    first, second = ended.all(SampleMeasured)
    assert (first.turn, first.directive, first.loss.D) == (8, None, 1.0)
    assert (second.turn, second.directive, second.ends_attempt) == (16, Directive.CHANGE_PATH, False)
    said = ended.one(CourseDirective)
    assert said.text.startswith("artoo has run the checks again (turn 16). Not met:\n- done.txt exists:")
    assert said.text in ended.asked("ExecutorStep")[-1].user
    assert ended.directive == "accept"


async def test_a_resumed_task_keeps_its_effort(world: World) -> None:
    """What the plan chose holds for the rest of the task, in another process too, and is chosen once."""
    world.file("a.txt", "x\n")
    script = {"Plan": large("normal"), "ExecutorStep": shell("sleep 30")}

    async def stop(artoo: Artoo, envelope: Envelope) -> None:
        if isinstance(envelope.payload, ToolStarted):
            artoo.interrupt()

    first = await world.play(COUNT, script, during=stop)
    assert first.result.stopped_by is StoppedBy.INTERRUPTED
    async with (
        ScriptedServer({"ExecutorStep": shell("wc -l < a.txt")}) as server,
        world.artoo(server.base_url) as artoo,
    ):
        stream = [envelope async for envelope in artoo.stream_resumed(None)]
    (chosen,) = (each.payload for each in stream if isinstance(each.payload, EffortChosen))
    assert (chosen.effort, chosen.calls) == ("normal", 200)
    assert isinstance(stream[-1].payload, FinalResult) and stream[-1].payload.directive is Directive.ACCEPT
