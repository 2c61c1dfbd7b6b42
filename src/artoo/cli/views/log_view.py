"""How a task's log looks on a terminal, and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from artoo.cli.conversation.conversation_hints import typed
from artoo.cli.display.sanitize import one_line, printable
from artoo.cli.display.symbols import Marks, cost_line, loss_line, marks_for
from artoo.cli.results.later_settlement import SettledSince
from artoo.cli.results.task_names import ID_SHOWN
from artoo.cli.views.log_summary import Events, RoundStory, SubTaskStory, TaskStory, details
from artoo.cli.views.team_view import show_table, when
from artoo.contracts.base import Contract
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import CriterionJudged, ToolCalled
from artoo.contracts.memory import MemoryWritten
from artoo.contracts.solution import Decided, FinalResult
from artoo.runtime.changes.settlement_history import Afterwards
from artoo.tasklog.event_text import event_text
from artoo.tasklog.reader import TaskSummary
from artoo.words.catalogue import Catalogue, in_language
from artoo.words.language import language_of
from artoo.words.outcome import ending_of
from artoo.words.result import result_words
from artoo.words.shown import plural

LINE = 160
NAMED = 3
"""Lines that cannot be read, of which it is said where each is and why; `--json` has all."""

_TONES = {"good": "green", "bad": "red", "warn": "yellow"}

JsonObject = dict[str, object]


def show_tasks(
    tasks: Sequence[TaskSummary],
    machines: Mapping[str, str] | None = None,
    changes: Mapping[str, str] | None = None,
) -> None:
    """One line a task. `machines`: where those ran that ran elsewhere, by their ids; `changes`: what became of what
    they changed.
    """
    columns = (("changes", changes or {}, ""), ("machine", machines or {}, "here"))
    more = [each for each in columns if each[1]]
    rows = [
        (
            task.task_id[:ID_SHOWN],
            when(task.started),
            ending_of(task.result, running=task.running),
            *(where.get(task.task_id, other) for _, where, other in more),
            task.request,
        )
        for task in tasks
    ]
    heads = ("id", "started", "ending", *(head for head, *_ in more), "request")
    show_table(heads, rows, "No task has been logged yet.")


def tasks_object(
    tasks: Sequence[TaskSummary], machines: Mapping[str, str], changes: Mapping[str, str]
) -> list[JsonObject]:
    """The same as JSON; `changes`, `machine` and `directory` are null for what is not there."""
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


def story_object(story: TaskStory, afterwards: Afterwards) -> object:
    """A story as JSON: every event whole."""
    rounds = [
        {
            "number": part.number,
            "events": [_event_object(event) for event in (*part.events, *part.after)],
            "left_out": part.events.left_out + part.after.left_out,
            "subtasks": [
                {
                    "subtask_id": subtask.subtask.subtask_id,
                    "intent": subtask.subtask.intent,
                    "events": [_event_object(event) for event in subtask.events],
                    "left_out": subtask.events.left_out,
                    "outcome": subtask.subtask.outcome,
                }
                for subtask in part.subtasks
            ],
            "decided": story.decided(part),
        }
        for part in story.rounds
    ]
    return {
        "task_id": story.state.task_id,
        "started": story.state.started,
        "request": story.state.request,
        "rounds": rounds,
        "result": story.state.result,
        "changes": {"state": afterwards.state, **asdict(afterwards)},
        "missing": story.state.missing,
        "unreadable": story.unreadable,
    }


def show_story(story: TaskStory, since: SettledSince, *, full: bool = False) -> None:
    """The tree of rounds, the trajectory of several, the result, and what became of the changes since. `full` adds
    prompts, answers, outputs and each note of memory.
    """
    console, state = Console(highlight=False), story.state
    marks = marks_for(console.encoding)
    sentences = in_language(language_of(state.request))
    view = _View(marks, sentences, full=full)
    tree = Tree(Text(one_line(state.request) or "(no request)", style="bold"), guide_style="dim")
    for part in story.rounds:
        view.add_round(tree, part, story.decided(part))
    console.print(Text(f"task {state.task_id}", style="dim"))
    console.print(tree)
    decided = [each for part in story.rounds if (each := story.decided(part)) is not None]
    if len(decided) > 1:
        console.print(trajectory(decided, marks))
    if state.missing:
        console.print(Text(f"{state.missing} messages are missing in this log.", style="yellow"))
    if story.unreadable:
        named = "; ".join(one_line(said) for said in story.unreadable[:NAMED])
        console.print(Text(f"Lines that cannot be read: {len(story.unreadable)} ({named})", style="yellow"))
    if state.result is None:
        stands = "it is running" if story.running else "it was stopped before its end"
        console.print(Text(f"The task has not ended: {stands}.", style="yellow"))
    else:
        _show_result(console, state.result)
    for line in since.lines():
        console.print(Text(one_line(line), style="bold"))
    if state.result is not None:
        cost = cost_line(state.result.cost, marks, sentences, rounds=len(story.rounds))
        console.print(Text(cost, style="dim"))


def trajectory(decided: Sequence[Decided], marks: Marks) -> Table:
    """D, P, Ω, L and ∇L, one column a round."""
    rows: list[tuple[str, list[str]]] = [
        ("D", [f"{each.loss.D:.2f}" for each in decided]),
        ("P", [f"{each.loss.P:.2f}" for each in decided]),
        (marks.omega, [f"{each.loss.Omega:.2f}" for each in decided]),
        ("L", [f"{each.loss.L:.2f}" for each in decided]),
        (marks.gradient, [f"{each.grad_l:+.2f}" for each in decided]),
    ]
    table = Table("", box=None, pad_edge=False, header_style="dim")
    for each in decided:
        table.add_column(f"round {each.round}", justify="right")
    for name, values in rows:
        table.add_row(name, *values)
    return table


class _View:
    """Builds the tree of one story."""

    def __init__(self, marks: Marks, sentences: Catalogue, *, full: bool) -> None:
        self._marks = marks
        self._sentences = sentences
        self._full = full

    def add_round(self, tree: Tree, part: RoundStory, decided: Decided | None) -> None:
        branch = tree.add(Text(f"round {part.number}", style="bold"))
        self._add_events(branch, part.events)
        for subtask in part.subtasks:
            self._add_subtask(branch, subtask)
        self._add_events(branch, part.after)
        if decided is not None:
            branch.add(Text(loss_line(decided, self._marks, self._sentences), style="cyan"))

    def _add_subtask(self, branch: Tree, subtask: SubTaskStory) -> None:
        outcome = subtask.subtask.outcome
        mark, style = (
            (self._marks.waiting, "yellow") if outcome is None else self._verdict(outcome.status == "matched")
        )
        node = branch.add(Text.assemble((f"{mark} ", style), _short(subtask.subtask.intent)))
        self._add_events(node, subtask.events)
        if outcome is not None and outcome.failure_reason:
            node.add(Text(_short(outcome.failure_reason), style="red"))

    def _add_events(self, branch: Tree, events: Events) -> None:
        self._add_all(branch, events.first)
        if events.left_out:
            branch.add(Text(f"[{events.left_out:,} events are not shown; artoo log export]", style="yellow"))
        self._add_all(branch, events.last)

    def _add_all(self, branch: Tree, events: Iterable[Contract]) -> None:
        """A line each; notes of memory that follow each other are one, unless all is wanted."""
        for are_notes, group in groupby(events, lambda event: isinstance(event, MemoryWritten) and not self._full):
            found = list(group)
            if are_notes and len(found) > 1:
                notes = [event for event in found if isinstance(event, MemoryWritten)]
                branch.add(Text(_notes_line(notes), style="dim"))
                continue
            for event in found:
                self._add_event(branch, event)

    def _add_event(self, branch: Tree, event: Contract) -> None:
        node = branch.add(self._line(event))
        if self._full:
            for name, text in details(event):
                node.add(Text(f"{name}:\n{printable(text)}", style="dim"))

    def _line(self, event: Contract) -> Text:
        """Return the line that the web UI has, too, behind the kind of event where that is unclear."""
        kind = event.kind()
        text, tone = event_text(kind, event.model_dump(mode="json"))
        text = text.replace(" · ", self._marks.dot)
        if isinstance(event, ModelCalled):
            return Text.assemble((f"{event.role.value} ", "magenta"), (_short(text), _TONES.get(tone, "dim")))
        if isinstance(event, CriterionJudged):
            sign = {"good": self._marks.matched, "bad": self._marks.failed}.get(tone, self._marks.open)
            return Text(f"{sign} {_short(text.partition(': ')[2])}", style=_TONES[tone])
        if not isinstance(event, ToolCalled):
            text = f"{''.join(f' {part}' if part.isupper() else part for part in kind).strip().lower()}: {text}"
        return Text(_short(text), style=_TONES.get(tone, "dim"))

    def _verdict(self, good: bool) -> tuple[str, str]:
        return (self._marks.matched, "green") if good else (self._marks.failed, "red")


def _event_object(event: Contract) -> JsonObject:
    return {"kind": event.kind(), **event.model_dump(mode="json")}


def _notes_line(notes: Sequence[MemoryWritten]) -> str:
    """`memory written: 17 notes on 5 tools, 1 kind of request`."""
    about = Counter(space.partition(":")[0] for space in {note.space for note in notes})
    tools, kinds = about.pop("tool", 0), about.pop("intent", 0)
    named = [plural(tools, "tool")] if tools else []
    named += [f"{plural(kinds, 'kind')} of request"] if kinds else []
    named += [f"{number:,} {space}" for space, number in about.items()]
    return f"memory written: {len(notes):,} notes on {', '.join(named)}"


def _show_result(console: Console, result: FinalResult) -> None:
    stopped = f" ({result.stopped_by.value})" if result.stopped_by is not None else ""
    console.print(Text(f"{result.directive.value}{stopped}", style="bold"))
    words = result_words(result.language)
    console.print(Text(printable(words.plain(result, typed()))))
    for fact in result.facts:
        console.print(Text(one_line(words.fact(fact)), style="yellow"))


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= LINE else f"{line[: LINE - 1]}…"
