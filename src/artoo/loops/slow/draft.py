"""Wording a rule with a language model (contract `SOPDraft`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from artoo.contracts.memory import SOPDraft
from artoo.loops.asking import Asker
from artoo.loops.slow.passing import Draft
from artoo.ports.dream import Cluster
from artoo.prompts.segments import Segment

EVIDENCE_LENGTH = 240
"""Characters of each megram's content that are shown."""


def model_draft(asker: Asker) -> Draft:
    """A draft that asks the Dreamer's model once for each cluster. Raises what the model raises."""

    async def draft(cluster: Cluster) -> SOPDraft | None:
        return await asker.ask("SOPDraft", SOPDraft, _segments(cluster), cause=None, max_tokens=256)

    return draft


def model_wording(asker: Asker) -> Callable[[str], Awaitable[str | None]]:
    """One sentence of what an agent has seen again and again, for its dream cycle. Raises what the model raises."""

    async def word(seen: str) -> str | None:
        task = "Word what is to be remembered of this, which has happened several times, in its language."
        segments = {Segment.TASK: task, Segment.EVIDENCE: f"- {' '.join(seen.split())}"}
        return (await asker.ask("SOPDraft", SOPDraft, segments, cause=None, max_tokens=256)).rule

    return word


def _segments(cluster: Cluster) -> dict[Segment, str]:
    kind = "a best practice to prefer" if cluster.decision > 0 else "a constraint to obey"
    task = (
        f"Word {kind}, in the language of the evidence.\n"
        f"It is about: {cluster.pair.space} {cluster.pair.entity}\n"
        f"Weight of the evidence: {cluster.attention:.1f}, balance {cluster.decision:+.1f}"
    )
    evidence = "\n".join(
        f"- {megram.state.value}: {' '.join(megram.content.split())[:EVIDENCE_LENGTH]}"
        for megram in cluster.megrams
    )
    return {Segment.TASK: task, Segment.EVIDENCE: evidence}
