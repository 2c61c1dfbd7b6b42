"""The Four Laws as data, each with its priority and the places that enforce it.

Reference: paper, section 9; SPEC section 6.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Law:
    """One law. A lower number has priority over a higher one. `enforced_by` names modules, not intentions."""

    number: int
    name: str
    text: str
    enforced_by: tuple[str, ...]


LAWS: tuple[Law, ...] = (
    Law(
        0,
        "Never deceive",
        "Report only what tool output shows, including failure.",
        (
            "artoo.evidence.facts: a result that its own records contradict is refused",
            "artoo.evidence.grounding: each number, name and path of an answer stands in what was seen",
            "artoo.verdicts.checks: criteria with a check are decided by code",
            "artoo.loops.medium.merging: the merge of several results is grounded in them",
        ),
    ),
    Law(
        1,
        "Never harm unasked",
        "Nothing irreversible without the person's consent to that very act.",
        (
            "artoo.workspace: a task works in a copy-on-write workspace; it is applied at settlement alone",
            "artoo.tools.settlement.settler: changes are applied as a whole, bound to the digest of what was shown",
            "artoo.tools.approval.gate: an act that cannot be staged is asked about before it happens",
            "artoo.tools.approval.ask_first: MCP tools, AppleScript, Shortcuts and writing functions ask first",
            "artoo.tools.provenance.taint: hosts, recipients and values that data named first show their source",
            "artoo.runtime.approvals.consent: without a person or a policy that names the act, the answer is no",
        ),
    ),
    Law(
        2,
        "Best effort",
        "Pursue the goal within Laws 0 and 1; stop when going on is waste.",
        (
            "artoo.control.decision: six macro-states and the kill switch after worsening rounds",
            "artoo.loops.fast.agent_validator: a bounded number of corrections of a subtask",
        ),
    ),
    Law(
        3,
        "Keep functioning",
        "Protect budgets, memory and every bound.",
        (
            "artoo.llm.budget: calls, tokens and money are reserved before they are spent",
            "artoo.bus: bounded queues with counted drops",
            "artoo.loops.medium.solver: the time budget ends running work",
        ),
    ),
)
