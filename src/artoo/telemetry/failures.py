"""`error.type` of a failed call: few values, none of them a text."""

from __future__ import annotations

from artoo.contracts.events import ModelCalled

OTHER = "_OTHER"


def error_type(call: ModelCalled) -> str:
    """The HTTP status of a refusal, the budget that was spent, or the kind of failure that the record names."""
    failure = call.failure
    if failure is None:
        return OTHER
    if failure.budget:
        return f"budget_{failure.budget}"
    return str(failure.status) if failure.status >= 400 else failure.nature
