"""The text and JSON of `artoo log list` and `artoo log show`, with line width and memory limits."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby

from artoo.cli.conversation.conversation_hints import typed
from artoo.cli.display.sanitize import one_line, printable
from artoo.cli.display.symbols import FAILED, MATCHED, OPEN, WAITING, cost_line, loss_line
from artoo.cli.results.task_names import ID_SHOWN
from artoo.cli.views.team_view import table_lines
from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import MessagesDropped, ModelCalled, RouteViolation
from artoo.contracts.execution import CorrectionSignal, CriterionJudged, ToolCalled
from artoo.contracts.memory import MemoryRead, MemoryWritten
from artoo.contracts.plan import PlanRefused
from artoo.contracts.recording import TaskResumed
from artoo.contracts.solution import Decided, FinalResult, RoleFailure
from artoo.contracts.text import shortened
from artoo.ports.spool import Gap
from artoo.runtime.changes.settlement_history import Afterwards
from artoo.tasklog.event_text import event_text
from artoo.tasklog.reader import TaskSummary
from artoo.tasklog.state import Round, Subtask, TaskState
from artoo.words.catalogue import Catalogue, in_language
from artoo.words.language import language_of
from artoo.words.outcome import ending_of
from artoo.words.result import result_words
from artoo.words.shown import local_time, plural

LINE = 160
NAMED = 3
"""Maximum number of unreadable lines whose position and error are shown. The output of `--json` contains all of
them."""

_TONES = {"good": MATCHED, "bad": FAILED}
_SHOWN = (
    *(ModelCalled, ToolCalled, CriterionJudged, CorrectionSignal, PlanRefused, RoleFailure, RouteViolation),
    *(MessagesDropped, MemoryRead, MemoryWritten, TaskResumed),
)
"""The kinds of events that are shown. Each event has a line of its own."""

KEPT_CHARACTERS = 32_000_000
"""Maximum total weight of the events that a story keeps. Half of it is for the first events, and half for the last
ones."""
_EVENT_CHARACTERS = 2_000
"""The weight of an event, without its long texts."""

JsonObject = dict[str, object]


@dataclass(frozen=True, slots=True)
class Entry:
    """One event, with its position in the task. For an event outside of subtasks, `subtask_id` is empty before the
    first subtask of the round, and None afterwards."""

    round: int
    subtask_id: str | None
    event: Contract


@dataclass(slots=True)
class Story:
    """The story of a task, read from its log. It has the state of the task, and the first and the last events in
    order.

    `left_out` is the number of events that were left out between `first` and `last`. `unreadable` names the
    unreadable lines.
    """

    state: TaskState = field(default_factory=TaskState)
    first: list[Entry] = field(default_factory=list[Entry])
    left_out: int = 0
    last: deque[Entry] = field(default_factory=deque[Entry])
    running: bool = False
    unreadable: list[str] = field(default_factory=list[str])

    @property
    def rounds(self) -> Iterator[tuple[Round, list[Entry]]]:
        """Yield every round together with its events."""
        known = {each.number: each for each in self.state.rounds}
        for number, entries in groupby((*self.first, *self.last), lambda entry: entry.round):
            yield known.pop(number, None) or Round(number), list(entries)
        yield from ((each, []) for each in known.values() if each.subtasks or each.decided is not None)


def told(items: Iterable[Envelope | Gap], *, whole: bool = True) -> Story:
    """Return the story that the messages of a log tell. `whole`: true to keep prompts, answers and outputs."""
    story, weight = Story(), 0
    for item in items:
        if isinstance(item, Gap):
            story.state.missing += item.count
            continue
        story.state.apply(item)
        if not isinstance(item.payload, _SHOWN):
            continue
        entry = _entry(story.state, item, whole=whole)
        weight += _weight(entry)
        # Half of the weight is for the first events. The other half is for a window of the last events.
        if not story.last and weight <= KEPT_CHARACTERS // 2:
            story.first.append(entry)
            continue
        weight = weight if story.last else _weight(entry)
        story.last.append(entry)
        while weight > KEPT_CHARACTERS // 2 and len(story.last) > 1:
            weight -= _weight(story.last.popleft())
            story.left_out += 1
    return story


def _entry(state: TaskState, said: Envelope, *, whole: bool) -> Entry:
    event = said.payload
    if not whole and isinstance(event, ModelCalled):
        event = event.model_copy(update={"system": "", "user": "", "answer": ""})
    elif not whole and isinstance(event, ToolCalled):
        event = event.model_copy(update={"call": event.call.model_copy(update={"output": "", "error_output": ""})})
    begun = state.round is not None and state.round.number == state.round_number and bool(state.round.subtasks)
    subtask = state.subtask(said.subtask_id)
    place = None if begun else ""
    return Entry(state.round_number, place if subtask is None else subtask.subtask_id, event)


def _weight(entry: Entry) -> int:
    return _EVENT_CHARACTERS + sum(len(text) for _, text in _details(entry.event))


def _details(event: Contract) -> list[tuple[str, str]]:
    """Return the long texts of an event, each with its name."""
    if isinstance(event, ModelCalled):
        return [("system", event.system), ("user", event.asked), ("answer", event.answer)]
    if isinstance(event, ToolCalled):
        call = event.call
        found = [("output", call.output), ("errors", call.error_output), ("reason", call.reason or "")]
        return [(name, text) for name, text in found if text]
    return [("to do", event.what_to_do)] if isinstance(event, CorrectionSignal) else []


def task_lines(tasks: Sequence[TaskSummary], machines: Mapping[str, str], changes: Mapping[str, str]) -> list[str]:
    """Return one line for each task.

    `machines` maps the tasks of other machines to these machines. `changes` maps tasks to the state of their
    changes.
    """
    columns = (("changes", changes, ""), ("machine", machines, "here"))
    more = [each for each in columns if each[1]]
    rows = [
        (
            task.task_id[:ID_SHOWN],
            local_time(task.started),
            ending_of(task.result, running=task.running),
            *(where.get(task.task_id, other) for _, where, other in more),
            task.request,
        )
        for task in tasks
    ]
    heads = ("id", "started", "ending", *(head for head, *_ in more), "request")
    return table_lines(heads, rows, "No task has been logged yet.")


def tasks_object(
    tasks: Sequence[TaskSummary], machines: Mapping[str, str], changes: Mapping[str, str]
) -> list[JsonObject]:
    """Return the tasks as JSON. `changes`, `machine` and `directory` are null if they are not known."""
    return [
        {
            "task_id": task.task_id,
            "started": task.started.isoformat(),
            "request": task.request,
            "ending": ending_of(task.result, running=task.running),
            "changes": changes.get(task.task_id),
            "bytes": task.bytes,
            "machine": machines.get(task.task_id),
            "directory": None if task.task_id in machines else task.directory,
        }
        for task in tasks
    ]


def story_object(story: Story, afterwards: Afterwards) -> JsonObject:
    """Return a story as JSON, with all fields of every event."""
    state = story.state
    return {
        "task_id": state.task_id,
        "started": state.started,
        "request": state.request,
        "rounds": [_round_object(*each) for each in story.rounds],
        "result": state.result,
        "changes": {"state": afterwards.state, **asdict(afterwards)},
        "missing": state.missing,
        "left_out": story.left_out,
        "unreadable": story.unreadable,
    }


def _round_object(part: Round, entries: Sequence[Entry]) -> JsonObject:
    def events(*places: str | None) -> list[JsonObject]:
        found = (entry.event for entry in entries if entry.subtask_id in places)
        return [{"kind": event.kind(), **event.model_dump(mode="json")} for event in found]

    subtasks = [
        {
            "subtask_id": subtask.subtask_id,
            "intent": subtask.intent,
            "events": events(subtask.subtask_id),
            "outcome": subtask.outcome,
        }
        for subtask in part.subtasks.values()
    ]
    return {"number": part.number, "events": events("", None), "subtasks": subtasks, "decided": part.decided}


def story_lines(story: Story, since: Iterable[str], *, full: bool = False) -> Iterator[str]:
    """Return lines with the rounds, the figures of several rounds, the result, and `since` (the lines on the task's
    changes).

    `full`: true to add prompts, answers, outputs, and each note of memory.
    """
    state, rounds = story.state, list(story.rounds)
    text = in_language(language_of(state.request))
    yield f"task {state.task_id}"
    yield one_line(state.request) or "(no request)"
    for part, entries in rounds:
        yield from _round_lines(part, entries, text, full=full)
    decided = [part.decided for part, _ in rounds if part.decided is not None]
    yield from _trajectory(decided) if len(decided) > 1 else ()
    yield from _problems(story)
    yield from _result_lines(state.result) if state.result is not None else ()
    yield from map(one_line, since)
    if state.result is not None:
        yield cost_line(state.result.cost, text, rounds=len(rounds))


def _round_lines(part: Round, entries: Sequence[Entry], text: Catalogue, *, full: bool) -> Iterator[str]:
    def events(place: str | None, indent: str) -> Iterator[str]:
        here = [entry.event for entry in entries if entry.subtask_id == place]
        return (f"{indent}{line}" for line in _event_lines(here, full=full))

    yield f"round {part.number}"
    yield from events("", "  ")
    for subtask in part.subtasks.values():
        yield f"  {_sign(subtask)} {_short(subtask.intent)}"
        yield from events(subtask.subtask_id, "    ")
        if subtask.failure:
            yield f"    {_short(subtask.failure)}"
    yield from events(None, "  ")
    if part.decided is not None:
        yield f"  {loss_line(part.decided, text)}"


def _sign(subtask: Subtask) -> str:
    if subtask.outcome is None:
        return WAITING
    return MATCHED if subtask.outcome.status == "matched" else FAILED


def _event_lines(events: Sequence[Contract], *, full: bool) -> Iterator[str]:
    """Yield a line for each event. Unless `full` is true, notes of memory that follow one another share a line."""
    for are_notes, group in groupby(events, lambda event: isinstance(event, MemoryWritten) and not full):
        found = list(group)
        if are_notes and len(found) > 1:
            yield _notes_line([each for each in found if isinstance(each, MemoryWritten)])
            continue
        for event in found:
            yield _line(event)
            for name, text in _details(event) if full else ():
                yield from (f"  {line}" for line in (f"{name}:", *printable(text).splitlines()))


def _line(event: Contract) -> str:
    """Return the text that the web UI shows too. The kind of the event precedes it if the text alone would be
    unclear."""
    kind = event.kind()
    text, tone = event_text(kind, event.model_dump(mode="json"))
    if isinstance(event, ModelCalled):
        return _short(f"{event.role.value} {text}")
    if isinstance(event, CriterionJudged):
        return f"{_TONES.get(tone, OPEN)} {_short(text.partition(': ')[2])}"
    if not isinstance(event, ToolCalled):
        text = f"{''.join(f' {part}' if part.isupper() else part for part in kind).strip().lower()}: {text}"
    return _short(text)


def _notes_line(notes: Sequence[MemoryWritten]) -> str:
    """Summarise notes of memory, for example as `memory written: 17 notes on 5 tools, 1 kind of request`."""
    about = Counter(space.partition(":")[0] for space in {note.space for note in notes})
    tools, kinds = about.pop("tool", 0), about.pop("intent", 0)
    named = [plural(tools, "tool")] if tools else []
    named += [f"{plural(kinds, 'kind')} of request"] if kinds else []
    named += [f"{number:,} {space}" for space, number in about.items()]
    return f"memory written: {len(notes):,} notes on {', '.join(named)}"


def _trajectory(decided: Sequence[Decided]) -> list[str]:
    """Return a table with D, P, Ω, L and ∇L, which has a column for each round."""
    figures = (("D", "D"), ("P", "P"), ("Ω", "Omega"), ("L", "L"))
    rows = [(name, *(f"{getattr(each.loss, key):.2f}" for each in decided)) for name, key in figures]
    rows.append(("∇L", *(f"{each.grad_l:+.2f}" for each in decided)))
    return table_lines(("", *(f"round {each.round}" for each in decided)), rows, "")


def _problems(story: Story) -> Iterator[str]:
    if story.left_out:
        yield f"{story.left_out:,} events in the middle are not shown: artoo log export has all."
    if story.state.missing:
        yield f"{story.state.missing} messages are missing in this log."
    if story.unreadable:
        named = "; ".join(one_line(said) for said in story.unreadable[:NAMED])
        yield f"Lines that cannot be read: {len(story.unreadable)} ({named})"
    if story.state.result is None:
        stands = "it is running" if story.running else "it was stopped before its end"
        yield f"The task has not ended: {stands}."


def _result_lines(result: FinalResult) -> Iterator[str]:
    words = result_words(result.language)
    yield result.directive.value + (f" ({result.stopped_by.value})" if result.stopped_by is not None else "")
    yield from printable(words.plain(result, typed())).splitlines()
    yield from (one_line(words.fact(fact)) for fact in result.facts)


def _short(text: str) -> str:
    return shortened(one_line(text), LINE)
