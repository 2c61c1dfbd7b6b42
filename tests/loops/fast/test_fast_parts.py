"""The pure parts of the fast loop: steps, quotes, verdicts, corrections, and tools in a prompt."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from artoo.contracts.criteria import Criterion, Mode
from artoo.contracts.execution import CallStatus, DecidedBy, ExecutionResult, FailureClass, GapPoint, ToolCall
from artoo.contracts.plan import MustNot
from artoo.contracts.roles import Role
from artoo.llm.reading import read_answer
from artoo.loops.asking import together
from artoo.loops.fast import judging
from artoo.loops.fast.checks import CheckResult
from artoo.loops.fast.facts import Fact
from artoo.loops.fast.judgement import JudgedCriterion, claim_of, facts_of, numbered, usable_verdicts
from artoo.loops.fast.judging import correction_for
from artoo.loops.fast.step import ANSWER, CANNOT, step_contract
from artoo.loops.tool_text import arguments_for, describe_tools, prohibitions, tool_segments
from artoo.ports.tools import Parameter, ToolSpec
from artoo.prompts.segments import Segment

SHELL = ToolSpec(
    "shell", "run bash", (Parameter("command", "the command"),), 60, body="command", languages=("bash", "sh")
)
READ = ToolSpec(
    "read_file", "show a file", (Parameter("path", "the file"), Parameter("lines", "from-to", required=False)), 30
)
WRITE = ToolSpec(
    "write_file",
    "make a file",
    (Parameter("path", "the file"), Parameter("content", "text")),
    31,
    body="content",
    whole_lines=True,
)
SPECS = (SHELL, READ, WRITE)

# --- steps ------------------------------------------------------------------------------------------------------


def test_a_step_names_an_open_tool_or_ends() -> None:
    """Only the tools that are open, `answer` and `cannot`."""
    schema = step_contract(SPECS)
    assert schema.model_validate({"tool": "shell", "body": "ls"}).tool == "shell"
    assert schema.model_validate({"tool": ANSWER, "sources": [1, 2], "body": "hi\n"}).words == "hi"
    assert schema.model_validate({"tool": CANNOT, "input": "no file"}).words == "no file"
    with pytest.raises(ValidationError):
        schema.model_validate({"tool": "python"})


@pytest.mark.parametrize(
    ("info", "tool"), [("bash", "shell"), (" SH ", "shell"), ("shell", "shell"), ("python", None), ("", None)]
)
def test_a_bare_block_is_a_final_call(info: str, tool: str | None) -> None:
    """A block in a tool's language is a final call of it; in another it is nothing."""
    step = step_contract(SPECS).from_bare_body(info, "ls")
    assert (step.tool if step else None) == tool
    assert step is None or (step.is_final and step.body == "ls")


@pytest.mark.parametrize(
    ("text", "tool", "words"),
    [
        ('I look first.\n{"tool": "read_file", "input": "a.txt"}', "read_file", "a.txt"),
        ('{"tool": "answer", "sources": [1]}\n```\nIt is {2}.\n```', ANSWER, "It is {2}."),
        ('{"tool": "answer"}\n````text\nSee:\n```py\nx\n```\n````', ANSWER, "See:\n```py\nx\n```"),
        ("I count them.\n```bash\nwc -l < a.txt", "shell", "wc -l < a.txt"),
        ("Bom dia!", ANSWER, "Bom dia!"),
    ],
)
def test_what_models_write_is_read(text: str, tool: str, words: str) -> None:
    """Thought first, then a line of JSON, a block, both, or words alone."""
    step = read_answer(text, step_contract(SPECS), body_field="body")
    assert (step.tool, step.words) == (tool, words)


# --- quotes -----------------------------------------------------------------------------------------------------

ONE = [Criterion(text="c")]
EVIDENCE = "The sky\n  is   Blue.\nexit 0"


@pytest.mark.parametrize(
    ("quote", "passes"),
    [
        ("sky is blue", True),
        ("'The sky'", True),
        ("the SKY is blue.", True),
        ("sky is green", False),
        ("", False),
        ("T", False),
        ("   ", False),
        ("blue sky", False),
    ],
)
def test_a_pass_needs_a_quote_that_is_there(quote: str, passes: bool) -> None:
    """Spaces, case and outer quotation marks do not matter; everything else does."""
    (found,) = usable_verdicts([JudgedCriterion(number=1, quote=quote, verdict="pass")], ONE, EVIDENCE)
    assert (found.verdict == "pass") is passes


def test_a_verdict_that_is_missing_is_no_pass() -> None:
    """Criteria without verdict, and verdicts without criterion: not met, and ignored."""
    two = [Criterion(text="a"), Criterion(text="b")]
    report = [
        JudgedCriterion(number=2, quote="sky", verdict="pass"),
        JudgedCriterion(number=7, quote="sky", verdict="pass"),
    ]
    assert [each.verdict for each in usable_verdicts(report, two, EVIDENCE)] == ["open", "pass"]
    assert numbered(two) == "1. a\n2. b"


def test_a_fail_needs_no_quote() -> None:
    """A reader may miss something without pointing at it; its class is kept."""
    verdict = JudgedCriterion(
        number=1, verdict="fail", reason="not there", failure_class=FailureClass.ENVIRONMENTAL
    )
    (found,) = usable_verdicts([verdict], ONE, EVIDENCE)
    assert (found.verdict, found.evidence, found.failure_class) == ("fail", "not there", FailureClass.ENVIRONMENTAL)


@given(st.text(min_size=1, max_size=40), st.text(max_size=200))
@settings(deadline=None, max_examples=100)
def test_no_quote_from_nowhere_passes(quote: str, evidence: str) -> None:
    """Whatever is quoted, a pass means that its letters are in the evidence, in order."""
    (found,) = usable_verdicts([JudgedCriterion(number=1, quote=quote, verdict="pass")], ONE, evidence)
    if found.verdict == "pass":
        squeezed = "".join(evidence.split()).casefold()
        assert "".join(quote.split()).casefold().strip("\"'`") in squeezed


def test_a_judge_reads_a_long_output_that_is_its_own_answer_once() -> None:
    """It is named as a call's output; a short one, other words, or one that the evidence cuts, stand there."""
    long = "\n".join(f"a.py:{number}: TODO" for number in range(90))
    printed = call(CallStatus.OK).model_copy(update={"output": long, "exit_code": 0})
    verbatim = result(printed, verbatim=True, output=long)
    assert claim_of(verbatim, facts_of(verbatim, "")) == "what call 1 put out, word for word and all of it."
    assert claim_of(verbatim, long[:600]) == long
    told = verbatim.model_copy(update={"verbatim": False})
    assert claim_of(told, facts_of(told, "")) == long
    short = verbatim.model_copy(update={"output": "a.py:1: TODO"})
    assert claim_of(short, facts_of(short, "")) == "a.py:1: TODO"


def test_a_judge_reads_the_whole_program_that_the_answer_rests_on() -> None:
    """What is counted and left out stands in its middle; programs that no answer names are shown in short."""
    counted = "march = [row for row in rows if row.month == 3]"
    program = f"{'# read' * 150}\n{counted}\n{'# print' * 150}"
    made = call(CallStatus.OK).model_copy(update={"input": program, "output": "7", "exit_code": 0})
    assert counted in facts_of(result(made, sources=(1,)), "")
    beside = facts_of(result(made, call(CallStatus.OK), sources=(2,)), "")
    assert counted not in beside
    assert "characters left out" in beside


def test_a_judge_is_told_that_nothing_changed_and_why_a_call_failed_once() -> None:
    """So that "no file was changed" has words to quote, and one cause does not look like two."""
    said = "Traceback:\nTypeError: no"
    shown = facts_of(result(call(said=said, reason="TypeError: no")), "")
    assert shown.endswith("Changed by this task: nothing")
    assert shown.count("TypeError: no") == 1
    assert "withheld" in facts_of(result(call(said=said, reason="withheld")), "--- a before")


# --- verdicts ---------------------------------------------------------------------------------------------------


def call(
    status: CallStatus = CallStatus.ERROR, said: str = "", reason: str | None = None, tool: str = "shell"
) -> ToolCall:
    return ToolCall(
        tool=tool, identity=(f"{tool}:x",), input="x", status=status, error_output=said, reason=reason, exit_code=1
    )


def result(*calls: ToolCall, status: str = "completed", **more: object) -> ExecutionResult:
    values = {"subtask_id": "s", "attempt": 1, "status": status, "tool_calls": calls, **more}
    return ExecutionResult.model_validate(values)


@pytest.mark.parametrize(
    ("of", "failure_class"),
    [
        (result(call(said="cat: a: No such file or directory")), FailureClass.ENVIRONMENTAL),
        (
            result(call(reason="there is no a.txt; similar names: b.txt", tool="read_file")),
            FailureClass.ENVIRONMENTAL,
        ),
        (result(call(said="Permission denied")), FailureClass.ENVIRONMENTAL),
        (result(call(CallStatus.TIMEOUT)), FailureClass.ENVIRONMENTAL),
        (result(infrastructure="timeout"), FailureClass.ENVIRONMENTAL),
        (
            result(call(CallStatus.REFUSED, reason="there is no tool 'x'; the tools are: shell")),
            FailureClass.LOGICAL,
        ),
        (result(call(said="syntax error near `)'")), FailureClass.LOGICAL),
        (result(call(said="bash: foo: command not found")), FailureClass.LOGICAL),
        (result(call(CallStatus.OK, said="warning: no such file")), FailureClass.LOGICAL),
        (result(), FailureClass.LOGICAL),
    ],
)
def test_the_class_of_a_failure(of: ExecutionResult, failure_class: FailureClass) -> None:
    """What the world lacks is environmental, in our own tools' words too; what was done wrongly is logical."""
    assert judging.class_of_failure(of) is failure_class


def test_giving_up_fails_every_criterion() -> None:
    """All criteria fail with the reason, the class and the identities of the calls that went wrong."""
    criteria = [Criterion(text="a"), Criterion(text="b", mode=Mode.VERIFIABLE)]
    bad = call(said="No such file or directory")
    verdicts = judging.failed_outright(
        criteria, result(call(CallStatus.OK, tool="glob"), bad, status="failed", output="no")
    )
    assert [each.verdict for each in verdicts] == ["fail", "fail"]
    assert {(each.evidence, each.failure_class, each.identities) for each in verdicts} == {
        ("no", FailureClass.ENVIRONMENTAL, ("shell:x",))
    }
    assert {each.accountable for each in verdicts} == {Role.PLANNER}


def test_a_check_decides_alone() -> None:
    """A passed check has no class and cites nobody; a failed one is the executor's when logical."""
    good = judging.from_check(ONE[0], CheckResult(True, "seen"))
    assert (good.verdict, good.failure_class, good.identities, good.decided_by) == (
        "pass",
        None,
        (),
        DecidedBy.CHECK,
    )
    bad = judging.from_check(ONE[0], CheckResult(False, "gone", FailureClass.LOGICAL, ("shell:x",)))
    assert (bad.verdict, bad.identities, bad.accountable) == ("fail", ("shell:x",), Role.EXECUTOR)


def test_failures_are_counted_over_attempts() -> None:
    """k of N: failures so far of attempts so far, also for a verdict that passes at last."""
    fails, passes = judging.from_fact(ONE[0], Fact("no")), judging.from_check(ONE[0], CheckResult(True, ""))
    missed, met = (GapPoint(attempt=1, score=0, unmet_criteria=texts) for texts in ((ONE[0].text,), ()))
    counted = [
        judging.counted(verdict, len(before) + 1, before)
        for verdict, before in ((fails, []), (passes, [missed]), (fails, [missed, met]))
    ]
    assert [(each.failed_attempts, each.attempts) for each in counted] == [(1, 1), (1, 2), (2, 3)]


# --- corrections ------------------------------------------------------------------------------------------------


def test_a_correction_names_the_fact_once() -> None:
    """What was wrong, each thing once; a fact without the criterion, a judge's or a check's word with it."""
    fact = Fact("35: in no call's output")
    verdicts = [*judging.against([Criterion(text="a"), Criterion(text="b")], fact)]
    signal = correction_for(result(call(CallStatus.OK)), verdicts)
    assert (signal.what_was_wrong, signal.what_to_do) == ("35: in no call's output", "")
    assert (signal.failed_criterion, signal.failure_class) == ("a", FailureClass.LOGICAL)
    missed = judging.from_check(ONE[0], CheckResult(False, "no match"))
    assert correction_for(result(), [missed], "count with wc").what_was_wrong == "c: no match"
    assert correction_for(result(), [missed], "count with wc").what_to_do == "count with wc"


def test_a_tie_corrects_as_logical() -> None:
    """As many logical as environmental failures: something can be done differently."""
    logical = judging.from_fact(ONE[0], Fact("x"))
    world = logical.model_copy(update={"failure_class": FailureClass.ENVIRONMENTAL})
    assert correction_for(result(), [logical, world]).failure_class is FailureClass.LOGICAL
    assert correction_for(result(), [world, world, logical]).failure_class is FailureClass.ENVIRONMENTAL


# --- tools in a prompt ------------------------------------------------------------------------------------------


def test_tools_are_listed_by_priority() -> None:
    """One line each, what goes inline and what goes into the block."""
    lines = describe_tools(SPECS).splitlines()
    assert [line.split(":")[0] for line in lines] == ["- read_file", "- write_file", "- shell"]
    assert "input: the file" in lines[1] and "fenced block: text" in lines[1]
    assert "input" not in lines[2]


def test_the_persons_tools_stand_behind_those_that_every_project_has() -> None:
    """What differs from project to project has a segment of its own, so that the prefix before it is shared."""
    own = replace(READ, name="double", special=True)
    assert tool_segments((*SPECS, own)) == {
        Segment.TOOLS: describe_tools(SPECS),
        Segment.USER_TOOLS: describe_tools((own,)),
        Segment.AGENT_SKILLS: "",
    }
    nothing = dict.fromkeys((Segment.TOOLS, Segment.USER_TOOLS, Segment.AGENT_SKILLS), "")
    assert tool_segments(SPECS, programs_apart=True) == nothing


def test_what_a_tool_offers_has_a_segment_of_its_own() -> None:
    """Skills are listed apart from the tools, for small models too, and behind what an agent is good at."""
    offering = replace(READ, name="skill", special=True, offers=("Skills:", "- a: for tests"))
    for apart in (False, True):
        own = tool_segments((*SPECS, offering), programs_apart=apart)
        assert own[Segment.AGENT_SKILLS] == "Skills:\n- a: for tests"
        both = together({Segment.AGENT_SKILLS: "search", Segment.AGENT_LIMITS: "none"}, own)
        assert both[Segment.AGENT_SKILLS] == "search\n\nSkills:\n- a: for tests"
        assert both[Segment.AGENT_LIMITS] == "none"


@pytest.mark.parametrize(
    ("spec", "inline", "body", "arguments"),
    [
        (SHELL, "", "ls", {"command": "ls"}),
        (SHELL, "ls", "", {"command": "ls"}),
        (READ, "a.txt", "", {"path": "a.txt"}),
        (READ, "", " a.txt\n", {"path": "a.txt"}),
        (WRITE, "a.txt", "x\n", {"path": "a.txt", "content": "x\n"}),
        (WRITE, "a.txt", "x\ny", {"path": "a.txt", "content": "x\ny\n"}),
        (WRITE, "a.txt", "", {"path": "a.txt", "content": ""}),
    ],
)
def test_arguments(spec: ToolSpec, inline: str, body: str, arguments: dict[str, str]) -> None:
    """Input and block become the tool's arguments; a text's last line ends like the others, a program stays."""
    assert arguments_for(spec, inline, body, {"no": "such"}) == arguments


def test_a_content_that_is_named_stays_as_it_is() -> None:
    """What a model writes into `more` is exact to the last byte: so a file without a last line end can be made."""
    named = arguments_for(WRITE, "a.txt", "", {"content": "x"})
    assert named == {"path": "a.txt", "content": "x"}


def test_prohibitions_are_short() -> None:
    """Tools and short targets are named; whole scripts are not."""
    must_not = MustNot(
        tools=("glob",), targets=(("read_file", "a.txt"), ("python", "x = 1\nprint(x)"), ("shell", "x" * 99))
    )
    assert prohibitions(must_not) == "- glob\n- a.txt (with read_file)"


@pytest.mark.parametrize("fault", list(FailureClass))
def test_what_a_check_missed_takes_the_class_of_the_fault_behind_it(fault: FailureClass) -> None:
    """A check sees that something is missing and not why; only a world that refused makes it environmental."""
    missed = judging.from_check(Criterion(text="c"), CheckResult(False, "nothing there", FailureClass.LOGICAL))
    passed = judging.from_check(Criterion(text="c"), CheckResult(True, "there"))
    fact = Fact("it failed", fault, ("shell:cp",))
    assert judging.missed_by(missed, fact).failure_class is fault
    assert judging.missed_by(passed, fact) is passed
    if fault is FailureClass.ENVIRONMENTAL:
        assert judging.missed_by(missed, fact).identities == ("shell:cp",)
        assert judging.missed_by(missed, fact).accountable is Role.PLANNER
