"""A role's access to a model, which assembles the prompt, asks, publishes the call, and streams its text.

A question is asked once (`ask`). A conversation is opened (`opening`) and then continued turn by turn (`converse`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from artoo.contracts.conversation import TextDelta, Took
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import (
    BudgetExhausted,
    ContextOverflow,
    ModelAnswerInvalid,
    ModelError,
    ModelRefused,
    ModelUnreachable,
)
from artoo.contracts.events import ModelCalled, ModelFailure, Spent, spent_by
from artoo.contracts.request import AttachedImage
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.model import Conversation, Known, Model, Question, Spoken, Tier
from artoo.prompts.library import Form, procedural
from artoo.prompts.segments import Segment, assemble, assemble_shared

T = TypeVar("T", bound=BaseModel)

# Streamed text is published at most this often, because a message for every token would cost too much.
_DELTA_SECONDS = 0.05

_SHOWN = "Attached images, shown after these words: {names}"
_NOT_SHOWN = "Attached images, which you are not shown: {names}"


async def unchecked() -> None:
    """Check nothing. A task that is not done for an agent uses this instead of an identity check."""


@dataclass(frozen=True, slots=True)
class StandingSegments:
    """The agent that a task is done for, as segments of every prompt.

    `check` is awaited before each prompt. It raises IdentityRefused if the segments are no longer the accepted
    ones, and then the model is not asked.
    """

    segments: Mapping[Segment, str] = field(default_factory=dict[Segment, str])
    check: Callable[[], Awaitable[None]] = unchecked

    def after(self, persona: str) -> StandingSegments:
        """Return a copy with the operator's accepted T-layer rules (`persona`) before the agent's own persona."""
        own = self.segments.get(Segment.AGENT_PERSONA, "")
        together = "\n".join(filter(None, (persona, own)))
        return StandingSegments({**self.segments, Segment.AGENT_PERSONA: together}, self.check)


@dataclass(frozen=True, slots=True)
class Opening:
    """The beginning of a conversation: the two system prompts (see `ports.model.Conversation`) and the first
    message."""

    system: str
    text_system: str
    user: str


@dataclass(frozen=True, slots=True)
class Asker:
    """The access of one role to a model. Every call, including a failed one, is published as ModelCalled.

    `standing`: the agent that the task is done for. `known`: what is known about the model of this tier, for
    example whether it is small.
    """

    port: Port
    model: Model
    clock: Clock
    tier: Tier
    standing: StandingSegments = field(default_factory=StandingSegments)
    known: Known = field(default_factory=Known)

    async def ask(
        self,
        contract: str,
        schema: type[T],
        segments: Mapping[Segment, str],
        *,
        cause: Envelope | None,
        max_tokens: int,
        variant: int = 0,
        body_field: str | None = None,
        form: Form = "",
        images: Sequence[AttachedImage] = (),
    ) -> T:
        """Return the model's answer as a valid `schema`. `form` selects the variant of the texts that describe the
        role. A model that accepts images is shown the `images`; for other models the prompt only names them.

        Raises ModelError, BudgetExhausted or IdentityRefused.
        """
        await self.standing.check()
        told = with_images(segments, images, shown=self.known.images)
        system, user = self._assembled(contract, told, form)
        question = Question(
            contract=contract,
            schema=schema,
            system=system,
            user=user,
            tier=self.tier,
            body_field=body_field,
            max_tokens=max_tokens,
            variant=variant,
            images=tuple(images) if self.known.images else (),
        )
        record: dict[str, Any] = {
            "role": self.port.role,
            "contract": contract,
            "tier": self.tier.value,
            "system": system,
            "user": user,
            "variant": variant,
            "images": tuple(image.sha256 for image in question.images),
        }
        with self._failures(record, cause):
            answer = await self.model.ask(question)
        self.port.publish(ModelCalled(**record, **spent_by(answer), answer=answer.text), cause=cause)
        return answer.value

    def opening(
        self,
        contract: str,
        segments: Mapping[Segment, str],
        text_segments: Mapping[Segment, str],
        *,
        simple: bool,
        images: Sequence[AttachedImage] = (),
    ) -> Opening:
        """Assemble the beginning of a conversation. `text_segments` are added to the system prompt of the text
        dialect, in which a model that has no native tool calls writes them as text.

        The first message is the same in both dialects. Only the system prompt of the text dialect describes how a
        call is written.
        """
        told = with_images(segments, images, shown=self.known.images)
        system, user = self._assembled(contract, told, "")
        form: Form = "simple" if simple else "text"
        if self.known.small:
            described, _ = self._assembled(contract, {**told, **text_segments}, form)
            return Opening(system, described, user)
        # `system` already contains its first line
        own = procedural(self.port.role, contract, form)[Segment.CONTRACT].partition("\n")[2]
        dialect = {Segment.CONTRACT: own, **text_segments}
        return Opening(system, "\n\n".join((system, assemble(dialect)[0])), user)

    async def converse(self, conversation: Conversation, *, reported: int, cause: Envelope | None) -> Spoken:
        """Take the next turn of a conversation. The first `reported` messages were published with earlier turns.

        The model's words are published while they arrive. Raises ModelError, BudgetExhausted or IdentityRefused.
        """
        await self.standing.check()
        added = conversation.messages[reported:]
        shown = (message.images for message in added if not isinstance(message, Took))
        record: dict[str, Any] = {
            "role": self.port.role,
            "contract": conversation.contract,
            "tier": self.tier.value,
            "system": "" if reported else conversation.system,
            "user": "",
            "variant": conversation.variant,
            "added": added,
            "images": tuple(image.sha256 for images in shown for image in images),
        }
        deltas = _Deltas(self.port, self.clock, conversation.contract, cause)
        with self._failures(record, cause):
            spoken = await self.model.converse(conversation, deltas.hear)
        deltas.publish()
        if not (reported or spoken.native):
            record["system"] = conversation.text_system
        answer = spoken.raw or spoken.turn.text
        self.port.publish(ModelCalled(**record, **spent_by(spoken), answer=answer, turn=spoken.turn), cause=cause)
        return spoken

    def _assembled(self, contract: str, segments: Mapping[Segment, str], form: Form) -> tuple[str, str]:
        """Assemble the system and the user message. Both include the segments that every prompt of this role
        has."""
        own = procedural(self.port.role, contract, form)
        ordered = assemble if self.known.small else assemble_shared
        return ordered({**own, **together(self.standing.segments, segments)})

    @contextmanager
    def _failures(self, record: Mapping[str, Any], cause: Envelope | None) -> Generator[None]:
        """Publish a failed call with its cost. `record`: the fields of ModelCalled that are known before the
        answer."""
        started = self.clock.monotonic()
        try:
            yield
        except (ModelError, BudgetExhausted) as error:
            used = error.spent or Spent(requests=0, billed=0)
            took = replace(used, duration_ms=round((self.clock.monotonic() - started) * 1_000))
            answer = error.answer if isinstance(error, ModelAnswerInvalid) else ""
            told: dict[str, Any] = {**record, **spent_by(took), "answer": answer}
            self.port.publish(ModelCalled(**told, error=str(error), failure=_failure(error)), cause=cause)
            raise


@dataclass(slots=True)
class _Deltas:
    """Publishes the words of an answer while they arrive, in groups of several tokens."""

    port: Port
    clock: Clock
    contract: str
    cause: Envelope | None
    _held: str = ""
    _last: float = 0.0

    def hear(self, text: str) -> None:
        """Add words of the model, and publish them unless the last publication was too recent."""
        self._held += text
        if self.clock.monotonic() - self._last >= _DELTA_SECONDS:
            self.publish()

    def publish(self) -> None:
        """Publish the text that was collected since the last publication."""
        if self._held:
            own = None if self.cause is None else self.cause.subtask_id
            self.port.publish(TextDelta(contract=self.contract, text=self._held, subtask_id=own), cause=self.cause)
            self._held, self._last = "", self.clock.monotonic()


def with_images(
    segments: Mapping[Segment, str], images: Sequence[AttachedImage], *, shown: bool
) -> Mapping[Segment, str]:
    """Add a line that names the attached images, if there are any, below the request."""
    if not images:
        return segments
    place = Segment.SUBTASK if segments.get(Segment.SUBTASK) else Segment.TASK
    names = "; ".join(f"{number}. {image.name}" for number, image in enumerate(images, 1))
    line = (_SHOWN if shown else _NOT_SHOWN).format(names=names)
    return {**segments, place: f"{segments.get(place, '')}\n{line}".strip()}


def together(standing: Mapping[Segment, str], own: Mapping[Segment, str]) -> dict[Segment, str]:
    """Join the standing segments, which every prompt has, with those of this prompt. If both contain the same
    segment, its texts are joined."""
    shared = {name: "\n\n".join(filter(None, (standing[name], own[name]))) for name in standing.keys() & own.keys()}
    return {**standing, **own, **shared}


def _failure(error: ModelError | BudgetExhausted) -> ModelFailure:
    match error:
        case ModelUnreachable():
            return ModelFailure(nature="unreachable")
        case ContextOverflow(status=status):
            return ModelFailure(nature="overflow", status=status)
        case ModelRefused(status=status):
            return ModelFailure(nature="refused", status=status)
        case ModelAnswerInvalid():
            return ModelFailure(nature="invalid")
        case BudgetExhausted(budget=budget):
            return ModelFailure(nature="budget", budget=budget)
        case _:
            return ModelFailure(nature="other")
