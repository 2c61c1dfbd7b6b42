"""Law 1's gate: who is asked about an act that cannot be staged, and how long an answer holds."""

from __future__ import annotations

import asyncio

from gate_world import Person

from artoo.contracts.confirmation import AskedAct, ConfirmationRequest, Consent
from artoo.testing.asking import AskPerson
from artoo.tools.approval.gate import Gate


def request(digest: str, *targets: str) -> ConfirmationRequest:
    acts = tuple(AskedAct(verb="tool", target=target) for target in targets or (digest,))
    return ConfirmationRequest(digest=digest, title=digest, acts=acts)


async def test_a_persons_no_holds() -> None:
    """The same act is not asked about again, nor one that contains it; the refusal says whose no it was."""
    person = Person([Consent.NO])
    gate = Gate(AskPerson(person))
    for digest, targets in (("a", ("send",)), ("a", ("send",)), ("b", ("send", "more"))):
        refusal = await gate.refusal(request(digest, *targets))
        assert refusal is not None and refusal.by == "person"
    assert len(person.asked) == 1


async def test_one_question_at_a_time() -> None:
    """Parallel subtasks wait for each other's question, and an answer for the task serves both."""
    opened = 0

    class Slow(Person):
        async def __call__(self, request: ConfirmationRequest) -> Consent:
            nonlocal opened
            opened += 1
            assert opened == 1
            await asyncio.sleep(0)
            opened -= 1
            return await Person.__call__(self, request)

    person = Slow([Consent.TASK, Consent.TASK])
    gate = Gate(AskPerson(person))
    found = await asyncio.gather(*(gate.refusal(request(digest)) for digest in ("a", "b", "a")))
    assert found == [None, None, None]
    assert [one.digest for one in person.asked] == ["a", "b"]
