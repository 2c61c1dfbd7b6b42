"""Law 1's gate: what a tool would do is decided here, asked about where it must be, and done whole or not at all.

    SandboxRun.staged ──► decide ──► silent ────────────────► apply
                                └──► ask ──► yes ───────────► apply, bound to the digest that was shown
                                        └──► no ────────────► drop; the record says what is not done

One gate lives for one task and serves all its tools: it remembers what was answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from artoo.contracts.changes import ApplyReport, Change, PathClass
from artoo.contracts.confirmation import (
    NOBODY,
    PERSON,
    POLICY,
    ConfirmationAnswer,
    ConfirmationRequest,
    Consent,
)
from artoo.contracts.execution import WithheldBy
from artoo.ports.confirm import Questions
from artoo.ports.sandbox import StagedChanges
from artoo.ports.waiting import waiting_for_a_person
from artoo.tools.commands import meant_changes
from artoo.tools.gate_question import Act, question_about
from artoo.tools.origins import Origins
from artoo.tools.past import Past
from artoo.tools.questions import AskNobody
from artoo.tools.under_way import current_act, digest_of_call, kept_so_far
from artoo.world.decide import Decision, decide

_Acts = frozenset[tuple[str, str]]
"""Kind and target of each part of an act that was asked about."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an act may not happen, and whether a person said so or there was nobody to ask."""

    reason: str
    by: WithheldBy


@dataclass(frozen=True, slots=True)
class Settlement:
    """What became of staged changes: `changes` took effect, `dropped` did not, and `reason` says why not."""

    changes: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    reason: str | None = None
    withheld_by: WithheldBy | None = None


@dataclass(slots=True)
class Gate:
    """Settles what tools would do. `origins` knows where names came from that the request does not hold."""

    questions: Questions = field(default_factory=AskNobody)
    origins: Origins = field(default_factory=Origins)
    _answers: dict[str, ConfirmationAnswer] = field(default_factory=dict[str, ConfirmationAnswer])
    _refused: list[tuple[_Acts, ConfirmationAnswer]] = field(default_factory=list[tuple[_Acts, ConfirmationAnswer]])
    _granted: dict[tuple[str, str], ConfirmationAnswer] = field(
        default_factory=dict[tuple[str, str], ConfirmationAnswer]
    )
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def settle(self, staged: StagedChanges, act: Act) -> Settlement:
        """Applies the changes, asking first where Law 1 wants it, or drops them. Raises SandboxError."""
        changes = staged.changes
        if not changes:
            return Settlement()
        refusal = await self._refusal(staged, act)
        if refusal is not None:
            await staged.drop()
            return Settlement((), _all_paths(changes), f"nothing was changed: {refusal.reason}", refusal.by)
        await kept_so_far()
        return _settlement(await staged.apply(digest=staged.digest, note=act.note), changes)

    def restore(self, past: Past) -> None:
        """Takes up what was answered and what was read before this process, oldest first.

        A person's "for this task" and no hold; a yes that was given once holds for that very act if it has not
        taken effect. Policies speak for themselves, and where nobody was there to ask, somebody may be now. A yes
        to doing something again was for that one time.
        """
        for call in past.calls:
            self.origins.observe(call)
        for request, answer in past.consented:
            again = any(act.verb == AGAIN for act in request.acts) and answer.consent.is_yes
            if again or answer.by == NOBODY or answer.by.startswith(POLICY):
                continue
            self._remember(request, answer)
            if past.may_use_once(request.act):
                self.grant_once(request.act, answer)

    def grant_once(self, act: str, answer: ConfirmationAnswer) -> None:
        """Lets a yes that was given once hold for one question of one act. Another consent changes nothing."""
        if answer.consent is Consent.ONCE:
            self._granted[act, answer.digest] = answer

    async def refusal(self, request: ConfirmationRequest) -> Refusal | None:
        """Asks about an act; None when it may happen. A no, and an answer for the task, hold for its rest."""
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
            return Refusal(f"the person said no to: {what}; do not try it again, report it", "person")
        return Refusal(f"it needs a person's consent, and nobody can be asked here: {what}; {ADVICE}", "nobody")

    async def _refusal(self, staged: StagedChanges, act: Act) -> Refusal | None:
        decision = decide(staged.changes)
        if decision.silent:
            return None
        own = [change.path for change, _ in decision.ask if change.path_class is PathClass.ARTOO]
        if own:  # nobody is asked: with a yes a task could rewrite the record of what it did
            return Refusal(f"artoo's own files are out of reach of tasks: {_some(own)}", "nobody")
        return await self.refusal(await question_about(staged, decision, self._with_source(act, decision)))

    def _with_source(self, act: Act, decision: Decision) -> Act:
        """The act with what the person should know of it: where its targets came from, if not from the request."""
        sources = (self.origins.of_path(change.path) for change, _ in decision.ask)
        found = tuple(dict.fromkeys(source for source in sources if source is not None))
        return replace(act, source="; ".join(found) or None, language=self.origins.language)

    def _remembered(self, request: ConfirmationRequest) -> ConfirmationAnswer | None:
        """An earlier answer that holds for this act: to the same act, or a no to something that it contains."""
        granted = self._granted.pop((request.act, request.digest), None)
        if granted is not None:
            return granted
        asked = _acts(request)
        contained = (answer for acts, answer in self._refused if acts <= asked)
        return self._answers.get(request.digest) or next(contained, None)

    def _remember(self, request: ConfirmationRequest, answer: ConfirmationAnswer) -> None:
        if answer.consent is not Consent.ONCE:
            self._answers[request.digest] = answer
        if not answer.consent.is_yes and request.acts:
            self._refused.append((_acts(request), answer))


AGAIN = "again"
"""The verb of a question about doing again what a crash cut off. No policy knows it."""

ADVICE = "do it with a new file, or report it"
"""What is left when consent is missing."""


def digest_of_act(*parts: str) -> str:
    """sha256 (hex) of an act that is text: a command, a call of a tool with its arguments."""
    return digest_of_call(*parts)


def _acts(request: ConfirmationRequest) -> _Acts:
    return frozenset((act.verb, act.target) for act in request.acts)


def _settlement(report: ApplyReport, changes: tuple[Change, ...]) -> Settlement:
    if report.applied:
        return Settlement(changes=meant_changes(changes))
    met = _some(f"{one.path} ({one.reason})" for one in report.conflicts)
    return Settlement(dropped=_all_paths(changes), reason=f"nothing was changed, a conflict: {met}")


def _all_paths(changes: tuple[Change, ...]) -> tuple[str, ...]:
    """What is not done. Caches and bookkeeping count only when there is nothing else."""
    return meant_changes(changes) or tuple(change.path for change in changes)


def _some(parts: Iterable[str]) -> str:
    listed = list(parts)
    shown = ", ".join(listed[:5])
    return shown if len(listed) <= 5 else f"{shown} and {len(listed) - 5} more"
