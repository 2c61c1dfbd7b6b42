"""What a rule found wrong with a claim."""

from __future__ import annotations

from dataclasses import dataclass

from artoo.contracts.execution import FailureClass


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason not to accept a claim.

    `contradicts`: the evidence says otherwise; False: it merely does not say so. `identities` are the tool
    identities at fault, for blocking. `mendable`: the tool was right and its input was not.
    """

    rule: str
    message: str
    failure_class: FailureClass = FailureClass.LOGICAL
    identities: tuple[str, ...] = ()
    contradicts: bool = False
    mendable: bool = False
