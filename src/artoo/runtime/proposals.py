"""The operator's answer to what the Dreamer proposed, in memory and in the T layer.

Apart from `thinking`, which every task reads: a task needs no memory for it.
"""

from __future__ import annotations

from pathlib import Path

from artoo.memory.environment import Environment
from artoo.memory.insight import answer_proposal, open_proposals
from artoo.runtime.thinking import accept_text


def settle_proposal(environment: Environment, home: Path, proposal_id: str, *, accept: bool) -> Path | None:
    """Records the answer; returns the file of a proposal that is accepted.

    Raises MemoryStoreError when it is unknown or answered already, and what `accept_text` raises.
    """
    # The text first: a proposal that is marked as accepted and stands nowhere would be lost.
    wanted = next((each for each in open_proposals(environment) if each.id == proposal_id), None)
    file = accept_text(home, wanted) if accept and wanted is not None else None
    answer_proposal(environment, proposal_id, accept=accept)
    return file
