"""Memory's doubts: a call that went well as often as badly before asks a person first (SPEC section 5, Caution)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from artoo.contracts.confirmation import AskedAct, ConfirmationRequest
from artoo.contracts.plan import Caution
from artoo.tools.approval.gate import Gate, digest_of_act
from artoo.tools.approval.messages import word
from artoo.tools.files.unified_diff import plain


@dataclass(frozen=True, slots=True)
class Cautions:
    """The cautions of one subtask, and the gate that asks. Without cautions nothing is ever asked."""

    listed: tuple[Caution, ...] = ()
    gate: Gate = field(default_factory=Gate)

    async def refusal(self, names: Sequence[str], target: str) -> str | None:
        """Why a call of a tool with these names on `target` may not happen; None when it may.

        The answer holds for the pair, not for one call: what is in doubt is whether it helps, not what it changes.
        """
        for caution in self._about(names, target):
            answer = await self.gate.refusal(self._question(caution))
            if answer is not None:
                doubt = f"{caution.identity} on {caution.target!r}: {caution.reason}"
                return f"{doubt}, and nobody agreed to try it again; do it another way"
        return None

    def _about(self, names: Sequence[str], target: str) -> Iterator[Caution]:
        return (each for each in self.listed if each.identity in names and each.target == target)

    def _question(self, caution: Caution) -> ConfirmationRequest:
        language = self.gate.origins.language
        return ConfirmationRequest(
            digest=digest_of_act("caution", caution.identity, caution.target),
            title=f"{word('tool', language)} {plain(caution.identity)} {plain(caution.target)}",
            details=(plain(caution.reason),),
            acts=(AskedAct(verb="tool", target=f"{caution.identity} {caution.target}"),),
            language=language,
        )
