"""The approval gate, which asks before operations that cannot be staged, with the words of a refusal.

Reference: Law 1.

Operations that can be staged happen in the task's workspace instead, and are settled together at its end
(`settler`). One gate serves all tools of one task and remembers the answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from artoo.contracts.confirmation import (
    NOBODY,
    PERSON,
    POLICY,
    AskedAct,
    ConfirmationAnswer,
    ConfirmationRequest,
    Consent,
)
from artoo.contracts.execution import WithheldBy
from artoo.contracts.plan import Caution
from artoo.ports.confirm import Questions
from artoo.ports.waiting import waiting_for_a_person
from artoo.tools.approval.prompts import AskNobody
from artoo.tools.files.unified_diff import plain
from artoo.tools.provenance.taint import Origins
from artoo.tools.resume.earlier_runs import Past
from artoo.tools.resume.in_flight import current_act, digest_of_call, kept_so_far
from artoo.words.catalogue import word

_Acts = frozenset[tuple[str, str]]
"""The kind and the target of each part of an operation about which a question was asked."""


ADVICE = "; if the rest is worth having without it, say in the answer what is missing, else end with cannot"
"""The advice that a model reads if consent is missing."""
_AGAIN_NOT = "; do not try it again"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why an operation may not happen, with the information whether a user refused or no one could be
    asked."""

    reason: str
    by: WithheldBy


@dataclass(slots=True)
class Gate:
    """Asks before an operation that cannot be staged. `origins` knows the sources of the names that are not in the
    request. `outside` lists the completed operations that remain even if the task's changes are discarded. `advice`
    is appended to a refusal that a model reads. It is empty if a person, not a model, gave the command."""

    questions: Questions = field(default_factory=AskNobody)
    origins: Origins = field(default_factory=Origins)
    outside: list[str] = field(default_factory=list[str])
    advice: str = ADVICE
    _answers: dict[str, ConfirmationAnswer] = field(default_factory=dict[str, ConfirmationAnswer])
    _refused: list[tuple[_Acts, ConfirmationAnswer]] = field(default_factory=list[tuple[_Acts, ConfirmationAnswer]])
    _granted: dict[tuple[str, str], ConfirmationAnswer] = field(
        default_factory=dict[tuple[str, str], ConfirmationAnswer]
    )
    _permitted: set[str] = field(default_factory=set[str])
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def restore(self, past: Past) -> None:
        """Restore the answers and the observed calls of earlier processes of the task, oldest first.

        An approval "for this task" and a refusal remain valid. An approval that was given once is valid only for
        that operation, and only if the operation has not yet taken effect.
        """
        # Three kinds of answers are not restored. An approval to repeat an operation was valid only one time.
        # Answers by policies are not restored because policies are evaluated again. A refusal because no user could
        # be asked is not restored because a user may be available now.
        for call in past.calls:
            self.origins.observe(call)
        for request, answer in past.consented:
            again = any(act.verb == AGAIN for act in request.acts) and answer.consent.is_yes
            if again or answer.by == NOBODY or answer.by.startswith(POLICY):
                continue
            self._remember(request, answer)
            if answer.consent.is_yes and request.act in past.ended:
                self.outside += [f"{act.verb} {act.target}" for act in request.acts if act.verb == "tool"]
            if past.may_use_once(request.act):
                self.grant_once(request.act, answer)

    def grant_once(self, act: str, answer: ConfirmationAnswer) -> None:
        """Make an approval that was given once valid for one question about one operation."""
        # Answers that are valid for longer are restored by `_remember`.
        if answer.consent is Consent.ONCE:
            self._granted[act, answer.digest] = answer

    @property
    def language(self) -> str:
        """Return the language in which the user is asked."""
        return self.origins.language

    def question(
        self,
        digest: Sequence[str],
        title: str,
        details: Iterable[str],
        acts: Iterable[tuple[str, str]],
        source: str | None = None,
    ) -> ConfirmationRequest:
        """Build a question about operations (verb and target). `digest`: the parts of the operation from which the
        digest is computed. An answer is valid only for this digest."""
        return ConfirmationRequest(
            digest=digest_of_call(*digest),
            title=title,
            details=tuple(map(plain, details)),
            acts=tuple(AskedAct(verb=verb, target=target) for verb, target in acts),
            source=source,
            language=self.language,
        )

    async def refusal(self, request: ConfirmationRequest) -> Refusal | None:
        """Ask about an operation; return None if it may happen. A refusal, and an approval for the whole task,
        remain valid for the rest of the task.
        """
        act = current_act()
        if act:
            request = request.model_copy(update={"act": act})
        with waiting_for_a_person():
            async with self._turn:
                answer = self._remembered(request)
                if answer is None:
                    answer = await self.questions.ask(request)
                    self._remember(request, answer)
                    await kept_so_far()
        if answer.consent.is_yes:
            return None
        what = _some(f"{act.verb} {act.target}" for act in request.acts) or request.title
        if answer.by == PERSON:
            return Refusal(f"the person said no to: {what}{self.advice and _AGAIN_NOT}{self.advice}", "person")
        return Refusal(f"it needs a person's consent, and nobody can be asked here: {what}{self.advice}", "nobody")

    def is_permitted(self, request: ConfirmationRequest) -> bool:
        """Check whether a standing permission, and not a user, approved this question."""
        return request.digest in self._permitted

    def _remembered(self, request: ConfirmationRequest) -> ConfirmationAnswer | None:
        """Return an earlier answer that is still valid. It is an answer to the same operation, or a refusal of a
        part of it."""
        granted = self._granted.pop((request.act, request.digest), None)
        if granted is not None:
            return granted
        asked = _acts(request)
        contained = (answer for acts, answer in self._refused if acts <= asked)
        return self._answers.get(request.digest) or next(contained, None)

    def _remember(self, request: ConfirmationRequest, answer: ConfirmationAnswer) -> None:
        if answer.by.startswith(POLICY):
            self._permitted.add(request.digest)
        if answer.consent is not Consent.ONCE:
            self._answers[request.digest] = answer
        if not answer.consent.is_yes and request.acts:
            self._refused.append((_acts(request), answer))


AGAIN = "again"
"""The verb of a question about repeating an operation that a crash interrupted. No policy has this verb, so only a
user can approve a repetition."""


def _acts(request: ConfirmationRequest) -> _Acts:
    return frozenset((act.verb, act.target) for act in request.acts)


def _some(parts: Iterable[str]) -> str:
    listed = list(parts)
    shown = ", ".join(listed[:5])
    return shown if len(listed) <= 5 else f"{shown} and {len(listed) - 5} more"


@dataclass(frozen=True, slots=True)
class Cautions:
    """The cautions of one subtask, and the gate that asks the user about them. Without cautions no question is
    asked."""

    listed: tuple[Caution, ...] = ()
    gate: Gate = field(default_factory=Gate)

    async def refusal(self, names: Sequence[str], target: str) -> str | None:
        """Ask the user before a tool with one of these names is called on `target`. Return the reason for a
        refusal, or None."""
        # The answer is valid for this tool and target whatever the call's other arguments are, because the doubt is
        # whether the call helps.
        for caution in self._about(names, target):
            answer = await self.gate.refusal(self._question(caution))
            if answer is not None:
                doubt = f"{caution.identity} on {caution.target!r}: {caution.reason}"
                return f"{doubt}, and nobody agreed to try it again; do it another way"
        return None

    def _about(self, names: Sequence[str], target: str) -> Iterator[Caution]:
        return (each for each in self.listed if each.identity in names and each.target == target)

    def _question(self, caution: Caution) -> ConfirmationRequest:
        return self.gate.question(
            ("caution", caution.identity, caution.target),
            f"{word('tool', self.gate.language)} {plain(caution.identity)} {plain(caution.target)}",
            (caution.reason,),
            (("tool", f"{caution.identity} {caution.target}"),),
        )
