"""Calls that memory doubts ask a person first."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from artoo.contracts.confirmation import NOBODY, PERSON, ConfirmationAnswer, ConfirmationRequest, Consent
from artoo.contracts.execution import CallStatus
from artoo.contracts.plan import Caution, MustNot
from artoo.testing import FakeClock
from artoo.tools.approval.gate import Gate
from artoo.tools.core.function_tools import tool, user_tool
from artoo.tools.core.registry import Registry

DOUBT = Caution(identity="look_up", target="alpha", reason="it was good as often as bad before")


@tool
def look_up(name: str) -> str:
    """Looks a name up."""
    return name.upper()


@dataclass
class Person:
    """Somebody who always says the same."""

    consent: Consent
    by: str = PERSON
    asked: list[ConfirmationRequest] = field(default_factory=list[ConfirmationRequest])

    async def ask(self, request: ConfirmationRequest) -> ConfirmationAnswer:
        """Notes the question."""
        self.asked.append(request)
        return ConfirmationAnswer(digest=request.digest, consent=self.consent, by=self.by)


def registry(person: Person | None = None) -> Registry:
    """One tool, and somebody to ask."""
    gate = Gate(person) if person is not None else None
    return Registry([user_tool(look_up)], FakeClock(), gate=gate)


@pytest.mark.parametrize(
    ("consent", "status"), [(Consent.ONCE, "ok"), (Consent.TASK, "ok"), (Consent.NO, "refused")]
)
async def test_a_doubtful_pair_is_asked_about(consent: Consent, status: str) -> None:
    """The person is told which pair and why, and their answer decides."""
    person = Person(consent)
    toolbox = registry(person).toolbox("s", MustNot(), (DOUBT,))
    call = await toolbox.call("look_up", {"name": "alpha"})
    assert call.status == status
    (question,) = person.asked
    assert "look_up" in question.title and question.details == (DOUBT.reason,)


@pytest.mark.parametrize("person", [None, Person(Consent.NO, NOBODY)])
async def test_where_nobody_can_be_asked_it_is_done_another_way(person: Person | None) -> None:
    """The refusal says what is in doubt and that another way is open; nothing counts as withheld by a person."""
    call = await registry(person).toolbox("s", MustNot(), (DOUBT,)).call("look_up", {"name": "alpha"})
    assert call.status is CallStatus.REFUSED and call.withheld_by is None
    assert "good as often as bad" in (call.reason or "") and "another way" in (call.reason or "")
