"""How a role asks a language model: assemble, ask, and put the whole call on the stream."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import BaseModel

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import (
    BudgetExhausted,
    ModelAnswerInvalid,
    ModelError,
    ModelRefused,
    ModelUnreachable,
    Spent,
)
from artoo.contracts.events import ModelCalled, ModelFailure, Usage
from artoo.contracts.images import AttachedImage
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.model import Answer, Known, Model, Question, Tier
from artoo.prompts.library import procedural
from artoo.prompts.segments import Segment, assemble

T = TypeVar("T", bound=BaseModel)

_SHOWN = "Attached images, shown after these words: {names}"
_NOT_SHOWN = "Attached images, which you are not shown: {names}"


async def unchecked() -> None:
    """Nobody's task, so nobody's identity to be checked."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Whom a task is done for, as segments of every prompt.

    `check` is awaited before each prompt and raises IdentityRefused when they are not the accepted ones any more:
    then nothing is asked.
    """

    segments: Mapping[Segment, str] = field(default_factory=dict[Segment, str])
    check: Callable[[], Awaitable[None]] = unchecked

    def after(self, persona: str) -> Standing:
        """With what the operator has accepted into the T layer before its own persona: it is in every prompt."""
        own = self.segments.get(Segment.AGENT_PERSONA, "")
        together = "\n".join(filter(None, (persona, own)))
        return Standing({**self.segments, Segment.AGENT_PERSONA: together}, self.check)


@dataclass(frozen=True, slots=True)
class Asker:
    """One role's way to a model. Every call, failed ones too, is published as ModelCalled.

    `standing`: whom the task is done for. `known`: what is known of the model of this tier.
    """

    port: Port
    model: Model
    clock: Clock
    tier: Tier
    standing: Standing = field(default_factory=Standing)
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
        simple: bool = False,
        images: Sequence[AttachedImage] = (),
    ) -> T:
        """The model's answer as a valid `schema`. `simple`: with the instructions for small models. `images` are
        shown to a model that takes them; of one that does not, the prompt only says that they are there.

        Raises ModelError, BudgetExhausted or IdentityRefused.
        """
        await self.standing.check()
        own = procedural(self.port.role, contract, simple=simple)
        told = with_images(segments, images, shown=self.known.images)
        system, user = assemble({**own, **together(self.standing.segments, told)})
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
        started = self.clock.monotonic()
        try:
            answer = await self.model.ask(question)
        except (ModelError, BudgetExhausted) as error:
            self._report(question, error, round((self.clock.monotonic() - started) * 1_000), cause)
            raise
        self._report(question, answer, answer.duration_ms, cause)
        return answer.value

    def _report(
        self,
        question: Question[T],
        ended: Answer[T] | ModelError | BudgetExhausted,
        duration_ms: int,
        cause: Envelope | None,
    ) -> None:
        if isinstance(ended, Answer):
            answer, error, used, usage, text = ended, None, ended, ended.usage, ended.text
        else:
            answer, error, used = None, ended, ended.spent or Spent()
            usage = Usage(
                prompt_tokens=used.prompt_tokens,
                completion_tokens=used.completion_tokens,
                cached_tokens=used.cached_tokens,
            )
            text = ended.answer if isinstance(ended, ModelAnswerInvalid) else ""
        self.port.publish(
            ModelCalled(
                role=self.port.role,
                contract=question.contract,
                tier=question.tier.value,
                model=used.model,
                system=question.system,
                user=question.user,
                answer=text,
                usage=usage,
                duration_ms=duration_ms,
                wire=used.wire,
                requests=used.requests,
                repaired=answer is not None and answer.repaired,
                error=str(error) if error is not None else None,
                small=answer is not None and answer.small,
                variant=question.variant,
                failure=_failure(error) if error is not None else None,
                billed=used.billed,
                money=used.money,
                images=tuple(image.sha256 for image in question.images),
            ),
            cause=cause,
        )


def with_images(
    segments: Mapping[Segment, str], images: Sequence[AttachedImage], *, shown: bool
) -> Mapping[Segment, str]:
    """The segments with a line that names attached images, if any, below what is to be done."""
    if not images:
        return segments
    place = Segment.SUBTASK if segments.get(Segment.SUBTASK) else Segment.TASK
    names = "; ".join(f"{number}. {image.name}" for number, image in enumerate(images, 1))
    line = (_SHOWN if shown else _NOT_SHOWN).format(names=names)
    return {**segments, place: f"{segments.get(place, '')}\n{line}".strip()}


def together(standing: Mapping[Segment, str], own: Mapping[Segment, str]) -> dict[Segment, str]:
    """What stands in every prompt, then what this one brings, also where both speak in one segment."""
    shared = {name: "\n\n".join(filter(None, (standing[name], own[name]))) for name in standing.keys() & own.keys()}
    return {**standing, **own, **shared}


def _failure(error: ModelError | BudgetExhausted) -> ModelFailure:
    match error:
        case ModelUnreachable():
            return ModelFailure(nature="unreachable")
        case ModelRefused(status=status):
            return ModelFailure(nature="refused", status=status)
        case ModelAnswerInvalid():
            return ModelFailure(nature="invalid")
        case BudgetExhausted(budget=budget):
            return ModelFailure(nature="budget", budget=budget)
        case _:
            return ModelFailure(nature="other")
