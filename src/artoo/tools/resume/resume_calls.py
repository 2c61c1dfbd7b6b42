"""Decide for each interrupted call to repeat it, report it, or ask the user.

started, only reads ──────► it is run again
started, in the workspace ► reported: its changes there remain, and the model decides
started, reaches outside ─► asked about, because it is unknown whether it took effect
"""

from __future__ import annotations

from dataclasses import dataclass, field

from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.execution import CallEffects, CallStatus, ToolStarted
from artoo.ports.arguments import as_text
from artoo.tools.approval.gate import AGAIN, Gate, Refusal
from artoo.tools.core.tool import Arguments, Outcome
from artoo.tools.files.unified_diff import plain
from artoo.tools.resume.earlier_runs import Past
from artoo.tools.resume.in_flight import UnderWay
from artoo.words.catalogue import word


@dataclass(slots=True)
class Resumed:
    """Checks each call of a resumed task before the call is made. `gate` is the task's gate, which asks the
    user."""

    past: Past
    gate: Gate
    _unknown: dict[str, ToolStarted] = field(init=False)

    def __post_init__(self) -> None:
        started = self.past.started.values()
        self._unknown = {one.digest: one for one in started if one.effects is CallEffects.OUTSIDE}

    async def instead(self, call: UnderWay, arguments: Arguments) -> Outcome | None:
        """Return the outcome of a call that is not run. Return None if the call may run.

        A call that equals the interrupted one but has another id (`act`) is asked about too, until the user has
        agreed to one repetition.
        """
        act = call.ticket.act
        cut_off = self.past.cut_off(act)
        if cut_off is not None and cut_off.effects is CallEffects.STAGED:
            return _interrupted(cut_off)
        if self.past.redacted and any(self.past.redacted in as_text(value) for value in arguments.values()):
            reason = f"it holds {self.past.redacted!r}, as the log does where a secret was; say it anew"
            return Outcome(status=CallStatus.REFUSED, reason=reason)
        started = cut_off or self._unknown.get(call.digest())
        if started is None:
            return None
        refusal = await self.gate.refusal(self._question(started))
        if refusal is not None:
            return _left(started, refusal)
        self._unknown.pop(started.digest, None)
        self._carry_over(started.act, act)
        return None

    def _carry_over(self, before: str, act: str) -> None:
        """Make earlier approvals of a call valid for its repetition, so that a user who agrees to the repetition is
        not asked twice."""
        for request, answer in self.past.consented:
            if request.act == before:
                self.gate.grant_once(act, answer)

    def _question(self, started: ToolStarted) -> ConfirmationRequest:
        language = self.gate.language
        lines = started.input.splitlines() or [""]
        doubt = word("it was under way when artoo died; it is unknown whether it took effect", language)
        return self.gate.question(
            ("again", started.act, started.digest),
            f"{word('do it again', language)}: {plain(started.tool)}",
            (doubt, *lines),
            ((AGAIN, plain(f"{started.tool} {lines[0]}".strip())),),
        )


def _interrupted(started: ToolStarted) -> Outcome:
    """Return the outcome of a call in the workspace that a crash interrupted. Such a call is not repeated."""
    return Outcome(
        status=CallStatus.INTERRUPTED,
        reason=(
            f"{started.tool} was under way when artoo was interrupted, and was not repeated. What it had done by "
            "then is in the files: look at them before you do it again"
        ),
    )


def _left(started: ToolStarted, refusal: Refusal) -> Outcome:
    who = "the person said no" if refusal.by == "person" else "nobody can be asked here"
    return Outcome(
        status=CallStatus.INTERRUPTED,
        reason=(
            f"{started.tool} was under way when artoo died; it is unknown whether it took effect. It was not done "
            f"again: {who}. Look at what it was to change, and report this"
        ),
        withheld_by=refusal.by,
    )
