"""Split a task's log into messages of roles and recorded outside answers."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import ToolCall, ToolCalled, ToolStarted
from artoo.contracts.memory import MegramState, MemoryWritten
from artoo.contracts.plan import DispatchManifest, Plan
from artoo.contracts.recording import Observed, Source, TaskOpened
from artoo.contracts.request import UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.solution import FinalResult
from artoo.loops.fast.conversation import CONTRACT
from artoo.ports.spool import Gap
from artoo.runtime.replay.standing import standing

T = TypeVar("T")

Speaker = tuple[Role, str | None]
"""A role, and the id of its subtask, or None for a role of the whole task."""

Numbered = deque[tuple[int, T]]
"""Answers in the log, each with the index of its message in the stream."""

_OPPOSING = frozenset({MegramState.FEEDBACK, MegramState.DISSONANCE})


@dataclass(slots=True)
class Call:
    """The records of one tool call. They say how often it was started, and contain its result if it ended."""

    started: list[ToolStarted] = field(default_factory=list[ToolStarted])
    ended: ToolCall | None = None


@dataclass(slots=True)
class Recording:
    """The messages of one task that are still valid, and the answers in its log. Each answer is returned only once.

    `all_messages` are all messages of the log, including those that are no longer valid.
    """

    all_messages: Sequence[Envelope]
    stream: Sequence[Envelope]
    opened: TaskOpened
    request: UserRequest
    models: dict[tuple[Speaker, str], Numbered[ModelCalled]]
    sights: dict[tuple[Speaker, Source], Numbered[Observed]]
    calls: dict[str, Call]
    subtask_ids: deque[str]
    megram_ids: deque[str]
    opposing_ids: deque[str]

    @property
    def task_id(self) -> str:
        """Return the task's id."""
        return self.stream[0].task_id

    @property
    def result(self) -> FinalResult | None:
        """Return the result of the task. Return None if the task did not end."""
        last = self.stream[-1].payload
        return last if isinstance(last, FinalResult) else None

    def model(self, speaker: Speaker, contract: str) -> ModelCalled | None:
        """Remove and return the answer to this speaker's next question of this contract."""
        return _next(self.models.get((speaker, contract)))

    def sight(self, speaker: Speaker, source: Source) -> Observed | None:
        """Remove and return this speaker's next observation of this source."""
        return _next(self.sights.get((speaker, source)))

    def looks_first(self, speaker: Speaker, source: Source, contract: str) -> bool | None:
        """Return whether this role observes the source before it asks its next question of this contract. Return
        None if the log contains neither.
        """
        sights, models = self.sights.get((speaker, source)), self.models.get((speaker, contract))
        if not sights:
            return False if models else None
        return not models or sights[0][0] < models[0][0]


def read_recording(log: Iterable[Envelope | Gap], dropped: Sequence[str] = ()) -> Recording:
    """Split a log into the messages and the answers. `dropped`: ids of messages that are no longer valid, in
    addition to those that the log itself names.

    Raises ConfigurationError if messages are missing in the log, or if it does not contain the observations of its
    roles.
    """
    messages = _whole(log)
    without = set(dropped)
    stream = [envelope for envelope in standing(messages) if envelope.id not in without]
    return Recording(messages, stream, *_beginning(stream), *_answers(stream), *_identifiers(stream))


def _next(answers: Numbered[T] | None) -> T | None:
    return answers.popleft()[1] if answers else None


def _whole(log: Iterable[Envelope | Gap]) -> list[Envelope]:
    messages: list[Envelope] = []
    for item in log:
        if isinstance(item, Gap):
            after = f"after message {messages[-1].id}" if messages else "at its beginning"
            raise ConfigurationError(
                f"the log cannot be replayed: {item.count} messages are missing {after} ({item.reason})"
            )
        messages.append(item)
    if not messages:
        raise ConfigurationError("the log cannot be replayed: it is empty")
    return messages


def _beginning(stream: Sequence[Envelope]) -> tuple[TaskOpened, UserRequest]:
    opened = next((e.payload for e in stream if isinstance(e.payload, TaskOpened)), None)
    request = next((e.payload for e in stream if isinstance(e.payload, UserRequest)), None)
    if opened is None:
        raise ConfigurationError(
            "the log cannot be replayed: it was written by artoo 0.1, which did not yet record what its roles saw"
        )
    if any(_is_step(envelope) for envelope in stream):
        raise ConfigurationError(
            "the log cannot be replayed: an earlier version wrote it, whose executor held no conversation. "
            "Look at it with `artoo log show`"
        )
    if request is None:
        raise ConfigurationError("the log ends before the request: nothing was done; run it again")
    return opened, request


def _is_step(envelope: Envelope) -> bool:
    """Return whether an executor asked for a single step. This was so in old versions, whose executor had no
    conversation."""
    called = envelope.payload
    if not isinstance(called, ModelCalled) or envelope.sender is not Role.EXECUTOR:
        return False
    return called.contract == CONTRACT and bool(called.user)


def _answers(
    stream: Sequence[Envelope],
) -> tuple[
    dict[tuple[Speaker, str], Numbered[ModelCalled]],
    dict[tuple[Speaker, Source], Numbered[Observed]],
    dict[str, Call],
]:
    models: defaultdict[tuple[Speaker, str], Numbered[ModelCalled]] = defaultdict(deque)
    sights: defaultdict[tuple[Speaker, Source], Numbered[Observed]] = defaultdict(deque)
    calls: defaultdict[str, Call] = defaultdict(Call)
    for number, envelope in enumerate(stream):
        speaker = (envelope.sender, envelope.subtask_id)
        match envelope.payload:
            case ModelCalled() as called:
                models[speaker, called.contract].append((number, called))
            case Observed() as observed:
                sights[speaker, observed.source].append((number, observed))
            case ToolStarted() as started:
                calls[started.act].started.append(started)
            case ToolCalled() as ended:
                calls[ended.act].ended = ended.call
            case _:
                continue
    return dict(models), dict(sights), dict(calls)


def _identifiers(stream: Sequence[Envelope]) -> tuple[deque[str], deque[str], deque[str]]:
    """Return the subtask ids in the order in which the dispatcher made them, and the ids of the solver's ordinary
    and opposing megrams."""
    plans = {e.payload.round: e.payload for e in stream if isinstance(e.payload, Plan)}
    subtasks: deque[str] = deque()
    for envelope in stream:
        if isinstance(envelope.payload, DispatchManifest) and envelope.payload.round in plans:
            subtasks.extend(_as_planned(plans[envelope.payload.round], envelope.payload))
    written = [e.payload for e in stream if isinstance(e.payload, MemoryWritten) and e.sender is Role.SOLVER]
    ordinary = deque(each.megram_id for each in written if each.state not in _OPPOSING)
    opposing = deque(each.megram_id for each in written if each.state in _OPPOSING)
    return subtasks, ordinary, opposing


def _as_planned(plan: Plan, manifest: DispatchManifest) -> list[str]:
    """Return the ids in the order of the plan. The manifest lists the subtasks by their sequence instead."""
    by_sequence = sorted(range(len(plan.subtasks)), key=lambda index: plan.subtasks[index].sequence)
    ids = dict(zip(by_sequence, (entry.subtask_id for entry in manifest.subtasks), strict=False))
    return [ids[index] for index in sorted(ids)]
