"""Ask the model to word a rule (contract `SOPDraft`), with the length of evidence."""

from __future__ import annotations

from artoo.contracts.memory import SOPDraft
from artoo.loops.asking import Asker
from artoo.loops.slow.passing import Draft
from artoo.ports.dream import Cluster
from artoo.prompts.segments import Segment

# Number of characters of each megram's content that the model is shown.
EVIDENCE_LENGTH = 240


def model_draft(asker: Asker) -> Draft:
    """Return a function that asks the Dreamer's model once for each cluster of megrams. The function raises the
    model's errors."""

    async def draft(cluster: Cluster) -> SOPDraft | None:
        return await asker.ask("SOPDraft", SOPDraft, _segments(cluster), cause=None, max_tokens=256)

    return draft


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
