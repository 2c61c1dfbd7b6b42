"""R4b's merge: whose judgement of it counts."""

from __future__ import annotations

import pytest

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.criteria import Criterion, Mode
from artoo.contracts.events import Usage
from artoo.contracts.execution import DecidedBy, SubTaskOutcome
from artoo.contracts.plan import DispatchManifest
from artoo.contracts.roles import Role
from artoo.loops.asking import Asker
from artoo.loops.medium.merging import Merged, merge
from artoo.ports.model import Answer, Conversation, Known, OnText, Question, Spoken, T, Tier
from artoo.testing import FakeClock, SequentialIds
from records import call

BOTH_NAMED = Criterion(text="names both files", mode=Mode.PLAUSIBLE)
REPORT = {
    "sources": [1, 2],
    "answer": "a.txt and b.txt",
    "verdicts": [{"number": 1, "quote": "found b.txt", "verdict": "pass"}],
}


class OneReport:
    """A model that writes this merge and passes its own criterion, with a true quote."""

    async def ask(self, question: Question[T]) -> Answer[T]:
        """The same every time."""
        value = question.schema.model_validate(REPORT)
        return Answer(value=value, text="", model="m", usage=Usage(), duration_ms=0, wire="")

    async def converse(self, conversation: Conversation, on_text: OnText | None = None) -> Spoken:
        """No conversation is held."""
        raise NotImplementedError


async def merged(*, small: bool) -> Merged:
    """Two results become an answer."""
    clock = FakeClock()
    bus = InProcessBus(clock, SequentialIds())
    asker = Asker(bus.port(Role.META_VALIDATOR, "t"), OneReport(), clock, Tier.BRAIN, known=Known(small=small))
    outcomes = [
        SubTaskOutcome(
            subtask_id=name,
            parent_task_id="t",
            status="matched",
            intent=f"find {name}",
            output=text,
            tool_calls=(call(said=text),),
        )
        for name, text in (("1", "found a.txt"), ("2", "found b.txt"))
    ]
    cause = bus.port(Role.DISPATCHER, "t").publish(DispatchManifest(task_id="t", round=1, subtasks=()))
    return await merge(asker, "which files?", outcomes, [BOTH_NAMED], cause)


@pytest.mark.parametrize(("small", "verdict"), [(True, "open"), (False, "pass")])
async def test_what_a_small_model_says_of_its_own_merge_decides_nothing(small: bool, verdict: str) -> None:
    """Its answer is taken, for it says nothing that the results do not; the criterion stands open."""
    found = await merged(small=small)
    assert found.answer == "a.txt and b.txt"
    decided = found.verdicts[BOTH_NAMED.text]
    assert decided.verdict == verdict
    assert decided.decided_by is (DecidedBy.NOBODY if small else DecidedBy.JUDGEMENT)
