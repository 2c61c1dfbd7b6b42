"""Plans before they run: completed with what the request demands, and refused with reasons."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from artoo.contracts.criteria import Criterion, FileExists, Mode, OutputMatches, ToolSucceeded
from artoo.contracts.execution import SubTaskOutcome
from artoo.contracts.plan import MustNot, PlannedSubTask
from artoo.contracts.solution import Directive, Loss, PlanDirective
from artoo.loops.medium.directive_text import directive_text
from artoo.loops.medium.plan_check import PlanRules, fingerprint, objections, similarity
from artoo.loops.medium.plan_draft import (
    PlanDraft,
    SubTaskDraft,
    complete,
    condensed,
    merged,
    plan_schema,
    programmed,
)

FALLBACK = Criterion(text="does what was asked")
NUMBER = Criterion(text="a number", mode=Mode.VERIFIABLE, check=OutputMatches(regex=r"\d"))
MADE = Criterion(text="out.txt exists", mode=Mode.VERIFIABLE, check=FileExists(path="out.txt"))


def draft(*subtasks: SubTaskDraft, criteria: tuple[Criterion, ...] = ()) -> PlanDraft:
    return PlanDraft(subtasks=subtasks, task_criteria=criteria)


def test_a_single_subtask_is_the_request_itself() -> None:
    """One subtask gets the person's words as its intent and the draft as its approach, and every criterion."""
    (only,), criteria = complete(
        draft(SubTaskDraft(intent="count all its lines with wc", tool="shell")),
        [NUMBER],
        FALLBACK,
        "ctx",
        "How many?",
    )
    assert (only.intent, only.success_criteria) == ("How many?", (NUMBER,))
    assert "Plan: count all its lines with wc" in only.context and only.context.endswith("ctx")
    assert criteria == (NUMBER,)


def test_beside_what_stands_a_subtask_is_what_it_says() -> None:
    """In a round with carried subtasks a single one is judged by its own criteria, the whole by the task's."""
    own = Criterion(text="own")
    (only,), criteria = complete(
        draft(SubTaskDraft(intent="rest", success_criteria=(own,))), [NUMBER], FALLBACK, "", None
    )
    assert (only.intent, only.success_criteria, criteria) == ("rest", (own,), (NUMBER,))


def test_a_demanded_file_belongs_to_the_subtask_that_names_it() -> None:
    """In a larger plan a file's criterion goes to whoever names it; a tool without criteria must have run well."""
    subtasks, criteria = complete(
        draft(
            SubTaskDraft(intent="read in.csv", tool="shell"), SubTaskDraft(intent="make out.txt", tool="write_file")
        ),
        [MADE],
        FALLBACK,
        "",
        "whole",
    )
    assert subtasks[0].success_criteria[0].check == ToolSucceeded()
    assert subtasks[1].success_criteria == (MADE,)
    assert criteria == (MADE,)


def test_where_nothing_follows_the_fallback_stands() -> None:
    """Without any criterion a reader has to judge that the request was met."""
    (only,), criteria = complete(draft(SubTaskDraft(intent="say hi")), [], FALLBACK, "", "Say hi")
    assert only.success_criteria == criteria == (FALLBACK,)


def test_a_demanded_criterion_is_never_softened() -> None:
    """A drafted criterion of the same text does not replace the demanded one."""
    soft = Criterion(text=NUMBER.text)
    assert merged([NUMBER], [soft, FALLBACK]) == (NUMBER, FALLBACK)


@given(
    st.lists(st.sampled_from([NUMBER, MADE, FALLBACK]), max_size=6),
    st.lists(st.sampled_from([NUMBER, FALLBACK]), max_size=6),
)
@settings(deadline=None, max_examples=50)
def test_merging_keeps_all_once(one: list[Criterion], other: list[Criterion]) -> None:
    """Merging is idempotent, keeps the first group's order, and loses no text."""
    both = merged(one, other)
    assert merged(both, one, other) == both
    assert {each.text for each in both} == {each.text for each in (*one, *other)}
    assert both[: len(merged(one))] == merged(one)


LOOKING, RUNNING = {"read_file", "glob"}, {"shell", "python"}


def test_steps_that_only_look_become_one_subtask() -> None:
    """Looking first and acting last is one executor's work."""
    found = condensed(
        draft(
            SubTaskDraft(sequence=1, intent="read the whole file first", tool="read_file"),
            SubTaskDraft(sequence=2, intent="add up all the numbers in it", tool="python"),
        ),
        LOOKING,
        RUNNING,
    )
    assert [(each.sequence, each.tool) for each in found.subtasks] == [(1, "python")]


def test_real_decompositions_stay() -> None:
    """Parallel parts, and steps with a result of their own, are left as they are."""
    parallel = draft(
        SubTaskDraft(intent="count all lines in one", tool="shell"),
        SubTaskDraft(intent="count all lines in two", tool="shell"),
    )
    assert condensed(parallel, LOOKING, RUNNING) == parallel
    one = draft(SubTaskDraft(intent="x"))
    assert condensed(one, LOOKING, RUNNING) == one


def test_the_schema_names_the_tools() -> None:
    """A plan cannot name an unknown tool, more subtasks than the limit, or none."""
    schema = plan_schema(("shell", "read_file"), 2)
    good = {"subtasks": [{"intent": "x", "tool": "shell"}]}
    assert schema.model_validate(good).subtasks[0].tool == "shell"
    bad_plans: list[dict[str, list[dict[str, str]]]] = [
        {"subtasks": []},
        {"subtasks": [{"intent": "x", "tool": "telepathy"}]},
        {"subtasks": [{"intent": "x"}] * 3},
        {"subtasks": [{"intent": ""}]},
    ]
    for bad in bad_plans:
        with pytest.raises(ValidationError):
            schema.model_validate(bad)


# --- the plan validator -----------------------------------------------------------------------------------------


def planned(intent: str = "do it", tool: str | None = "shell", *criteria: Criterion) -> PlannedSubTask:
    return PlannedSubTask(intent=intent, tool=tool, success_criteria=criteria or (NUMBER,))


def refused(
    *subtasks: PlannedSubTask, must_not: MustNot | None = None, tried: tuple[str, ...] = (), most: int = 8
) -> list[str]:
    rules = PlanRules(("shell", "read_file"), must_not or MustNot(), tried, most)
    steps = [(each.sequence, each.tool, each.intent) for each in subtasks]
    return objections(subtasks, [NUMBER], rules, steps)


def test_a_good_plan_has_no_objections() -> None:
    """Known tools, criteria, nothing forbidden: it may run."""
    assert refused(planned(), planned("read it", "read_file")) == []


def test_an_empty_plan_is_refused() -> None:
    """No subtasks at all."""
    assert refused() == ["the plan has no subtasks"]


def test_too_many_subtasks_are_refused() -> None:
    """More than the limit, which is named."""
    assert refused(*[planned()] * 3, most=2) == ["the plan has 3 subtasks; at most 2 are allowed"]


def test_a_plan_without_criteria_is_refused() -> None:
    """Nobody could tell that its result is right."""
    bare = PlannedSubTask(intent="do it", tool=None)
    rules = PlanRules(("shell",), MustNot())
    found = objections([bare], [], rules, [(1, None, "do it")])
    assert "the plan has no criteria; say how to tell that the result is right" in found
    assert "subtask 1 has no criteria and no tool" in found


def test_an_unknown_tool_is_refused() -> None:
    """A tool that does not exist, with those that do."""
    assert refused(planned(tool="telepathy")) == [
        "subtask 1 names the tool 'telepathy'; there are: shell, read_file"
    ]


def test_a_blocked_tool_is_refused() -> None:
    """A tool that must not be used now."""
    assert refused(planned(), must_not=MustNot(tools=("shell",))) == [
        "subtask 1 uses 'shell', which must not be used now"
    ]


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
    assert bool(refused(planned(intent, tool), must_not=MustNot(targets=(blocked,)))) is hit


def test_a_plan_in_the_same_words_is_refused() -> None:
    """Nearly the same plan as one that failed, whatever its case and punctuation."""
    tried = (fingerprint([(1, "shell", "Count the lines of a.txt!")]),)
    assert "nearly the same" in refused(planned("count the lines of a.txt"), tried=tried)[0]
    assert refused(planned("open the file and number each row", "read_file"), tried=tried) == []


@given(st.text(max_size=60), st.text(max_size=60))
@settings(deadline=None, max_examples=100)
def test_similarity_is_a_similarity(one: str, other: str) -> None:
    """In [0, 1], symmetric, and 1 for equal texts."""
    assert 0.0 <= similarity(one, other) == similarity(other, one) <= 1.0
    assert similarity(one, one) == 1.0


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
            **more,
        }
    )


def test_each_directive_says_its_own() -> None:
    """The four directives differ in words, and each says what must change."""
    kinds = (Directive.BREAK_SYMMETRY, Directive.CHANGE_APPROACH, Directive.CHANGE_PATH, Directive.REFINE)
    assert len({directive_text(directive(kind)) for kind in kinds}) == 4


@pytest.mark.parametrize(
    ("gradient", "words"), [(0.1, "full strength"), (-0.1, "keep what works"), (0.09, None), (-0.09, None)]
)
def test_urgency_is_the_sign_of_the_gradient(gradient: float, words: str | None) -> None:
    """Worsening: at full strength; improving: keep more; a plateau says neither. ±ε is signal."""
    text = directive_text(directive(Directive.REFINE, gradient))
    assert (words in text) if words else ("full strength" not in text and "keep what works" not in text)


def test_what_failed_and_what_stands_are_named() -> None:
    """The unmet criterion, the failures with reasons, alternatives, and what is done already."""
    failed = SubTaskOutcome(
        subtask_id="1", parent_task_id="t", status="failed", intent="count", failure_reason="no file"
    )
    done = SubTaskOutcome(subtask_id="2", parent_task_id="t", status="matched", intent="list", output="a.txt")
    text = directive_text(
        directive(
            Directive.REFINE,
            failed_criterion="a number",
            failed=(failed,),
            standing=(done,),
            suggested_alternatives=("glob",),
        )
    )
    for part in ("Not met: a number", "Failed: count: no file", "Try instead: glob", "- list: a.txt"):
        assert part in text


def test_what_comes_from_a_file_is_not_typed_out() -> None:
    """A lone writing step becomes a program where a file has to be read; other drafts stay as they are."""
    writes = PlanDraft(subtasks=(SubTaskDraft(intent="write the sorted lines", tool="write_file"),))
    looks = PlanDraft(subtasks=(SubTaskDraft(intent="list the files here", tool="glob"),))
    assert programmed(writes, {"write_file"}, ["python", "shell"]).subtasks[0].tool == "python"
    assert programmed(writes, {"write_file"}, []) == writes
    assert programmed(looks, {"write_file"}, ["python"]) == looks


def test_a_small_models_looks_beside_its_program_are_dropped() -> None:
    """The program reads what it needs; what a look beside it shows is no answer. A large model means it."""
    plan = draft(
        SubTaskDraft(intent="find the total of shipped orders", tool="python"),
        SubTaskDraft(intent="read the whole orders file", tool="read_file"),
    )
    small = condensed(plan, LOOKING, RUNNING, small_model=True)
    assert [(each.intent, each.tool) for each in small.subtasks] == [("find the total of shipped orders", "python")]
    assert condensed(plan, LOOKING, RUNNING) == plan


def test_a_small_models_steps_that_type_what_a_file_holds_are_one_program() -> None:
    """Three steps without a program: the rows would be typed from the few lines that the prompt showed."""
    plan = draft(
        SubTaskDraft(sequence=1, intent="create a new file for it", tool="write_file"),
        SubTaskDraft(sequence=2, intent="filter rows based on a condition", tool="find_text"),
        SubTaskDraft(sequence=3, intent="write filtered rows to a new file", tool="write_file"),
    )
    small = programmed(plan, {"write_file"}, ["python", "shell"], small_model=True)
    assert [(each.sequence, each.intent, each.tool) for each in small.subtasks] == [
        (1, "write filtered rows to a new file", "python")
    ]
    assert programmed(plan, {"write_file"}, ["python"]) == plan
