"""What the Auditor tells the operator (SPEC section 7). Nothing here ever reaches an agent."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from artoo.contracts.base import Contract


class Finding(Contract):
    """One thing that is not as it should be. `rule` is the name of the rule that found it (snake case).

    `violation`: something that must never happen did; `anomaly`: something unusual; `drift`: a role's figures left
    their own long-run band; `loss`: messages that somebody missed.
    """

    rule: str
    nature: Literal["violation", "anomaly", "drift", "loss"]
    what: str
    task_id: str = ""
    subtask_id: str | None = None
    envelope_id: str | None = None
    at: datetime
