"""What a person reads at the end: the answer alone, then what code knows, whatever the words say."""

from __future__ import annotations

import json

import pytest
from cli_standin import envelope
from review_cases import change

from artoo.cli.display.colors import Paint
from artoo.cli.display.task_state import TaskView
from artoo.cli.results.relative_paths import Here
from artoo.cli.results.result_json import as_json, exit_code
from artoo.cli.results.result_view import ResultText
from artoo.contracts.changes import ChangeKind, Conflict
from artoo.contracts.confirmation import NOBODY, AskedAct, ConfirmationAnswer, ConfirmationRequest, Consent
from artoo.contracts.criteria import Assurance
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.execution import CriterionVerdict, DecidedBy
from artoo.contracts.findings import FailedLast, ResultFact, Unconfirmed
from artoo.contracts.request import Turn, UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.settling import ChangeClass, ClassifiedChange, Settled, counts_of
from artoo.contracts.solution import Directive, FinalResult, StoppedBy, UnmetCriterion
from artoo.runtime.app.task_ids import named, short_name
from artoo.words.catalogue import ENGLISH, Catalogue, in_language
from artoo.words.result import result_words
from artoo.words.settling import not_yet, waiting, why_it_waits

HERE = Here("/home/me/project", "/home/me")
TASK = "0198f000-0000-7000-8000-000000000000"


def ended(changes: Settled | None = None, **more: object) -> FinalResult:
    """An accepted task with an answer."""
    result = FinalResult(
        task_id=TASK,
        summary="The spelling is corrected.",
        output="The spelling is corrected.",
        directive=Directive.ACCEPT,
        assurance=Assurance.CHECKED,
        changes=changes or Settled(),
    )
    return result.model_copy(update=more)


def told(result: FinalResult, text: Catalogue = ENGLISH) -> list[str]:
    """The lines for a person, who stands in the project."""
    return ResultText(result, TaskView(text=text), "0198", HERE).lines().splitlines()


def settled(state: str, *changes: ClassifiedChange, **more: object) -> Settled:
    """A difference and what became of it."""
    return Settled.model_validate({"state": state, "counts": counts_of(changes), "changes": changes, **more})


EDIT, DELETION, NEW = (
    change(ChangeClass.EDIT, "src/a.py"),
    change(ChangeClass.DELETION, "docs/old.md"),
    change(ChangeClass.SILENT, "new.txt"),
)


def test_the_answer_stands_first_and_alone() -> None:
    """Its line, an empty line, and then the facts: assurance, files by what happened to them, the cost."""
    lines = told(ended(settled("applied", DELETION, EDIT, NEW)))
    assert lines[:2] == ["The spelling is corrected.", ""]
    assert lines[2:6] == ["Checked.", "Made: new.txt", "Changed: src/a.py", "Removed: docs/old.md"]
    assert lines[6] == "  undo it: artoo undo 0198"
    assert lines[7].startswith("task 0198 · 1 round")


def test_what_waits_is_named_with_the_one_command_to_type() -> None:
    """Counts by class, apply on its own line, the others after it, and the last day; no file is called made."""
    lines = told(ended(settled("pending", DELETION, EDIT, NEW, expires_at=1_900_000_000.0)))
    assert "Pending your approval: 1 deleted, 1 edited, 1 new" in lines
    assert "  apply it: artoo apply 0198" in lines
    rest = next(line for line in lines if "artoo diff 0198" in line)
    assert "artoo discard 0198" in rest
    assert "kept until 2030-03-17" in rest
    assert not any(line.startswith(("Made", "Changed", "Removed")) for line in lines)


def test_a_part_that_was_applied_is_told_apart_from_what_waits() -> None:
    """Of a choice only the chosen paths are called applied; the rest waits."""
    part = settled("partly", DELETION, applied=(EDIT.path,))
    lines = told(ended(part))
    assert "Applied: src/a.py" in lines
    assert "Pending your approval: 1 deleted" in lines
    assert "  apply it: artoo apply 0198" in lines


def test_a_commit_is_told_by_what_it_did_and_not_by_gits_files() -> None:
    """The branch and the number of objects in a line; no path of `.git` is called made or changed."""
    inside = [
        change(ChangeClass.SILENT, f".git/{inner}").model_copy(update={"size_after": 41})
        for inner in ("refs/heads/work", "logs/HEAD", "objects/ab/c", "objects/ab/d", "COMMIT_EDITMSG")
    ]
    lines = told(ended(settled("applied", *inside)))
    assert lines[3] == "git .: branch work (new), 2 new objects (commits and files)"
    assert not any(line.startswith(("Made", "Changed")) for line in lines)
    assert "  undo it: artoo undo 0198" in lines


@pytest.mark.parametrize(("text", "words"), [(ENGLISH, ("done", "Done")), (in_language("zh"), ("完成",))])
@pytest.mark.parametrize("facts", [(), (Unconfirmed(looked=True), FailedLast(command="pytest -q"))])
def test_an_answer_that_nothing_confirms_is_never_called_done(
    text: Catalogue, words: tuple[str, ...], facts: tuple[ResultFact, ...]
) -> None:
    """No word of code is `done`; the facts of the result, or a line of their own, say that it is unverified."""
    result = ended(settled("applied", NEW), assurance=Assurance.UNVERIFIED, facts=facts)
    lines = told(result, text)
    assert not any(word in line for word in words for line in lines)
    told_facts = [result_words(text.language).fact(fact) for fact in facts]
    assert lines[2] == (told_facts[0] if facts else text("Not confirmed by anything."))
    assert all(fact in lines for fact in told_facts)


def test_conflicts_and_what_went_out_are_told() -> None:
    """What the person changed meanwhile, and what cannot be taken back."""
    clash = (Conflict(path="/a.txt", reason="changed"), Conflict(path=f"{HERE.directory}/b", reason="changed"))
    changes = settled("pending", EDIT, conflicts=clash, went_out=("pypi.org:443, 812 B",))
    reason = why_it_waits(clash, "en")
    lines = told(ended(changes.model_copy(update={"reason": reason})))
    assert "in conflict with what is there now: /a.txt (changed), b (changed)" in lines
    assert "  pypi.org:443, 812 B" in lines


def test_with_a_conflict_the_rest_is_offered() -> None:
    """What is offered takes effect: without `--rest` nothing at all would be applied."""
    clash = (Conflict(path="/a.txt", reason="changed"),)
    lines = told(ended(settled("pending", EDIT, conflicts=clash)))
    assert any("apply it: artoo apply 0198 --rest" in line for line in lines)


def test_where_all_is_in_conflict_nothing_is_offered_that_can_only_refuse() -> None:
    """The person's version stays; the task's can be looked at and dropped. The same for programs."""
    clash = (Conflict(path="/a.txt", reason="changed"),)
    reason = why_it_waits(clash, "en")
    result = ended(settled("pending", conflicts=clash, reason=reason))
    lines = told(result)
    assert "in conflict with what is there now: /a.txt (changed)" in lines
    assert "1 in conflict with later changes" in lines
    assert not any("artoo apply" in line for line in lines)
    assert any("artoo diff 0198; then discard it: artoo discard 0198" in line for line in lines)
    assert list(json.loads(as_json(result))["pending"]["commands"]) == ["diff", "discard"]


def test_colours_of_a_program_are_not_shown_as_text() -> None:
    """An answer quotes what a test runner printed; every other escape sequence is written out."""
    lines = told(ended(output="\x1b[32m3 passed\x1b[0m\x1b[2J"))
    assert lines[0] == "3 passed\\x1b[2J"


def test_an_answer_cannot_command_the_terminal() -> None:
    """On a terminal escape sequences of the answer are written out; into a file they go as they are."""
    result = ended(output="a\x1b]0;x\x07")
    on_terminal = ResultText(result, TaskView(), "t", HERE, Paint(colours=True)).lines()
    assert on_terminal.startswith("a\\x1b]0;x\\x07\n")
    assert "\x1b[32mChecked.\x1b[0m" in on_terminal
    assert ResultText(result, TaskView(), "t", HERE, terminal=False).lines().startswith("a\x1b]0;x\x07\n")


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (ended(), 0),
        (ended(settled("applied", EDIT)), 0),
        (ended(settled("discarded", EDIT)), 0),
        (ended(settled("pending", EDIT)), 4),
        (ended(settled("partly", EDIT)), 4),
        (ended(settled("pending", EDIT), directive=Directive.ABANDON), 1),
        (ended(settled("pending", EDIT), directive=Directive.ABANDON, stopped_by=StoppedBy.INTERRUPTED), 130),
        (ended(directive=Directive.ABANDON, stopped_by=StoppedBy.NO_MODEL), 3),
        (ended(directive=Directive.ABANDON, stopped_by=StoppedBy.QUESTION), 5),
    ],
)
def test_exit_codes(result: FinalResult, code: int) -> None:
    """4 says that something waits for a yes; an abandoned task stays 1, whatever waits."""
    assert exit_code(result) == code
    states = {4: "pending", 5: "needs_input", 0: "success"}
    assert json.loads(as_json(result))["status"] == states.get(code, "failed")


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({}, 0),
        ({"changes": settled("pending", EDIT)}, 4),
        ({"open": ("It reads well.",), "assurance": Assurance.UNVERIFIED}, 1),
        ({"unmet": (UnmetCriterion(criterion="sorted", reason="row 3"),)}, 1),
    ],
)
def test_strict_takes_only_what_is_complete(more: dict[str, object], code: int) -> None:
    """With `--strict` an open criterion is no success: nothing has confirmed the answer."""
    assert exit_code(ended().model_copy(update=more), strict=True) == code


def test_json_says_who_decided_and_how_to_settle() -> None:
    """Assurance, verdicts with their deciders, open criteria, facts, changes, commands, last day, what went out."""
    verdict = CriterionVerdict(criterion="tests pass", verdict="pass", decided_by=DecidedBy.CHECK)
    pending = settled("pending", EDIT, expires_at=1_900_000_000.0, went_out=("x",), reason="it is the home")
    read = json.loads(as_json(ended(pending, open=("b",), facts=(FailedLast(command="c"),)), (verdict,)))
    assert (read["status"], read["assurance"], read["open"], read["facts"]) == (
        "pending",
        "checked",
        ["b"],
        ["Last failure: c"],
    )
    assert read["decided"] == [{"criterion": "tests pass", "verdict": "pass", "by": "check"}]
    assert read["pending"] == {
        "reason": "it is the home; pending your approval: 1 edited",
        "expires_at": "2030-03-17T17:46:40+00:00",
        "commands": {
            "diff": f"artoo diff {TASK}",
            "apply": f"artoo apply {TASK}",
            "discard": f"artoo discard {TASK}",
        },
    }
    changes = read["changes"]
    assert (changes["changes"][0]["change_class"], changes["applied"]) == ("edit", [])
    assert changes["expires_at"] == read["pending"]["expires_at"]
    assert read["went_out"] == ["x"]


def test_names_of_tasks_are_short_and_unique() -> None:
    """The shortest beginning, at least thirteen characters, that no other has; a wrong or common one is refused."""
    ids = ["0198aaaa-1111-7a", "0198aaaa-1111-7b", "0299"]
    assert [short_name(one, ids) for one in ids] == ["0198aaaa-1111-7a", "0198aaaa-1111-7b", "0299"]
    assert short_name("0198cccc-1111-7", []) == "0198cccc-1111"
    assert named("0198aaaa-1111-7b", ids, "no", "look") == "0198aaaa-1111-7b"
    with pytest.raises(ConfigurationError, match="2 tasks begin with '0198': 0198aaaa-1111-7a, 0198aaaa-1111-7b; "):
        named("0198", ids, "no", "look")
    with pytest.raises(ConfigurationError, match="no pending changes of a task '5'; look"):
        named("5", ids, "no pending changes of a task", "look")


def test_an_act_that_was_not_allowed_is_named_as_the_option_that_allows_it() -> None:
    """The policy line is quoted for the shell; an act that no policy covers, and a review, have none."""
    view = TaskView(text=ENGLISH)
    acts = (
        AskedAct(verb="network", target="example.com:443"),
        AskedAct(verb="unconfined", target="make"),
        AskedAct(verb="tool", target="mcp:notes:add something"),
    )
    asked = ConfirmationRequest(digest="d", title="may it?", acts=acts)
    view.hear(envelope(1, Role.GATE, asked))
    view.hear(envelope(2, Role.GATE, ConfirmationAnswer(digest="d", consent=Consent.NO, by=NOBODY)))
    lines = ResultText(ended(), view, "0198", HERE).lines().splitlines()
    assert [line for line in lines if "--allow" in line] == [
        "To allow it: --allow 'network example.com:443'",
        "To allow it: --allow 'tool mcp:notes:add'",
    ]


def test_what_waits_of_the_conversation_is_named_with_what_to_type() -> None:
    """The answer to "yes, apply it" comes from a model, which is told of no command of a terminal."""
    turn = Turn(input="do it", summary="done", task_id="0199", waits=("a.txt", "d/b.txt"))
    view = TaskView(text=ENGLISH)
    history = (turn, Turn(input="b", summary="c"))
    request = UserRequest(text="yes", project="/p", workspace="/w", history=history)
    view.hear(envelope(1, Role.USER, request))
    lines = ResultText(ended(), view, "0198", HERE).lines().splitlines()
    assert "Pending your approval: a.txt, d/b.txt · apply it: artoo apply 0199" in lines
    assert not any("artoo apply" in line for line in told(ended()))


def test_a_move_is_one_thing_that_took_effect() -> None:
    """From where to where; it is neither removed nor made, and what a directory held goes with it."""
    gone = change(ChangeClass.EDIT, "d/a.txt").model_copy(
        update={"kind": ChangeKind.DELETED, "moved_to": "/home/me/project/e/a.txt"}
    )
    directory = change(ChangeClass.EDIT, "d").model_copy(
        update={"kind": ChangeKind.DELETED, "moved_to": "/home/me/project/e"}
    )
    arrived = [change(ChangeClass.SILENT, name) for name in ("e", "e/a.txt")]
    lines = told(ended(settled("applied", directory, gone, *arrived)))
    assert "Moved: d → e" in lines
    assert not any(line.startswith(("Made", "Changed", "Removed")) for line in lines)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_json_says_below_the_answer_that_it_waits(language: str) -> None:
    """A model may have said "Deleted" of files that are still there; how to go on stands in `pending`."""
    reason = waiting("", counts_of((DELETION,)), 0, language)
    read = json.loads(as_json(ended(settled("pending", DELETION), language=language)))
    assert read["answer"] == f"The spelling is corrected.\n\n{not_yet(reason, language)}"
    assert read["pending"]["reason"] == reason
    done = json.loads(as_json(ended(settled("applied", DELETION), language=language)))
    assert done["answer"] == "The spelling is corrected."
