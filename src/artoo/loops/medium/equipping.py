"""What a task was to be given before it works (a project's skills and servers), and was not."""

from __future__ import annotations

from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.findings import NotAgreed
from artoo.contracts.solution import FinalResult

EQUIPS = frozenset({"skill", "start"})
"""Verbs of questions about what a project brings."""


class Equipping:
    """Hears the questions of one task."""

    def __init__(self) -> None:
        self._asked: dict[str, ConfirmationRequest] = {}
        self._not_agreed: tuple[str, ...] = ()

    def asked(self, request: ConfirmationRequest) -> None:
        """A question is put."""
        if any(act.verb in EQUIPS for act in request.acts):
            self._asked[request.digest] = request

    def answered(self, answer: ConfirmationAnswer) -> None:
        """A question is answered."""
        request = self._asked.pop(answer.digest, None)
        if request is not None and not answer.consent.is_yes:
            self._not_agreed += tuple(f"{act.verb} {act.target}" for act in request.acts)

    def told(self, result: FinalResult) -> FinalResult:
        """The result, with what the task had to do without."""
        if not self._not_agreed:
            return result
        return result.model_copy(update={"facts": (*result.facts, NotAgreed(what=self._not_agreed))})
