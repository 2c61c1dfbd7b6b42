"""What contracts of settling and assurance compute for themselves."""

from __future__ import annotations

import pytest

from artoo.contracts.changes import CROWD, ChangeKind, Conflict, outermost
from artoo.contracts.confirmation import Consent
from artoo.contracts.criteria import (
    Assurance,
    CheckAmended,
    CommandSucceeds,
    Criterion,
    FileMatches,
    Mode,
    OutputIsJson,
    by_command,
    in_a_line,
    weakest,
)
from artoo.contracts.execution import CriterionVerdict, DecidedBy, ExecutionResult, ToolCall, assurance_of
from artoo.contracts.plan import DispatchManifest, ManifestEntry
from artoo.contracts.settling import (
    ApplyMode,
    ChangeClass,
    ClassifiedChange,
    Settled,
    counts_of,
    crowds,
    in_order_of_danger,
    with_arrivals,
)


def test_the_weakest_assurance_is_that_of_the_whole() -> None:
    """checked > agreed > judged > unverified, and nothing at all is unverified."""
    assert sorted(Assurance, key=lambda one: -one.strength) == list(Assurance)
    assert weakest([Assurance.CHECKED, Assurance.JUDGED]) is Assurance.JUDGED
    assert weakest([]) is Assurance.UNVERIFIED


def test_a_result_is_as_sure_as_its_weakest_verdict() -> None:
    """Facts and checks are equally sure; an open criterion makes the whole unverified."""
    checked = CriterionVerdict(criterion="a", verdict="pass", decided_by=DecidedBy.CHECK)
    agreed = CriterionVerdict(criterion="b", verdict="pass", decided_by=DecidedBy.AGREEMENT)
    opened = CriterionVerdict(criterion="c", verdict="open", decided_by=DecidedBy.NOBODY)
    assert assurance_of([checked]) is DecidedBy.FACT.assurance is Assurance.CHECKED
    assert assurance_of([checked, agreed]) is Assurance.AGREED
    assert assurance_of([checked, agreed, opened]) is Assurance.UNVERIFIED


def test_a_persons_check_is_a_verifiable_criterion_of_theirs() -> None:
    """`--check COMMAND` asks for exit code 0, counts fully, and is nobody else's to amend."""
    criterion = by_command("make test")
    assert criterion.check == CommandSucceeds(command="make test")
    assert (criterion.mode, criterion.by) == (Mode.VERIFIABLE, "person")


def test_a_check_that_was_replaced_decides_nothing_alone() -> None:
    """It may refute. Both checks are told in a line each, with what they were given."""
    before, after = FileMatches(path="a.txt", regex="^x$"), OutputIsJson(schema={"type": "object"})
    told = CheckAmended(criterion="c", before=before, after=after, reason="r", failed="no match")
    criterion = Criterion(text="c", check=after)
    assert criterion.check_decides and not Criterion(text="c").check_decides
    assert not criterion.model_copy(update={"amended": told}).check_decides
    assert in_a_line(before) == "file_matches a.txt ^x$" and in_a_line(OutputIsJson()) == "output_is_json"
    assert in_a_line(after) == 'output_is_json {"type": "object"}'
    assert "amended" not in Criterion.model_json_schema()["properties"]


def test_what_takes_effect_unasked() -> None:
    """What is silent; ordinary edits too; nothing. Only `all` covers more, and nothing elsewhere."""
    assert {mode: mode.unasked for mode in ApplyMode} == {
        ApplyMode.NEW: {ChangeClass.SILENT},
        ApplyMode.EDITS: {ChangeClass.SILENT, ChangeClass.EDIT},
        ApplyMode.ASK: set(),
        ApplyMode.LIVE: {ChangeClass.SILENT, ChangeClass.EDIT},
        ApplyMode.ALL: {*ChangeClass} - {ChangeClass.ELSEWHERE},
    }


def test_the_calls_of_an_attempt_are_the_last_ones_of_the_record() -> None:
    """Calls are numbered over all attempts; an attempt knows where its own begin."""
    calls = tuple(ToolCall(tool=name, identity=(name,)) for name in ("glob", "shell"))
    result = ExecutionResult(subtask_id="s", attempt=2, status="completed", tool_calls=calls, attempt_from=1)
    assert result.attempt_calls == calls[1:]


def test_a_verbatim_output_names_its_call() -> None:
    """The last of its sources; where a log names none the last call; nothing that is not there."""
    calls = tuple(ToolCall(tool=name, identity=(name,)) for name in ("python", "shell"))
    result = ExecutionResult(subtask_id="s", attempt=1, status="completed", verbatim=True, tool_calls=calls)
    assert result.put_out_by == 2
    assert result.model_copy(update={"sources": (1,)}).put_out_by == 1
    assert result.model_copy(update={"sources": (3,)}).put_out_by is None
    assert result.model_copy(update={"verbatim": False}).put_out_by is None
    assert result.model_copy(update={"tool_calls": ()}).put_out_by is None


@pytest.mark.parametrize(("consent", "yes"), [(one, one in ("once", "task")) for one in Consent])
def test_only_once_and_task_are_a_yes(consent: Consent, yes: bool) -> None:
    """No, keep and discard let nothing happen."""
    assert consent.is_yes is yes


def test_changes_are_told_most_dangerous_first() -> None:
    """Deletions before edits before what is silent; counts in the same order."""
    changes = tuple(
        ClassifiedChange(path=path, change_class=kind, kind=ChangeKind.OVERWRITTEN)
        for path, kind in (("/b", ChangeClass.SILENT), ("/c", ChangeClass.EDIT), ("/a", ChangeClass.DELETION))
    )
    assert [one.path for one in in_order_of_danger(changes)] == ["/a", "/c", "/b"]
    counted = counts_of((*changes, changes[1]))
    assert [(one.change_class, one.count) for one in counted] == [
        (ChangeClass.DELETION, 1),
        (ChangeClass.EDIT, 2),
        (ChangeClass.SILENT, 1),
    ]


@pytest.mark.parametrize(
    ("state", "waits"),
    [("none", False), ("applied", False), ("pending", True), ("discarded", False), ("partly", True)],
)
def test_what_waits_is_pending_or_partly_applied(state: str, waits: bool) -> None:
    """These two end a run with exit code 4."""
    assert Settled.model_validate({"state": state}).waits is waits


def test_what_took_effect_is_named_also_where_all_did() -> None:
    """`applied` may be left empty when it is all of the changes; what waits took no effect."""
    change = ClassifiedChange(path="a", change_class=ChangeClass.SILENT, kind=ChangeKind.CREATED)
    assert Settled(state="applied", changes=(change,)).took_effect == ("a",)
    assert Settled(state="partly", changes=(change,), applied=("b",)).took_effect == ("b",)
    assert Settled(state="pending", changes=(change,)).took_effect == ()


def test_what_is_counted_is_what_a_person_would_count() -> None:
    """What is moved is nothing new; git's own are harmless; directories above new files are told by them."""
    old = ClassifiedChange(
        path="/p/old", change_class=ChangeClass.EDIT, kind=ChangeKind.DELETED, moved_to="/p/new/there"
    )
    made = tuple(
        ClassifiedChange(path=path, change_class=ChangeClass.SILENT, kind=ChangeKind.CREATED)
        for path in ("/p/new", "/p/new/there", "/p/new/fresh", "/p/.git/index")
    )
    edits, new = counts_of((old, *made))
    assert edits.parts == (("moved", 1),)
    assert (new.count, new.parts) == (4, (("silent", 1), ("harmless", 1)))


def test_a_move_is_chosen_with_both_its_ends() -> None:
    """Half of it would be a loss; what is not chosen brings nothing along."""
    moved, other = (
        ClassifiedChange(path=path, change_class=ChangeClass.EDIT, kind=ChangeKind.DELETED, moved_to=f"{path}2")
        for path in ("/p/a", "/p/b")
    )
    assert with_arrivals(["/p/a", "/p/c"], (moved, other)) == {"/p/a", "/p/a2", "/p/c"}


def test_a_crowd_is_a_new_directory_with_very_many_new_files() -> None:
    """The outermost one tells all that is in it, with the files that start by themselves."""

    def new(path: str, size: int | None = 1, of: ChangeClass = ChangeClass.SILENT) -> ClassifiedChange:
        return ClassifiedChange(path=path, change_class=of, kind=ChangeKind.CREATED, size_after=size)

    files = [new(f"/p/env/lib/{number}") for number in range(CROWD + 1)]
    loud = new("/p/env/hook", of=ChangeClass.PERSISTENCE)
    directories = [new("/p/env", None), new("/p/env/lib", None), new("/p/few", None)]
    changes = [*directories, *files, loud, new("/p/few/one"), new("/p/beside")]
    assert crowds(changes) == {"/p/env": CROWD + 2}
    assert crowds([*directories, *files[1:]]) == {}
    assert outermost("/p/env/lib/1", {"/p/env/lib", "/p/env"}) == "/p/env" and outermost("/q", {"/p"}) == ""


def test_only_conflicts_are_left_where_nothing_could_be_applied() -> None:
    """Then no command is offered that could only refuse."""
    conflict = Conflict(path="/p/a", reason="it was changed since the task began")
    assert Settled(state="pending", conflicts=(conflict,)).only_conflicts
    edits = counts_of((ClassifiedChange(path="/p/b", change_class=ChangeClass.EDIT, kind=ChangeKind.OVERWRITTEN),))
    assert not Settled(state="pending", conflicts=(conflict,), counts=edits).only_conflicts
    assert not Settled(state="discarded", conflicts=(conflict,)).only_conflicts


def test_a_manifest_knows_what_its_subtasks_are_to_do() -> None:
    """By their ids, as a clash names them."""
    entries = tuple(ManifestEntry(subtask_id=key, sequence=1, intent=f"do {key}") for key in ("s1", "s2"))
    manifest = DispatchManifest(task_id="t", round=1, subtasks=entries)
    assert manifest.intents == {"s1": "do s1", "s2": "do s2"}
