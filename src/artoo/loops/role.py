"""The message loop of a role, which handles its inbox in order and publishes a RoleFailure on errors."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import BudgetExhausted, InboxOverflow, ModelRefused, ModelUnreachable
from artoo.contracts.solution import RoleFailure, StoppedBy
from artoo.ports.bus import Port


async def listen(port: Port, handle: Callable[[Envelope], Awaitable[None]]) -> None:
    """Handle each message of the inbox in order until the port is closed.

    If handling fails, a RoleFailure is published, and the solver then ends the task. A role therefore never fails
    silently, and never stops the other roles.
    """
    try:
        async for envelope in port:
            await attend(port, handle, envelope)
    except InboxOverflow as error:
        port.publish(_failure(port, error))


async def attend(port: Port, handle: Callable[[Envelope], Awaitable[None]], envelope: Envelope) -> None:
    """Handle one message. An error is published as a RoleFailure, with the message as its cause."""
    try:
        await handle(envelope)
    except Exception as error:  # noqa: BLE001 - a role's boundary: everything is reported, nothing is kept
        port.publish(_failure(port, error), cause=envelope)


def _failure(port: Port, error: Exception) -> RoleFailure:
    if isinstance(error, ModelRefused) and error.of_this_prompt:
        return RoleFailure(role=port.role, stopped_by=StoppedBy.PROMPT_REFUSED, reason=str(error))
    if isinstance(error, (ModelUnreachable, ModelRefused)):
        return RoleFailure(role=port.role, stopped_by=StoppedBy.NO_MODEL, reason=str(error))
    if isinstance(error, BudgetExhausted):
        return RoleFailure(role=port.role, stopped_by=StoppedBy(error.budget), reason=str(error))
    return RoleFailure(
        role=port.role,
        stopped_by=StoppedBy.INTERNAL,
        reason=f"the {port.role} failed: {type(error).__name__}: {error}",
        detail="".join(traceback.format_exception(error))[-8_000:],
    )
