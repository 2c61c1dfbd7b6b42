"""Plans before they run: completed with what the request demands, and refused with reasons."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import ValidationError

from artoo.contracts.criteria import CommandSucceeds, Criterion, FileExists, Mode, OutputMatches, by_command
from artoo.contracts.execution import CallStatus, CriterionVerdict, DecidedBy, SubTaskOutcome, ToolCall
from artoo.contracts.plan import FirstCall, MustNot, PlannedSubTask
from artoo.contracts.solution import Directive, Loss, PlanDirective
from artoo.loops.medium.directive_text import directive_text, failed_checks
from artoo.loops.medium.plan_draft import (
    Amendment,
    DraftedCriterion,
    Fingerprint,
    SubTaskDraft,
    amended,
    fingerprint,
    objections,
    of_person,
    plan_schema,
    subtasks_of,
    verifiable,
)
from artoo.ports.tools import ToolSpec

FALLBACK = Criterion(text="does what was asked")
NUMBER = Criterion(text="a number", mode=Mode.VERIFIABLE, check=OutputMatches(regex=r"\d"))
MADE = Criterion(text="out.txt exists", mode=Mode.VERIFIABLE, check=FileExists(path="out.txt"))


def drafted(criterion: Criterion) -> DraftedCriterion:
    """A criterion as a model writes it."""
    return DraftedCriterion.model_validate(criterion.model_dump(by_alias=True))


def test_an_only_subtask_without_an_intent_is_the_request() -> None:
    """The model need not write the request once more."""
    (only,) = subtasks_of((SubTaskDraft(),), [NUMBER], "How many?")
    assert only.intent == "How many?"


def test_code_writes_no_criteria() -> None:
    """Where no model plans the request itself stands open beside the person's checks; a model's claim to be the
    person is not believed, and only a check makes a criterion verifiable."""
    check = by_command("make test")
    assert of_person("Make a web page site/index.html", [check]) == (
        check,
        Criterion(text="Make a web page site/index.html"),
    )
    claimed = drafted(MADE).model_copy(update={"by": "person", "mode": Mode.PLAUSIBLE})
    assert verifiable([claimed, drafted(FALLBACK)]) == (MADE, FALLBACK)


def test_a_check_that_cannot_fail_is_left_to_the_judge() -> None:
    """An expression that matches whatever is said is no check, neither drafted nor in another one's place."""
    told = Criterion(text="the total is told", mode=Mode.VERIFIABLE, check=OutputMatches(regex=r"\S"))
    assert verifiable([drafted(told), drafted(NUMBER)]) == (Criterion(text=told.text), NUMBER)
    wanted = [Amendment(criterion=NUMBER.text, check=OutputMatches(regex=".*"), reason="any will do")]
    assert amended([NUMBER], wanted, {NUMBER.text: "no digit"}, []) == ((NUMBER,), ())


def test_a_check_that_cannot_hold_is_replaced_once() -> None:
    """R2's own check, after it failed, with a reason and once; a person's check and one that held stay."""
    person = by_command("true")
    new = CommandSucceeds(command="test -s out.csv")
    wanted = [Amendment(criterion=each.text, check=new, reason="it is a csv") for each in (MADE, NUMBER, person)]
    standing = (person, MADE, NUMBER)
    texts = [each.text for each in standing]
    criteria, replaced = amended(standing, wanted, {MADE.text: "not there", person.text: ""}, [])
    assert [each.text for each in criteria] == texts
    assert [each.check for each in criteria] == [person.check, new, NUMBER.check]
    (only,) = replaced
    assert (only.criterion, only.before, only.after, only.failed) == (MADE.text, MADE.check, new, "not there")
    assert [(each.amended, each.check_decides) for each in criteria] == [(None, True), (only, False), (None, True)]
    assert amended(standing, wanted, dict.fromkeys(texts, ""), texts) == (standing, ())


def test_the_schema_names_the_tools() -> None:
    """A plan cannot name an unknown tool, more subtasks than the limit, or nothing at all; a reply is a plan."""
    edits = ToolSpec("edit", "an agent's own", (), 1)
    specs = (ToolSpec("shell", "", (), 1, aliases=("bash", "edit")), ToolSpec("read_file", "", (), 2), edits)
    schema = plan_schema(tuple(spec.named for spec in specs), 2)
    for written, meant in (("bash", "shell"), ("edit", "edit"), (None, None)):
        assert schema.model_validate({"subtasks": [{"intent": "x", "tool": written}]}).subtasks[0].tool == meant
    good = {"subtasks": [{"intent": "x", "tool": "shell"}]}
    assert schema.model_validate(good).subtasks[0].tool == "shell"
    assert schema.model_validate({"reply": "Hello!"}).reply == "Hello!"
    bad_plans: list[dict[str, list[dict[str, str]]]] = [
        {"subtasks": []},
        {"subtasks": [{"intent": "x", "tool": "telepathy"}]},
        {"subtasks": [{"intent": "x", "tool": "execute_bash"}]},
        {"subtasks": [{"intent": "x"}] * 3},
        {"subtasks": [{"intent": "x"}, {"intent": ""}]},
    ]
    for bad in bad_plans:
        with pytest.raises(ValidationError):
            schema.model_validate(bad)
    with pytest.raises(ValidationError):
        plan_schema((), 2).model_validate(good)


def test_first_calls_only_read() -> None:
    """A plan may name calls of the tools that only read, by their aliases too, and no other."""
    named = (("shell", ()), ("read_file", ("cat",)))
    schema = plan_schema(named, 2, ("read_file",))

    def calling(tool: str) -> dict[str, object]:
        return {"subtasks": [{"intent": "x", "first_calls": [{"tool": tool, "arguments": {"path": "a.txt"}}]}]}

    (draft,) = schema.model_validate(calling("cat")).subtasks
    (made,) = subtasks_of((draft,), [NUMBER], "x")
    assert made.first_calls == (FirstCall(tool="read_file", arguments={"path": "a.txt"}),)
    for wrong in ("shell", "telepathy"):
        with pytest.raises(ValidationError):
            schema.model_validate(calling(wrong))
    with pytest.raises(ValidationError):
        plan_schema(named, 2).model_validate(calling("read_file"))


def test_an_alias_of_two_tools_means_neither() -> None:
    """As in a call. What a tool says of itself makes no other schema: it differs with the workspace."""
    two = tuple(ToolSpec(name, "", (), 1, aliases=("go", f"{name}_it")) for name in ("walk", "run"))
    schema = plan_schema(tuple(spec.named for spec in two), 2)
    assert schema.model_validate({"subtasks": [{"intent": "x", "tool": "run_it"}]}).subtasks[0].tool == "run"
    with pytest.raises(ValidationError):
        schema.model_validate({"subtasks": [{"intent": "x", "tool": "go"}]})
    elsewhere = tuple(replace(spec, description="in another workspace") for spec in two)
    assert plan_schema(tuple(spec.named for spec in elsewhere), 2) is schema


# --- the plan validator -----------------------------------------------------------------------------------------


def planned(intent: str = "do it", tool: str | None = "shell", *criteria: Criterion) -> PlannedSubTask:
    return PlannedSubTask(intent=intent, tool=tool, success_criteria=criteria or (NUMBER,))


def refused(
    *subtasks: PlannedSubTask, targets: tuple[tuple[str, str], ...] = (), tried: tuple[Fingerprint, ...] = ()
) -> list[str]:
    return objections(subtasks, MustNot(targets=targets), tried)


@pytest.mark.parametrize(
    ("intent", "tool", "blocked", "hit"),
    [
        ("read a.txt", "read_file", ("read_file", "a.txt"), True),
        ("read a.txt.", "read_file", ("read_file", "a.txt"), True),
        ("read 'a.txt', then stop", "shell", ("shell:cat", "a.txt"), True),
        ("read data.txt", "read_file", ("read_file", "a.txt"), False),
        ("read a.txt.bak", "read_file", ("read_file", "a.txt"), False),
        ("read sub/a.txt", "read_file", ("read_file", "a.txt"), False),
        ("read a.txt", "shell", ("read_file", "a.txt"), False),
        ("read a.txt", "read_file", ("read_file", ""), False),
    ],
)
def test_blocked_targets(intent: str, tool: str, blocked: tuple[str, str], hit: bool) -> None:
    """A target is refused by its whole name, and for the identity on which it failed."""
    assert bool(refused(planned(intent, tool), targets=(blocked,))) is hit


def test_a_plan_in_the_same_words_is_refused() -> None:
    """Nearly the same plan as one that failed, whatever its case and punctuation."""
    tried = (fingerprint([planned("Count the lines of a.txt!")]),)
    assert "nearly the same" in refused(planned("count the lines of a.txt"), tried=tried)[0]
    assert refused(planned("open the file and number each row", "read_file"), tried=tried) == []


def test_another_tool_makes_another_plan() -> None:
    """A long intent with another tool is what `break_symmetry` asks for, though it differs in no word."""
    intent = (
        "count the lines of every file below the folder and say which of them has the most of all, with its name"
    )
    tried = (fingerprint([planned(intent)]),)
    assert "nearly the same" in refused(planned(intent.replace(" of all", "")), tried=tried)[0]
    assert refused(planned(intent, "read_file"), tried=tried) == []


def test_another_order_makes_another_plan() -> None:
    """Parts that failed side by side may do well one after the other; the numbers of groups alone say nothing."""
    one, two = planned("add first() to calc.py"), planned("add last() to calc.py")
    tried = (fingerprint([one, two]),)
    assert refused(one, two.model_copy(update={"sequence": 2}), tried=tried) == []
    later = (each.model_copy(update={"sequence": 7}) for each in (one, two))
    assert "nearly the same" in refused(*later, tried=tried)[0]


# --- what the planner is told -----------------------------------------------------------------------------------


def directive(kind: Directive, gradient: float = 0.0, **more: object) -> PlanDirective:
    return PlanDirective.model_validate(
        {
            "task_id": "t",
            "round": 2,
            "loss": Loss(),
            "prev_directive": "init",
            "directive": kind,
            "grad_l": gradient,
            "failure_class": "environmental",
            **more,
        }
    )


def test_without_a_failure_nothing_is_said_of_the_approach() -> None:
    """Where only refused calls failed P is 0 / 0: neither is the method kept, nor is another one asked for."""
    kinds = (Directive.BREAK_SYMMETRY, Directive.CHANGE_APPROACH, Directive.CHANGE_PATH, Directive.REFINE)
    texts = {directive_text(directive(kind, 0.5, failure_class="mixed", urgency="worsening")) for kind in kinds}
    assert texts == {"Plan what is still missing."}
    tie = directive(Directive.CHANGE_PATH, failure_class="mixed", loss=Loss(P=0.5))
    assert "Keep the method" in directive_text(tie)


def test_a_source_is_blamed_only_by_the_record_of_a_call() -> None:
    """A plateau without logical failures says nothing of a source; a call that the world refused says it itself."""
    ran = ToolCall(tool="shell", identity=("shell:wc",), target="wc a.txt", input="wc a.txt", status=CallStatus.OK)
    missing = {"input": "wc b.csv", "target": "wc b.csv", "error_output": "wc: b.csv: No such file or directory"}
    refused = ran.model_copy(update={**missing, "status": CallStatus.ERROR})
    wrong = ran.model_copy(update={"input": "wc -q", "status": CallStatus.ERROR, "error_output": "wc: bad option"})

    def told(*calls: ToolCall) -> str:
        failed = SubTaskOutcome(subtask_id="1", parent_task_id="t", status="failed", intent="x", tool_calls=calls)
        return directive_text(directive(Directive.CHANGE_PATH, failed=(failed,)))

    assert told(ran, wrong) == told() and "Failed" not in told() and "source" not in told()
    assert "Failed: shell: wc b.csv → wc: b.csv: No such file or directory" in told(ran, refused, wrong)


def test_what_failed_and_what_stands_are_named_once() -> None:
    """Each unmet criterion once with its evidence, what worked before, and what is done already."""
    unmet = CriterionVerdict(criterion="a number", verdict="fail", evidence="no digit", decided_by=DecidedBy.CHECK)
    judged = CriterionVerdict(criterion="reads well", verdict="fail", decided_by=DecidedBy.JUDGEMENT)
    failed = SubTaskOutcome(
        subtask_id="1", parent_task_id="t", status="failed", intent="count", criteria_verdicts=(unmet, judged)
    )
    done = SubTaskOutcome(subtask_id="2", parent_task_id="t", status="matched", intent="list", output="a.txt")
    given = directive(
        Directive.REFINE, failed=(failed,), standing=(done,), unmet=(unmet,), suggested_alternatives=("glob",)
    )
    text = directive_text(given)
    for part in ("Not met: a number: no digit", "worked for this request before: glob", "- list: a.txt"):
        assert text.count(part) == 1
    assert failed_checks(given) == {"a number": "no digit"}
