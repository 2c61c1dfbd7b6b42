"""What contracts compute themselves: everything but fields."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from artoo.contracts import errors
from artoo.contracts.changes import (
    Change,
    ChangeKind,
    Node,
    PathClass,
    Trait,
    digest_of,
    path_bytes,
    printable_path,
)
from artoo.contracts.criteria import Criterion, CriterionLike, FileMatches
from artoo.contracts.errors import ModelRefused
from artoo.contracts.execution import (
    CallStatus,
    CriterionVerdict,
    GapPoint,
    SubTaskOutcome,
    ToolCall,
    standing_failure,
)
from artoo.contracts.memory import (
    CalibrationEntry,
    Level,
    Megram,
    MegramState,
    MemoryAction,
    MemoryWritten,
    Potentials,
    SOPRecord,
)
from artoo.contracts.recording import AskedBy, TaskOpened
from artoo.contracts.solution import StoppedBy
from artoo.contracts.tags import Pair

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PAIR = Pair("tool:glob", "env:local")


@given(st.binary(max_size=60))
def test_printable_paths_lose_nothing(raw: bytes) -> None:
    """Any file name becomes one printable line, and comes back the same."""
    name = raw.replace(b"\0", b"")
    shown = printable_path(name)
    assert path_bytes(shown) == name
    assert shown.isprintable()


def _change(path: str, **fields: object) -> Change:
    given_fields: dict[str, object] = {
        "kind": ChangeKind.CREATED,
        "path": path,
        "node": Node.FILE,
        "path_class": PathClass.PROJECT,
        **fields,
    }
    return Change.model_validate(given_fields)


def test_a_digest_is_that_of_the_act_and_not_of_its_order() -> None:
    """The same changes have one digest in any order; another size is another act."""
    one, two = _change("/p/a", size_after=1), _change("/p/b", size_after=2)
    assert digest_of([one, two]) == digest_of([two, one])
    assert digest_of([one]) != digest_of([_change("/p/a", size_after=3)])


def test_sensitive_places_and_traits() -> None:
    """Secrets, start-up files and artoo's own files are sensitive; a trait is asked for by name."""
    assert _change("/h/.ssh/id", path_class=PathClass.SECRET).sensitive
    assert not _change("/p/a").sensitive
    assert _change("/p/a", traits=(Trait.WIDENED,)).has(Trait.WIDENED)
    assert not _change("/p/a").has(Trait.WIDENED)


@pytest.mark.parametrize(("paths", "bookkeeping"), [((), False), (("/p/a",), False), ((), True)])
def test_a_commit_changes_something(paths: tuple[str, ...], bookkeeping: bool) -> None:
    """Files, or git's own files: what was seen before may be otherwise now."""
    call = ToolCall(tool="shell", identity=("shell:git",), changes=paths, bookkeeping=bookkeeping)
    assert call.changed_something is (bool(paths) or bookkeeping)


def test_a_call_in_one_line() -> None:
    """The seeds' form: output when it went well, else why it did not, 200 characters of it."""
    call = ToolCall(tool="glob", identity=("glob",), input="*.py", output="x" * 300)
    assert call.line() == f"glob: *.py → {'x' * 200}"
    failed = call.model_copy(update={"status": CallStatus.ERROR, "error_output": "no such file"})
    assert failed.line().endswith("→ no such file")


@pytest.mark.parametrize(("attempts", "corrections"), [(0, 0), (1, 0), (3, 2)])
def test_corrections_are_attempts_after_the_first(attempts: int, corrections: int) -> None:
    """Each correction begins one further attempt."""
    trajectory = tuple(GapPoint(attempt=number, score=0.0) for number in range(1, attempts + 1))
    outcome = SubTaskOutcome(subtask_id="s", parent_task_id="t", status="failed", gap_trajectory=trajectory)
    assert outcome.corrections == corrections


def test_endings_from_which_nothing_is_learnt() -> None:
    """No model, an interrupt and an internal failure say nothing about the way that was tried."""
    nothing = {StoppedBy.NO_MODEL, StoppedBy.INTERRUPTED, StoppedBy.INTERNAL}
    assert {each for each in StoppedBy if each.is_infrastructure} == nothing
    assert {each for each in StoppedBy if not each.teaches} == {
        StoppedBy.MISSING_INPUT,
        *nothing,
        StoppedBy.QUESTION,
        StoppedBy.PROMPT_REFUSED,
    }


@pytest.mark.parametrize(("status", "of_this"), [(200, True), (400, True), (413, True), (422, True), (401, False)])
def test_which_refusals_are_of_one_prompt(status: int, of_this: bool) -> None:
    """A wrong key refuses everything; a prompt that is too long is refused alone."""
    assert ModelRefused("no", status=status).of_this_prompt is of_this


def test_memory_values_name_their_pair() -> None:
    """Everything that memory says about a pair gives it as one value."""
    megram = Megram(
        id="m",
        created_at=NOW,
        space=PAIR.space,
        entity=PAIR.entity,
        state=MegramState.ACCEPT,
        f=0.9,
        sigma=1,
        k=0.05,
    )
    potentials = Potentials(
        space=PAIR.space, entity=PAIR.entity, attention=1, decision=1, action=MemoryAction.EXPLOIT
    )
    rule = SOPRecord(id="c", space=PAIR.space, entity=PAIR.entity, content="r", f=1, sigma=1, created_at=NOW)
    advice = CalibrationEntry(space=PAIR.space, entity=PAIR.entity)
    assert str(PAIR) == "tool:glob env:local"
    assert {megram.pair, potentials.pair, rule.pair, advice.pair} == {PAIR}
    assert not megram.is_rule
    assert megram.model_copy(update={"level": Level.COMMON_SENSE}).is_rule
    written = MemoryWritten.of(megram)
    assert (written.megram_id, Pair(written.space, written.entity)) == ("m", PAIR)
    assert (written.state, written.f, written.sigma, written.k) == (MegramState.ACCEPT, 0.9, 1, 0.05)


def test_a_program_that_asked_is_named_by_what_it_says_of_itself() -> None:
    """Protocol, client and version in one piece; what it did not say leaves no gap."""
    assert AskedBy(protocol="mcp", client="editor", version="1.2").label == "mcp editor 1.2"
    assert AskedBy(protocol="a2a").label == "a2a"


def test_errors_carry_what_their_readers_need() -> None:
    """Each error keeps the fact by which it is handled."""
    assert errors.ModelUnreachable("x", transient=True).transient
    assert errors.ModelRefused("x", status=401).status == 401
    assert errors.ModelAnswerInvalid("x", answer="{").answer == "{"
    assert errors.BudgetExhausted("x", budget="calls").budget == "calls"
    assert all(
        issubclass(each, errors.ArtooError)
        for each in (errors.ModelError, errors.ProtocolError, errors.ToolError, errors.SandboxError)
    )


@pytest.mark.parametrize(
    ("withheld", "refused"),
    [((None, None), False), (("person", None), True), (("nobody", None), False), ((None, "nobody"), True)],
)
def test_when_consent_was_missing(withheld: tuple[str | None, ...], refused: bool) -> None:
    """A person's no counts wherever it came; nobody's only when it was the last word."""
    calls = tuple(
        ToolCall.model_validate({"tool": "shell", "identity": ("shell",), "withheld_by": by}) for by in withheld
    )
    outcome = SubTaskOutcome(subtask_id="s", parent_task_id="t", status="failed", tool_calls=calls)
    assert outcome.refused is refused
    assert not outcome.model_copy(update={"status": "matched"}).refused


@pytest.mark.parametrize(
    ("call", "never_ran"),
    [
        (ToolCall(tool="glob", identity=("glob",), status=CallStatus.REFUSED, reason="blocked"), True),
        (
            ToolCall(tool="glob", identity=("glob",), status=CallStatus.REFUSED, reason="no", withheld_by="person"),
            False,
        ),
        (
            ToolCall(
                tool="shell", identity=("shell:rm",), status=CallStatus.REFUSED, reason="no", dropped=("rm a",)
            ),
            False,
        ),
        (ToolCall(tool="glob", identity=("glob",), status=CallStatus.ERROR), False),
        (ToolCall(tool="glob", identity=("glob",)), False),
    ],
)
def test_a_call_that_was_turned_away_never_ran(call: ToolCall, never_ran: bool) -> None:
    """By a block, a repetition or its arguments; what nobody consented to is something else."""
    assert call.never_ran == never_ran


@pytest.mark.parametrize(
    ("ended", "says_no"),
    [
        ({"exit_code": 1, "output": "< a"}, True),
        ({"exit_code": 1}, True),
        ({"exit_code": 1, "output": "1 failed", "error_output": "warning"}, True),
        ({"exit_code": 1, "error_output": "no such option"}, False),
        ({"exit_code": 2, "output": "< a"}, False),
        ({}, False),
        ({"exit_code": 1, "status": CallStatus.TIMEOUT}, False),
    ],
)
def test_a_comparison_that_says_no_is_told_from_an_error(ended: dict[str, object], says_no: bool) -> None:
    """It ended with 1, and an error is not all that it put out."""
    call = {"tool": "shell", "identity": ("shell:diff",), "status": CallStatus.ERROR, **ended}
    assert ToolCall.model_validate(call).says_no is says_no


def test_a_type_of_task_has_its_own_numbers() -> None:
    """What the person accepted for it stands over the task's hyperparameters; other types have those alone."""
    opened = TaskOpened(
        artoo="1", hyperparameters={"delta": 0.3, "rho": 0.5}, tuned={"count_files": {"delta": 0.0}}
    )
    assert opened.for_type("count_files").hyperparameters == {"delta": 0.0, "rho": 0.5}
    assert opened.for_type("write_text") is opened


@pytest.mark.parametrize(
    ("later", "undone"),
    [
        ({}, True),
        ({"input": "git push"}, False),
        ({"input": "git push", "status": CallStatus.REFUSED, "withheld_by": "nobody"}, True),
        ({"changes": ("/p/a",)}, False),
        ({"changes": ("/p/b",)}, True),
    ],
)
def test_what_was_withheld_is_undone_until_it_comes_about(later: dict[str, object], undone: bool) -> None:
    """By the same call, or by the same change in another way; whatever the answer says of it."""
    dropped = ("/p/a",) if "changes" in later else ()
    kept = ToolCall(
        tool="shell",
        identity=("shell:git",),
        input="git push",
        status=CallStatus.REFUSED,
        withheld_by="nobody",
        dropped=dropped,
    )
    after = ToolCall.model_validate({"tool": "shell", "identity": ("shell:git",), "input": "git commit"} | later)
    assert bool(standing_failure((kept, after))) is undone
    assert not kept.changed_something and after.changed_something is ("changes" in later)


@pytest.mark.parametrize(
    ("code", "verdict", "done"), [(128, "open", False), (128, "pass", True), (1, "open", True)]
)
def test_what_nothing_confirms_and_whose_last_act_failed_is_not_done(
    code: int, verdict: Literal["open", "pass"], done: bool
) -> None:
    """A test that says no may be what was wanted, and a criterion that is met is decided."""
    call = ToolCall(tool="t", identity=("t",), status=CallStatus.ERROR, exit_code=code, output="no")
    turned_away = call.model_copy(update={"status": CallStatus.REFUSED})
    outcome = SubTaskOutcome(
        subtask_id="s",
        parent_task_id="t",
        status="matched",
        tool_calls=(call, turned_away),
        criteria_verdicts=(CriterionVerdict(criterion="c", verdict=verdict),),
    )
    assert outcome.done is done
    assert not outcome.model_copy(update={"status": "failed"}).done
    assert outcome.model_copy(update={"tool_calls": (turned_away,)}).done is (verdict == "pass")
    assert outcome.texts == ("", "", "no", "", "", "no", "", "", "")
    assert not any(each.of_world for each in outcome.criteria_verdicts)


@pytest.mark.parametrize(
    ("output", "lengths"),
    [
        ("unknown [('4', 'C007'), ('9', 'C008')]\n[1, 2, 3]", (2, 3)),
        ('{"a": 1}\n["x, y"]', (1,)),
        ('[{"a": null}, true]', (2,)),
        ("[]", ()),  # that there is none, nobody has counted
        ("[1] of [2]", ()),
        ("[a, b]", ()),
        ("[1, 2], [3]", ()),
        ("['\\d']", ()),
        ("see [0](1, 2)", ()),
        ("[0].index", ()),
        ("[1] + [2, 3][0:1]", ()),
        ("[" * 400, ()),
    ],
)
def test_how_many_elements_a_printed_list_has(output: str, lengths: tuple[int, ...]) -> None:
    """A literal to the end of the line, and nothing that only looks like one."""
    call = ToolCall(tool="t", identity=("t",), output=output)
    assert call.list_lengths == lengths


def test_a_check_and_a_criterion_may_be_written_by_the_names_that_models_write() -> None:
    """`type`, `pattern` and `criterion` can mean one thing only; what is given twice is refused."""
    reader = TypeAdapter[Criterion](CriterionLike)
    written = {"criterion": "it is there", "check": {"type": "file_matches", "path": "a", "pattern": "b"}}
    assert reader.validate_python(written) == Criterion(text="it is there", check=FileMatches(path="a", regex="b"))
    twice = {"text": "it is there", "criterion": "that"}
    with pytest.raises(ValidationError, match="criterion"):
        reader.validate_python(twice)
    with pytest.raises(ValidationError):
        Criterion.model_validate({"text": "it is there", "check": "file_exists"})
