"""A claim beside its evidence: what every rule looks at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from artoo.loops.fast.evidence.calls import GOOD, CallView, Standing, repaired
from artoo.loops.fast.evidence.claims import Clause, Stance, clauses_of
from artoo.loops.fast.evidence.figures import Fact, facts_of
from artoo.loops.fast.evidence.finding import Finding

BROKEN = frozenset({Standing.FAILED, Standing.INCOMPLETE, Standing.REFUSED, Standing.WITHHELD, Standing.PARTIAL})


@dataclass(frozen=True)
class Case:
    """One claim, the calls as evidence, and the request that it answers (may be empty)."""

    claim: str
    views: tuple[CallView, ...]
    intent: str = ""

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        """The claim's statements, read when a rule first needs them: a mere quotation needs none."""
        return clauses_of(self.claim)

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """Every figure of the evidence."""
        return facts_of(self.views)

    @cached_property
    def asked(self) -> str:
        """What the calls were to do, in one text."""
        return "\n".join(view.asked for view in self.views)

    @cached_property
    def said(self) -> str:
        """What came out of them, in one text."""
        return "\n".join(
            [view.said for view in self.views] + [path for view in self.views for path in view.call.changes]
        )

    @cached_property
    def admits(self) -> bool:
        """Whether the claim says somewhere that something failed or is incomplete."""
        return any(clause.stance is Stance.FAILED or clause.hedged for clause in self.clauses)

    @cached_property
    def unrepaired(self) -> tuple[CallView, ...]:
        """Calls that went wrong and that no later call did well."""
        return tuple(view for view in self.views if view.standing in BROKEN and not repaired(view, self.views))

    @cached_property
    def good(self) -> tuple[CallView, ...]:
        """Calls that ended well and whose output is not of their own making."""
        return tuple(view for view in self.views if view.standing in GOOD)


def contradiction(rule: str, message: str, views: Iterable[CallView] = ()) -> Finding:
    """A finding that the evidence says otherwise, at the cost of these calls."""
    blamed = list(views)
    identities = tuple(dict.fromkeys(identity for view in blamed for identity in view.call.identity))
    if blamed:
        return Finding(rule, message, blamed[-1].failure_class, identities, contradicts=True)
    return Finding(rule, message, contradicts=True)
