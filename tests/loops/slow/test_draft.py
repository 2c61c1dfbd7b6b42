from __future__ import annotations

import pytest

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ModelUnreachable
from artoo.contracts.events import ModelCalled, Usage
from artoo.contracts.memory import Megram, MegramState, SOPDraft
from artoo.contracts.roles import Role
from artoo.contracts.tags import tool_pair
from artoo.loops.asking import Asker
from artoo.loops.slow.draft import model_draft
from artoo.ports.dream import Cluster
from artoo.ports.model import Answer, Conversation, OnText, Question, Spoken, T, Tier
from artoo.testing.clock import FakeClock
from artoo.testing.ids import SequentialIds


class OneAnswer:
    """A model that knows one rule."""

    def __init__(self, *, reachable: bool = True) -> None:
        self.asked: list[tuple[str, str, str, Tier]] = []
        self._reachable = reachable

    async def ask(self, question: Question[T]) -> Answer[T]:
        """Notes the question."""
        if not self._reachable:
            raise ModelUnreachable("nobody there")
        self.asked.append((question.contract, question.system, question.user, question.tier))
        value = question.schema.model_validate({"rule": "glob first"})
        return Answer(value=value, text="", model="m", usage=Usage(), duration_ms=0, wire="")

    async def converse(self, conversation: Conversation, on_text: OnText | None = None) -> Spoken:
        """Never asked: the Dreamer holds no conversation."""
        raise AssertionError("the Dreamer holds no conversation")


def cluster() -> Cluster:
    """One experience of a tool."""
    pair = tool_pair("glob")
    megram = Megram(
        id="m1",
        created_at=FakeClock().now(),
        space=pair.space,
        entity=pair.entity,
        content="found\nit",
        state=MegramState.ACCEPT,
        f=0.9,
        sigma=1,
        k=0.05,
    )
    return Cluster(pair, 5.4, 5.4, (megram,))


def asker(model: OneAnswer, heard: list[ModelCalled] | None = None) -> Asker:
    """The Dreamer's way to a model; `heard` gets what the stream hears of it."""
    clock = FakeClock()
    bus = InProcessBus(clock, SequentialIds())

    def tap(envelope: Envelope) -> None:
        if heard is not None and isinstance(envelope.payload, ModelCalled):
            heard.append(envelope.payload)

    bus.attach(tap)
    return Asker(bus.port(Role.DREAMER, ""), model, clock, Tier.BRAIN)


async def test_the_model_sees_the_evidence() -> None:
    """A draft is one brain-tier call with contract SOPDraft, the pair, its balance and its experiences."""
    model = OneAnswer()
    assert await model_draft(asker(model))(cluster()) == SOPDraft(rule="glob first")
    ((contract, system, user, tier),) = model.asked
    assert (contract, tier) == ("SOPDraft", Tier.BRAIN)
    assert "contract: SOPDraft" in system
    assert "best practice" in user and "tool:glob" in user and "- accept: found it" in user


async def test_model_errors_reach_the_dreamer() -> None:
    """What the model raises is not hidden, neither from the Dreamer nor from the stream."""
    heard: list[ModelCalled] = []
    with pytest.raises(ModelUnreachable):
        await model_draft(asker(OneAnswer(reachable=False), heard))(cluster())
    assert [(call.role, call.error) for call in heard] == [(Role.DREAMER, "nobody there")]
