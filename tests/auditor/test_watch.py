"""The Watch and its memory: many tasks, their ends, its bounds, tasks that go on, and its own failures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from tapes import Tape, names

from artoo.auditor.invariants.invariant import on
from artoo.auditor.notes import TaskNotes
from artoo.auditor.watch import Watch, WatchLimits
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import ToolCalled
from artoo.contracts.plan import Plan
from artoo.contracts.recording import TaskResumed
from artoo.contracts.request import UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.settling import Ending
from artoo.contracts.solution import Cost, FinalResult, Halt, ReplanRequest, StoppedBy
from artoo.ports.spool import Gap

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def as_task(tape: Tape, name: str) -> list[Envelope]:
    """The same stream under another name."""
    ids = {each.id: f"{name}-{number}" for number, each in enumerate(tape.messages)}
    task = tape.messages[0].task_id
    return [_renamed(each, task, name, ids) for each in tape.messages]


def _renamed(each: Envelope, task: str, name: str, ids: dict[str, str]) -> Envelope:
    text = each.payload.model_dump_json().replace(task, name)
    cause = None if each.cause_id is None else ids[each.cause_id]
    payload = type(each.payload).model_validate_json(text)
    return each._replace(id=ids[each.id], task_id=name, payload=payload, cause_id=cause)


def observed(watch: Watch, messages: Iterable[Envelope]) -> list[str]:
    return names([finding for each in messages for finding in watch.observe(each)])


def test_tasks_that_run_at_once_are_kept_apart(tapes: dict[str, Tape]) -> None:
    """Two interleaved healthy tasks are two healthy tasks, and nothing of them is remembered as open."""
    pairs = zip(as_task(tapes["corrected"], "one"), as_task(tapes["corrected"], "two"), strict=True)
    watch = Watch()
    assert observed(watch, [message for pair in pairs for message in pair]) == []
    assert watch.open_tasks == 0


def test_a_cause_of_another_task_is_named(tapes: dict[str, Tape]) -> None:
    """A message that answers one of another task is a bypass, whatever the kinds are."""
    one, two = as_task(tapes["plain"], "one"), as_task(tapes["plain"], "two")
    place = tapes["plain"].where(Plan)
    forged = [*one[: place + 1], *two[:place], two[place]._replace(cause_id=one[place].cause_id)]
    assert "unknown_cause" in observed(Watch(), forged)


def test_thrashing_is_named_once_a_round(tapes: dict[str, Tape]) -> None:
    """Consecutive break_symmetry with D not falling is an anomaly at the round in which it shows."""
    (found,) = tapes["replanned"].findings()
    assert (found.rule, found.nature) == ("ggs_thrashing", "anomaly")


def test_late_records_are_legal_and_control_messages_are_not(tapes: dict[str, Tape]) -> None:
    """After the end a record of a call may come; a plan, or a second end, may not."""
    tape = tapes["plain"]
    at = tape.messages[-1].at
    late = [tape.envelope(kind)._replace(id=f"late-{kind.__name__}", at=at) for kind in (ModelCalled, ToolCalled)]
    watch = Watch()
    assert observed(watch, [*tape.messages, *late]) == []
    assert observed(watch, [tape.envelope(Plan)._replace(id="late", at=at)]) == ["message_after_end"]
    assert observed(watch, [tape.envelope(FinalResult)._replace(id="again", at=at)]) == ["second_result"]


def test_what_was_on_its_way_when_work_was_stopped_is_legal(tapes: dict[str, Tape]) -> None:
    """R7 does not always wait for R4b's answer to a Halt; it may come a moment after the end."""
    tape = tapes["replanned"]
    end, halt = tape.messages[-1], Halt(stopped_by=StoppedBy.TIME, reason="300 s")
    stop = end._replace(id="stop", payload=halt, cause_id=tape.envelope(UserRequest).id)
    watch = Watch()
    observed(watch, [*tape.messages[:-1], stop, end])
    late = tape.envelope(ReplanRequest)._replace(id="late", at=end.at, cause_id="stop")
    assert observed(watch, [late]) == []


def test_memory_is_bounded_and_what_is_forgotten_is_counted(tapes: dict[str, Tape]) -> None:
    """More open tasks than fit: the oldest is forgotten and counted, and then judged by what is still known."""
    watch = Watch(limits=WatchLimits(open_tasks=2))
    streams = [as_task(tapes["plain"], f"task-{number}") for number in range(4)]
    half = len(streams[0]) // 2
    found = [name for stream in streams for name in observed(watch, stream[:half])]
    assert (watch.open_tasks, watch.forgotten) == (2, 2)
    assert found + [name for stream in streams for name in observed(watch, stream[half:])] == []


def test_messages_beyond_the_limit_make_a_task_partial(tapes: dict[str, Tape]) -> None:
    """When even ids do not fit any more, nobody is accused of having invented a cause."""
    watch = Watch(limits=WatchLimits(messages=8))
    assert observed(watch, tapes["corrected"].messages) == []
    assert watch.forgotten > 0


def test_one_task_cannot_flood_the_report(tapes: dict[str, Tape]) -> None:
    """Findings of one task are bounded; what is beyond is counted."""
    watch = Watch(limits=WatchLimits(findings_a_task=3))
    plan = tapes["plain"].envelope(Plan)
    forged = [plan._replace(id=f"plan-{number}", sender=Role.EXECUTOR) for number in range(20)]
    assert len(observed(watch, forged)) <= 3
    assert watch.withheld > 0


def test_a_task_that_has_ended_cannot_flood_it_either(tapes: dict[str, Tape]) -> None:
    """What comes after the end counts with what was found before it."""
    watch = Watch(limits=WatchLimits(findings_a_task=3))
    tape = tapes["plain"]
    assert observed(watch, tape.messages) == []
    late = [tape.envelope(FinalResult)._replace(id=f"again-{number}") for number in range(20)]
    assert observed(watch, late) == ["second_result"] * 3
    assert watch.withheld == 17


def test_a_gap_is_reported_and_excuses_what_is_missing(tapes: dict[str, Tape]) -> None:
    """Messages that were lost are a finding of their own; what they would have explained is none."""
    tape, watch = tapes["plain"], Watch()
    place = tape.where(Plan)
    observed(watch, tape.messages[:place])
    gap = Gap(3, ((tape.messages[0].task_id, 3),), "the disk is full")
    assert names(list(watch.gap(gap, NOW))) == ["sequence_gap"]
    assert observed(watch, tape.messages[place + 3 :]) == []


def test_a_resumed_task_is_judged_with_what_it_said_before(tapes: dict[str, Tape]) -> None:
    """A task that goes on in another process is healthy there, and a forgery in its second half is found."""
    tape = tapes["corrected"]
    place = tape.where(ToolCalled) + 1
    before, rest = tape.messages[:place], tape.messages[place:]
    resumed = _resumed(before)
    recall = {tape.messages[0].task_id: before}
    assert observed(Watch(recall=recall.__getitem__), [resumed, *rest]) == []
    forged = Tape((*before, resumed, *rest)).edit(FinalResult, cost=Cost())
    watch = Watch(recall=recall.__getitem__)
    assert "cost_understated" in observed(watch, forged.messages[place:])


def test_an_end_that_was_taken_back_by_a_resume_is_no_end(tapes: dict[str, Tape]) -> None:
    """Ctrl-C ends a task; when it goes on, what it dropped does not count, and its real end is its only one."""
    tape = tapes["plain"]
    place = tape.where(ToolCalled) + 1
    cut = tape.envelope(FinalResult)._replace(id="cut", cause_id=tape.messages[1].id)
    before = (*tape.messages[:place], cut)
    resumed = _resumed(tape.messages[:place], dropped=("cut",))
    watch = Watch(recall={tape.messages[0].task_id: before}.__getitem__)
    observed(watch, before)
    assert observed(watch, [resumed, *tape.messages[place:]]) == []


def test_what_an_earlier_resume_took_back_does_not_stand(tapes: dict[str, Tape]) -> None:
    """A task that was interrupted and resumed twice ends once: no ending that was taken back counts."""
    tape = tapes["plain"]
    place = tape.where(ToolCalled) + 1
    begun, last = tape.messages[:place], tape.messages[place - 1]
    first, second = (
        tape.envelope(Ending)._replace(id=f"ending {life}", cause_id=last.id) for life in ("one", "two")
    )
    again = _resumed(begun, dropped=(first.id,))._replace(id="resumed before")
    before = (*begun, first, again, second)
    watch = Watch(recall={last.task_id: before}.__getitem__)
    assert observed(watch, [_resumed(begun, dropped=(second.id,)), *tape.messages[place:]]) == []


def test_a_task_that_goes_on_from_nowhere_is_named(tapes: dict[str, Tape]) -> None:
    """A resume after a message that was never there is a forgery; without a log there is nothing to compare."""
    tape = tapes["plain"]
    forged = _resumed(tape.messages[:3])._replace(payload=TaskResumed(after="nobody"))
    assert observed(Watch(recall=lambda _: tape.messages[:3]), [forged]) == ["resumed_from_nowhere"]
    assert observed(Watch(), [forged, *tape.messages[3:]]) == []


def _resumed(before: tuple[Envelope, ...], dropped: tuple[str, ...] = ()) -> Envelope:
    last = before[-1]
    payload = TaskResumed(after=last.id, dropped=dropped)
    return last._replace(id="resumed", sender=Role.USER, payload=payload, subtask_id=None, cause_id=None)


def test_a_log_that_cannot_be_read_is_the_auditors_problem(tapes: dict[str, Tape]) -> None:
    """When earlier messages cannot be read, that is said, and the rest of the task is watched all the same."""

    def broken(_: str) -> list[Envelope]:
        raise OSError("no such log")

    tape = tapes["plain"]
    found = observed(Watch(recall=broken), [_resumed(tape.messages[:3]), *tape.messages[3:]])
    assert found == ["auditor_failed"]


@on(Plan)
def breaks(task: TaskNotes, plan: Plan, envelope: Envelope) -> Iterator[str]:
    """An invariant that is broken itself."""
    raise ZeroDivisionError


@on(Plan)
def works(task: TaskNotes, plan: Plan, envelope: Envelope) -> Iterator[str]:
    """Says something about every plan."""
    yield "a plan"


def test_an_invariant_that_fails_is_reported_and_left_out(tapes: dict[str, Tape]) -> None:
    """A broken invariant is a finding about the Auditor, once; the others go on."""
    watch = Watch(invariants=(breaks, works))
    tape = tapes["replanned"]
    assert observed(watch, tape.messages) == ["auditor_failed", "works", "works", "works"]
