"""How a role asks a language model: assemble, ask, and put the whole call on the stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import BudgetExhausted, ModelAnswerInvalid, ModelError
from artoo.contracts.events import ModelCalled
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.model import Answer, AnswerForm, Model, Question, Tier
from artoo.prompts.library import procedural
from artoo.prompts.segments import Segment, assemble

T = TypeVar("T", bound=BaseModel)


class Asker:
    """One role's way to a model. Every call, failed ones too, is published as ModelCalled."""

    def __init__(self, port: Port, model: Model, clock: Clock, tier: Tier, persona: str = "") -> None:
        """`persona` is what the operator has accepted into the T layer: it stands in every prompt."""
        self._persona = persona
        self._port = port
        self._model = model
        self._clock = clock
        self._tier = tier
        self.small = False
        """Whether the model that answered last is known to be a small one."""

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
        forms: tuple[AnswerForm, ...] = (),
    ) -> T:
        """The model's answer as a valid `schema`. Raises ModelError or BudgetExhausted."""
        system, user = assemble(
            {**procedural(self._port.role, contract), Segment.AGENT_PERSONA: self._persona, **segments}
        )
        question = Question(
            contract=contract,
            schema=schema,
            system=system,
            user=user,
            tier=self._tier,
            body_field=body_field,
            forms=forms,
            max_tokens=max_tokens,
            variant=variant,
        )
        started = self._clock.monotonic()
        try:
            answer = await self._model.ask(question)
        except (ModelError, BudgetExhausted) as error:
            self._report_failure(question, error, cause, started)
            raise
        self.small = answer.small
        self._report(question, answer, cause)
        return answer.value

    def _report(self, question: Question[T], answer: Answer[T], cause: Envelope | None) -> None:
        self._port.publish(
            ModelCalled(
                role=self._port.role,
                contract=question.contract,
                tier=question.tier.value,
                model=answer.model,
                system=question.system,
                user=question.user,
                answer=answer.text,
                usage=answer.usage,
                duration_ms=answer.duration_ms,
                wire=answer.wire,
                requests=answer.requests,
                repaired=answer.repaired,
            ),
            cause=cause,
        )

    def _report_failure(
        self, question: Question[T], error: Exception, cause: Envelope | None, started: float
    ) -> None:
        self._port.publish(
            ModelCalled(
                role=self._port.role,
                contract=question.contract,
                tier=question.tier.value,
                model="",
                system=question.system,
                user=question.user,
                answer=error.answer if isinstance(error, ModelAnswerInvalid) else "",
                duration_ms=round((self._clock.monotonic() - started) * 1_000),
                error=str(error),
            ),
            cause=cause,
        )
